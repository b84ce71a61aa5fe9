"""Snapshots: the latest fact of each key."""

from .kind import KIND

__all__ = ["KIND"]
