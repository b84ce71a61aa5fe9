"""Timelines: facts folded into the history of each key, and that history valued on business dates."""
