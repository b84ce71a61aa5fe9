"""How a node is kept up to date, as `explain` reports it."""

from collections.abc import Mapping
from dataclasses import dataclass

from .kind import NodeKind
from .plan import Held, Strategy, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedInput:
    name: str
    dataset: str
    relation: str
    """`new_rows`, `by`, `via`, `whole` or `lookup`."""
    strategy: Strategy | None
    """What a change in it leads to. None if it touches nothing."""
    why: str
    cursor: int | None
    """The version that the node has read."""
    version: int | None
    """The version of the input now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedVariable:
    name: str
    read_from: str
    strategy: Strategy
    why: str
    window: str
    written: bool
    """Whether its column is published as it is declared now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    node: str
    kind: NodeKind
    how: str
    """One sentence: how the node is kept up to date."""
    key: tuple[str, ...]
    inputs: tuple[ExplainedInput, ...]
    variables: tuple[ExplainedVariable, ...]
    """Of a node whose columns are declared one by one."""
    config: str
    parts: Mapping[str, str]
    """What its rows depend on -> digest."""
    stale: Held | None
    frozen: Held | None
    next_task: Task | None
    """What a run would do now."""
