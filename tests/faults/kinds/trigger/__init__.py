"""Triggers: events that follow from a change log."""

from .kind import KIND

__all__ = ["KIND"]
