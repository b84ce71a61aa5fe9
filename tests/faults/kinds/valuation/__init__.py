"""Valuations: the history of each key on every business date, with values from references."""

from .kind import KIND

__all__ = ["KIND"]
