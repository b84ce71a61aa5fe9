"""Accept what someone else wrote to a table: an empty commit names those versions."""

from collections.abc import Sequence
from dataclasses import dataclass

from strandline.lake.location import Lake
from strandline.lake.log import read_entries
from strandline.lake.table import Table, get_table
from strandline.model.columns import DELETED, KEY, POSITION
from strandline.model.commits import Operation
from strandline.model.errors import CallError
from strandline.model.node import Node

from .desk import Desk
from .holding import holding
from .settle import foreign_versions

_NEVER_NULL = (KEY, DELETED, POSITION)
"""Columns that have a value in every row that Strandline writes, which later steps rely on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    dataset: str
    versions: tuple[int, ...]
    """What someone else wrote."""
    table_version: int
    """The commit that takes them."""
    rows: int
    """What a reader sees now."""


def adopt(desk: Desk, node: Node, after: int) -> Adopted:
    """Adopt what others wrote after a version.

    A commit of theirs that arrives meanwhile is not adopted, and stays foreign.
    """
    commit = desk.workers().commit_nothing
    with holding(desk, node, rebuilds=True) as held:
        uri = desk.lake.table(node.name)
        versions = foreign_versions(list(read_entries(uri, after)))
        if not versions:
            raise nothing_to_adopt(node.name)
        require_adoptable(desk.lake, node, versions)
        rows = get_table(uri, held.version).live_rows
        written = held.write(
            lambda: commit(desk, node, held.lease, Operation.ADOPT, adopted=versions, rows=rows)
        )
        committed = held.record(written, rows)
    return Adopted(dataset=node.name, versions=versions, table_version=committed.version, rows=rows)


def nothing_to_adopt(name: str) -> CallError:
    subject = f"`{name}` has" if name else "The tables have"
    return CallError(
        f"{subject} no commits that are not Strandline's.",
        remedy="`strandline doctor` shows what there is.",
        slug="nothing-to-adopt",
    )


def require_adoptable(lake: Lake, node: Node, versions: Sequence[int]) -> None:
    """Refuse what later increments, or readers of the table, could not go on from."""
    obstacle = _find_obstacle(lake.table(node.name), node, versions)
    if not obstacle:
        return
    first = versions[0]
    remedy = (
        f"Run `strandline run`: it rebuilds `{node.name}` from its inputs."
        if node.inputs
        else f"Restore the table to version {first - 1}, from before someone else wrote it."
    )
    raise CallError(
        f"What someone else wrote to `{node.name}` (version {', '.join(map(str, versions))}) "
        f"can't be adopted: {obstacle}.",
        remedy=remedy,
        slug="cannot-adopt",
    )


def _find_obstacle(uri: str, node: Node, versions: Sequence[int]) -> str:
    if versions[0] == 0:
        return "the table itself is not Strandline's"
    removing = [
        e.version for e in read_entries(uri, versions[0] - 1) if e.version in versions and e.removes_rows
    ]
    if node.traits.only_grows and removing:
        law = (
            "and what was received is never changed"
            if not node.inputs
            else "and its readers look for rows that were added alone"
        )
        return f"version {removing[0]} removed rows, {law}"
    before, now = get_table(uri, versions[0] - 1), get_table(uri)
    if changed := sorted(set(before.columns) ^ set(now.columns)):
        names = ", ".join(dict.fromkeys(f"`{name}`" for name, _ in changed))
        return f"its columns are not those that Strandline wrote: {names}"
    return _find_null(now)


def _find_null(table: Table) -> str:
    checked = [name for name in table.names if name in _NEVER_NULL]
    if not checked:
        return ""
    counts = ", ".join(f'count(*) - count("{name}") AS "{name}"' for name in sorted(checked))
    missing = table.ask(f"SELECT {counts} FROM t").to_pylist()[0]
    return next((f"{rows} of its rows have no `{name}`" for name, rows in missing.items() if rows), "")
