"""Timelines: the facts of each key, folded in the order of their dates."""

from .kind import KIND

__all__ = ["KIND"]
