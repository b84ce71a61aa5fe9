"""`history`: every fact about one key. Starts no Spark.

Shows when a fact happened, when it was learnt, which one won, and its table version.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from strandline.lake.log import list_versions
from strandline.lake.query import find_appended_rows, find_rows, parse_values
from strandline.model.columns import DELETED, INGESTED_AT, METADATA_COLUMNS, POSITION, SOURCE_AT, SOURCE_TS
from strandline.model.errors import CallError
from strandline.model.node import Project
from strandline.model.traits import Facts
from strandline.plan.selection import get_nodes, upstream

from .reading import Readable

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One fact about the key. Times are instants; `source_position` is (name, part, place)."""

    source_at: datetime | None
    source_ts: int | None
    ingested_at: datetime | None
    source_position: tuple[object, ...]
    table_version: int | None
    """The version of the facts' table that added it."""
    deleted: bool
    won: bool
    """Whether the snapshot's row of the key comes from it. In an event stream this is true for every fact."""
    row: Row
    """Declared columns only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    dataset: str
    key: Mapping[str, object]
    facts: tuple[Fact, ...]
    """Lowest rank first."""


def read_history(workspace: Readable, name: str, values: Sequence[str]) -> History:
    """The facts whose key, or identity, has these values."""
    facts = _get_facts(workspace.project, name)
    columns = facts.key
    if not columns:
        what = f"`{facts.name}` is an event stream without identity: it has no key."
        remedy = f'Use `strandline query "SELECT * FROM {facts.name}"`.'
        raise CallError(what, remedy=remedy, slug="wrong-key")
    uri = workspace.lake.table(facts.table)
    require_key(facts.name, columns, values, typed=name)
    require_built(uri, facts.name)
    key = parse_values(uri, dict(zip(columns, values, strict=True)))
    rows = sorted(find_appended_rows(uri, key), key=lambda pair: _rank(facts, pair[1]))
    in_order = workspace.project.get(facts.table).in_order
    key_facts = [_fact(version, row, in_order(row)) for version, row in rows]
    if not facts.snapshot:
        key_facts = [replace(fact, won=True) for fact in key_facts]
    else:
        _mark_winner(key_facts, facts, find_rows(workspace.lake.table(facts.snapshot), key))
    return History(dataset=facts.name, key=key, facts=tuple(key_facts))


def require_key(name: str, columns: Sequence[str], values: Sequence[str], *, typed: str) -> None:
    """Refuse a key with too many or too few values. `typed` is the name in the call."""
    if len(values) != len(columns):
        placeholders = " ".join(c.upper() for c in columns)
        what = f"The key of `{name}` has {len(columns)} values."
        remedy = f"Write `strandline history {typed} {placeholders}`."
        raise CallError(what, remedy=remedy, slug="wrong-key")


def require_built(uri: str, name: str) -> None:
    if not list_versions(uri):
        raise CallError(
            f"`{name}` has never been built.", remedy="Run `strandline run` first.", slug="never-built"
        )


def _get_facts(project: Project, name: str) -> Facts:
    nodes = get_nodes(project, name)
    for node in nodes:
        if (facts := project.get(node).traits.facts) is not None:
            return facts
    what = f"`{name}` is not decoded from a source, so there are no facts about its keys."
    above = upstream(project, nodes)
    read = [d for d in project.fact_datasets if not above.isdisjoint(get_nodes(project, d))]
    if read:
        remedy = f"Name a dataset that it is computed from, with a key of that: {', '.join(read)}."
    else:
        known = ", ".join((*project.fact_datasets, *project.timelines))
        remedy = f"Name a fact dataset or a timeline: {known}."
    raise CallError(what, remedy=remedy, slug="no-facts")


def _fact(version: int | None, row: Row, columns: Sequence[str]) -> Fact:
    return Fact(
        source_at=row.get(SOURCE_AT),
        source_ts=row.get(SOURCE_TS),
        ingested_at=row.get(INGESTED_AT),
        source_position=tuple(row[POSITION]),
        table_version=version,
        deleted=bool(row.get(DELETED)),
        won=False,
        row={name: row[name] for name in columns if name not in METADATA_COLUMNS},
    )


def _mark_winner(facts: list[Fact], dataset: Facts, published: Sequence[Row]) -> None:
    """Mark the fact from which the snapshot's row came, and move it behind those it ties with.

    The hash that broke the tie (L3) exists only in Spark.
    """
    for row in published:
        same = [f for f in facts if list(f.source_position) == list(row[POSITION])]
        equal = [f for f in same if all(row.get(name) == value for name, value in f.row.items())]
        if not same:
            continue
        winner = (equal or same)[
            -1
        ]  # a column with its latest non-NULL value may differ from the winning fact
        facts.remove(winner)
        order = _order(dataset, winner.row, winner.source_position)
        behind = [
            place for place, f in enumerate(facts) if _order(dataset, f.row, f.source_position) <= order
        ]
        facts.insert(behind[-1] + 1 if behind else 0, replace(winner, won=True))


def _rank(dataset: Facts, row: Row) -> tuple[object, ...]:
    return (_order(dataset, row, row[POSITION]), tuple(row[POSITION]))


def _order(dataset: Facts, row: Row, position: Sequence[object]) -> tuple[object, ...]:
    columns = dataset.order_by
    return tuple(comparable(tuple(position) if name == POSITION else row.get(name)) for name in columns)


def comparable(value: Any) -> tuple[Any, ...]:
    """NULL sorts first (L3), NaN last."""
    if value is None:
        return (0,)
    return (2,) if isinstance(value, float) and math.isnan(value) else (1, value)
