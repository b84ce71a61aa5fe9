"""Timelines: facts folded, in date order, into the history of each key."""
