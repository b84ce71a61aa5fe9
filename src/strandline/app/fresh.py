"""`query --fresh` and `query --engine spark`: the two kinds of query that need Spark."""

import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Never

from strandline.catalog import open_catalog
from strandline.dispatch.rebuild import rebuild
from strandline.ingest.inbox import begin, list_inbox, locate, remembers_all
from strandline.lake.location import Lake
from strandline.model.errors import CallError, OutsideError
from strandline.plan.selection import upstream
from strandline.sql.query_names import find_metadata_columns, find_tables, require_reading

from .clock import now
from .planning import RunRequest, make_plan
from .query import KnownAt, QueryResult, hide_metadata, parse_known_at, pin_tables, query
from .run import make_desk, run, run_name
from .watching import Watcher
from .workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRequest:
    """A query that needs Spark: of what a run would publish, or in Spark's SQL."""

    sql: str
    fresh: bool
    known_at: str | None = None


def query_with_spark(workspace: Workspace, request: QueryRequest) -> QueryResult:
    if request.fresh:
        return query_fresh(workspace, request.sql)
    known_at = None if request.known_at is None else parse_known_at(workspace.project, request.known_at)
    return query_spark(workspace, request.sql, known_at)


def query_fresh(workspace: Workspace, sql: str) -> QueryResult:
    """Record sets and streams as a run would leave them, in a temporary copy of the lake.

    Nothing is committed.

    The files of the copy are links.
    """
    require_reading(sql)
    project, lake = workspace.project, workspace.lake
    if lake.local is None:
        raise CallError(
            "--fresh works on links to the lake's files, and this lake is not on a local disk.",
            remedy="Run `strandline run` first, then query without --fresh.",
            slug="fresh-needs-local-lake",
        )
    named = {project.readable[t] for t in find_tables(sql, project.readable)}
    refreshed = upstream(project, {n for n in named if not project.get(n).traits.computes})
    published = sorted(n for n in named if project.get(n).traits.computes)
    scratch = Path(
        tempfile.mkdtemp(
            prefix="strandline-fresh-", dir=lake.local.parent if lake.local.parent.exists() else None
        )
    )
    try:
        for name in refreshed | set(published):
            _link_table(lake.local / name, scratch / "lake" / name)
            if project.get(name).traits.inbox:
                _link_inbox(lake.inbox(name), Lake(root=str(scratch / "lake")).inbox(name))
        shadow = _open_shadow(workspace, scratch)
        try:
            outcome = run(
                shadow, RunRequest(select=" ".join(sorted(refreshed)) or None, accept_guard=()), Watcher()
            )
            if failed := next((r for r in outcome.results if r.error and not r.partly), None):
                raise OutsideError(
                    f"`{failed.node}` could not be folded in: {failed.error}", slug=failed.slug
                )
            return replace(query(shadow, sql), published_only=tuple(published))
        finally:
            shadow.catalog.close()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def query_spark(workspace: Workspace, sql: str, known_at: KnownAt | None) -> QueryResult:
    """The same tables, queried with Spark's SQL."""
    from strandline.compute.asking import ask
    from strandline.spark.session import get_session

    require_reading(sql)
    shown = find_metadata_columns(sql)
    pinned = pin_tables(workspace, sql, known_at)
    session, starred = get_session(workspace.project.settings), hide_metadata(sql, pinned, shown)
    columns, rows = ask(session, workspace.lake, workspace.project.calendar, pinned, starred, shown)
    return QueryResult(
        engine="spark", columns=columns, rows=rows, version={t.dataset: t.version for t in pinned}
    )


def _open_shadow(workspace: Workspace, scratch: Path) -> Workspace:
    """The project over the linked tables, with a catalog filled from their logs."""
    settings = replace(
        workspace.project.settings, lake=str(scratch / "lake"), catalog=f"sqlite:///{scratch / 'catalog.db'}"
    )
    project = replace(workspace.project, settings=settings)
    shadow = Workspace(project=project, catalog=open_catalog(settings.catalog), lake=Lake(root=settings.lake))
    plan, observed = make_plan(shadow, RunRequest(select=None))
    rebuild(make_desk(shadow, observed, plan, run_name(now()), _no_session, RunRequest()))
    return shadow


def _no_session() -> Never:
    raise AssertionError("filling a catalog starts no Spark")


def _link_table(table: Path, target: Path) -> None:
    """The same table at another address: its log is copied, its files are linked."""
    if not table.exists():
        return
    for folder, _, files in os.walk(table):
        there = target / Path(folder).relative_to(table)
        there.mkdir(parents=True, exist_ok=True)
        for name in files:
            if "_delta_log" in folder:
                shutil.copy2(Path(folder, name), there / name)
            else:
                os.link(Path(folder, name), there / name)


def _link_inbox(inbox: Path, target: Path) -> None:
    """What waits in an inbox, which a run puts away, at another address."""
    if remembers_all(inbox):
        begin(target)
    for post in list_inbox(inbox):
        file = locate(target, post.path)
        file.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):  # received since it was listed: its messages are in the table
            os.link(locate(inbox, post.path), file)
