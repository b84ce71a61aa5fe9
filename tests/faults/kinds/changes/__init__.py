"""Change logs: what the commits of a dataset changed."""

from .kind import KIND

__all__ = ["KIND"]
