"""Source -> what was received: every message or row as it came, appended once.

In: a task that names files. Out: `Prepared` rows with their positions. Nothing here commits.
"""
