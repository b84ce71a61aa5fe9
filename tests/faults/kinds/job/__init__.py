"""Jobs: `kind.py` puts together keyed, appending and partitioned ones."""

from .kind import KIND

__all__ = ["KIND"]
