"""Entities: variables that are computed for each id, while records move and windows expire."""

from .kind import KIND

__all__ = ["KIND"]
