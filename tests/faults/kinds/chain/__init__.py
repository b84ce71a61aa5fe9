"""Chains: the branch of the best head among the blocks that were announced."""

from .kind import KIND

__all__ = ["KIND"]
