"""Source -> what was received: every message or row as it came, appended once.

Comes in: a task that names files. Goes out: `Prepared` rows with their positions. Nothing here commits.
"""
