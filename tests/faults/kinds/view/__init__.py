"""Views: rows of a dataset for which a condition is true."""

from .kind import KIND

__all__ = ["KIND"]
