"""Counts calls of a function of the engine."""

from collections import Counter
from types import ModuleType

import pytest


def count_calls(patch: pytest.MonkeyPatch, module: ModuleType, name: str) -> Counter[tuple[object, ...]]:
    """How often a function is called from now on, by its arguments."""
    calls: Counter[tuple[object, ...]] = Counter()
    really = getattr(module, name)

    def counted(*arguments: object) -> object:
        calls[arguments] += 1
        return really(*arguments)

    patch.setattr(module, name, counted)
    return calls
