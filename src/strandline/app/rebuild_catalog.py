"""`rebuild-catalog`: a catalog from the tables alone, built aside and swapped in. Starts no Spark."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from strandline.catalog import audit, open_catalog, opened_aside, read_invalidations, read_view, swap
from strandline.declare import load_project
from strandline.dispatch.failpoints import reach
from strandline.dispatch.outbox import fill_outbox
from strandline.dispatch.rebuild import rebuild
from strandline.lake.location import Lake
from strandline.lake.lock import held_lake
from strandline.model.plan import Plan

from .clock import now
from .planning import RunRequest
from .run import make_desk, no_session, run_name
from .workspace import Workspace, require_readable


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuiltTable:
    """What a table's log contains."""

    dataset: str
    table_version: int
    cursors: int
    files: int
    partitions: int
    invalidations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    catalog: str
    """Its address, without the password."""
    tables: tuple[RebuiltTable, ...]
    damaged: Path | None
    """Where an unreadable catalog was moved to."""
    notes: tuple[str, ...] = ()
    """Which events are owed again."""


def rebuild_catalog(folder: Path, environ: Mapping[str, str] | None = None) -> Rebuilt:
    """Fill an empty catalog from the logs and replace the one in use by it. Refuses while somebody writes."""
    project = load_project(folder, os.environ if environ is None else environ)
    lake, at = Lake(root=project.settings.lake), now()
    require_readable(lake)
    url = project.settings.catalog
    with held_lake(lake, at.isoformat(timespec="seconds")), opened_aside(url) as aside:
        workspace = Workspace(project=project, catalog=aside.catalog, lake=lake)
        rebuild(
            make_desk(
                workspace,
                workspace.observe(),
                Plan(as_of=at, tasks=()),
                run_name(at),
                no_session,
                RunRequest(),
            )
        )
        tables = _list_tables(workspace)
        # On a lake of plain files the lock is ours, so no holder of a lease is still running.
        damaged = swap(url, aside, reach, break_leases=lake.local is not None)
    catalog = open_catalog(url, reach)
    try:
        audit(catalog, "rebuild-catalog", {"tables": len(tables), "damaged": str(damaged or "")})
        filled = fill_outbox(project, catalog, lake, now)
        return Rebuilt(catalog=catalog.shown, tables=tables, damaged=damaged, notes=filled.lines)
    finally:
        catalog.close()


def _list_tables(workspace: Workspace) -> tuple[RebuiltTable, ...]:
    jobs = [n.name for n in workspace.project.nodes if n.traits.answers_invalidations]
    invalidated = [row["dataset"] for row in read_invalidations(workspace.catalog, jobs)[0]]
    return tuple(
        RebuiltTable(
            dataset=record.dataset,
            table_version=record.table_version,
            cursors=len(record.cursors),
            files=len(record.files),
            partitions=len(record.partitions),
            invalidations=invalidated.count(record.dataset),
        )
        for record in read_view(workspace.catalog).nodes.values()
    )
