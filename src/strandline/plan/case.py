"""One node, and what is known when its turn comes. Rules decide such cases."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from strandline.model.catalog_records import NodeRecord
from strandline.model.commits import TableState
from strandline.model.node import Node, NodeConfig, Project
from strandline.model.plan import Held, Task

from .draft import Draft
from .request import Observed, PlanRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One node, and what is known when its turn comes."""

    node: Node
    project: Project
    observed: Observed
    request: PlanRequest
    draft: Draft
    selected: bool
    record: NodeRecord | None
    own: TableState | None
    frozen: Held | None
    stale: Held | None
    held: Held | None
    config: NodeConfig


class Next(Enum):
    """A rule that does not decide a case leaves it to the next one."""

    RULE = "rule"


Rule = Callable[[Case], Task | Next | None]
