"""`quarantine`: what was refused and why. Starts no Spark; releasing is a run of its own (`RunRequest.release`)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from strandline.lake.query import find_rows
from strandline.model.columns import INGESTED_AT, POSITION
from strandline.model.errors import CallError
from strandline.model.node import NodeKind
from strandline.plan.selection import get_nodes

from .reading import Readable


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """One row that failed its decode."""

    source_position: tuple[object, ...]
    reason: str
    slug: str
    payload: str | None
    ingested_at: datetime | None


def read_quarantine(workspace: Readable, name: str) -> tuple[Refused, ...]:
    """What is in quarantine, in the order it was received."""
    project = workspace.project
    node = next((n for n in get_nodes(project, name) if project.get(n).kind is NodeKind.QUARANTINE), None)
    if node is None and (beside := f"{name.removesuffix('_facts')}_quarantine") in project.names:
        node = beside
    if node is None:
        raise CallError(f"`{name}` has no quarantine.", remedy="Name a fact dataset.", slug="no-quarantine")
    found = [_refused(row) for row in find_rows(workspace.lake.table(node), {})]
    return tuple(sorted(found, key=lambda r: (str(r.ingested_at), [(v is not None, v) for v in r.source_position])))


def _refused(row: dict[str, Any]) -> Refused:
    return Refused(
        source_position=tuple(row[POSITION]), reason=row["reason"], slug=row["slug"], payload=row["payload"], ingested_at=row[INGESTED_AT]
    )
