"""`query`: read published data with SQL, without Spark."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches

from strandline.lake.log import list_versions, read_entries
from strandline.lake.query import ENGINE, Published, query_tables, read_fields, visible_columns
from strandline.model.columns import METADATA_COLUMNS
from strandline.model.errors import CallError
from strandline.model.json_values import instant_text
from strandline.model.node import Node, Project
from strandline.plan.selection import get_nodes
from strandline.sql.dialect import Rewritten, delta_type, rewrite
from strandline.sql.query_names import (
    find_metadata_columns,
    find_tables,
    is_about_plans,
    keep_stars,
    require_reading,
)

from .clock import parse_instant
from .reading import Readable
from .records import RECORDS, record_tables
from .watermarks import read_defaults

_NOT_FOUND = re.compile(r"table '(?:[^'.]*\.)*([^'.]+)' not found")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownAt:
    """The state of knowledge that a query is about: an instant, or table versions by node.

    Nodes without a version are read at their newest.
    """

    at: datetime | None = None
    versions: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResult:
    engine: str
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    """Plain values: instants with their zone, dates, decimals, numbers, text, lists and mappings."""
    version: Mapping[str, int]
    """By node: the table version that was read."""
    published_only: tuple[str, ...] = ()
    """With `--fresh`: what was read as published although an input of it is newer."""
    notes: tuple[str, ...] = ()
    """What in the query may be answered differently from Spark."""


def query(workspace: Readable, sql: str, known_at: KnownAt | None = None) -> QueryResult:
    """Run one reading statement of DataFusion's SQL over the tables it names.

    It has Spark's meaning wherever `dialect` can give it that.
    """
    require_reading(sql)
    with record_tables(workspace.project, sql) as records:
        return query_pinned(workspace.project, sql, (*pin_tables(workspace, sql, known_at), *records))


def query_pinned(
    project: Project, sql: str, tables: tuple[Published, ...], published_only: tuple[str, ...] = ()
) -> QueryResult:
    """The same, over tables that the caller has pinned, or built in a temporary folder."""
    shown = find_metadata_columns(sql)
    rewritten = _rewrite(sql, tables, shown)
    try:
        answer = query_tables(rewritten.sql, tables, shown)
    except CallError as error:
        if missing := _NOT_FOUND.search(error.what):
            raise _unknown_table(project, missing[1]) from error
        raise
    return QueryResult(
        engine=ENGINE,
        columns=answer.columns,
        rows=answer.rows,
        version=answer.versions,
        published_only=published_only,
        notes=tuple(str(note) for note in rewritten.notes_for(len(answer.rows))),
    )


def hide_metadata(sql: str, tables: Iterable[Published], shown: frozenset[str]) -> str:
    """The statement with stars that mean the declared columns, although it names metadata columns too."""
    return keep_stars(sql, {table.name: _exposed(table, shown) for table in tables}) if shown else sql


def _rewrite(sql: str, tables: tuple[Published, ...], shown: frozenset[str]) -> Rewritten:
    if is_about_plans(sql):
        return Rewritten(sql=sql, notes=())
    columns = {}
    for table in tables:
        kinds = dict(read_fields(table))
        columns[table.name] = [(name, delta_type(kinds[name])) for name in visible_columns(kinds, shown)]
    return rewrite(hide_metadata(sql, tables, shown), columns)


def parse_known_at(project: Project, text: str) -> KnownAt:
    """`--known-at`: an instant, or `DATASET=VERSION,...`."""
    if "=" not in text:
        return KnownAt(at=parse_instant(text), versions={})
    versions = {}
    for part in text.split(","):
        name, _, version = (piece.strip() for piece in part.partition("="))
        if not version.isdigit():
            raise CallError(
                f"`{part.strip()}` is not DATASET=VERSION.",
                remedy="Write it as `demand=3,property=12`.",
                slug="bad-known-at",
            )
        versions[project.readable.get(name) or get_nodes(project, name)[0]] = int(version)
    return KnownAt(versions=versions)


def pin_tables(workspace: Readable, sql: str, known_at: KnownAt | None) -> tuple[Published, ...]:
    """The tables a statement names, each at the requested version."""
    names = find_tables(sql, workspace.project.readable)
    return tuple(pin_table(workspace, name, known_at) for name in names)


def _refuse_unbuilt(node: Node, name: str) -> CallError:
    """A table that does not exist: it was never built, or it has had no row so far."""
    if node.traits.may_lack_table:
        return CallError(
            f"`{name}` has no table, because it has had no row so far.",
            remedy="Nothing has to be done: its first row creates it.",
            slug="never-built",
        )
    return CallError(
        f"`{name}` has never been built.", remedy="Run `strandline run` first.", slug="never-built"
    )


def pin_table(workspace: Readable, name: str, known_at: KnownAt | None) -> Published:
    """A table by its name in SQL, at the requested version."""
    project = workspace.project
    dataset = project.readable[name]
    uri = workspace.lake.table(dataset)
    versions = list_versions(uri)
    if not versions:
        raise _refuse_unbuilt(workspace.project.get(dataset), name)
    version = versions[-1]
    if known_at is not None and known_at.at is not None:
        version = _version_at(uri, name, known_at.at)
    elif known_at is not None:
        version = known_at.versions.get(dataset, version)
    if not versions[0] <= version <= versions[-1]:
        remedy = (
            f"It has {versions[0]} to {versions[-1]}: write for example `--known-at {name}={versions[-1]}`."
        )
        raise CallError(f"`{name}` has no version {version}.", remedy=remedy, slug="unknown-version")
    if known_at is not None:
        _require_kept(uri, name, version)
    node, part = project.parts.get(name, (project.get(dataset), None))
    return Published(
        name=name,
        dataset=dataset,
        uri=uri,
        version=version,
        live_only=not node.traits.only_grows,
        in_order=node.in_order,
        part=part,
        defaults=read_defaults(workspace.lake, node, version) if part else {},
    )


def _require_kept(uri: str, name: str, version: int) -> None:
    """Refuse a version whose files were removed. A later commit records that."""
    readable_from = max(
        (e.metadata.readable_from for e in read_entries(uri, version) if e.metadata), default=0
    )
    if version < readable_from:
        raise CallError(
            f"The files of version {version} of `{name}` are gone: `maintain` kept it from"
            f" version {readable_from} on.",
            remedy=f"Query it at `--known-at {name}={readable_from}` or later;"
            " `settings.keep` says how much is kept from now on.",
            slug="not-kept",
        )


def _version_at(uri: str, name: str, at: datetime) -> int:
    """The last version committed at or before an instant."""
    commits = [(e.version, e.committed_at) for e in read_entries(uri, -1) if e.committed_at is not None]
    known = [version for version, committed_at in commits if committed_at <= at]
    if not known:
        first = (
            f"Its first version is from then: `--known-at {instant_text(commits[0][1])}`."
            if commits
            else "Its log is gone."
        )
        raise CallError(f"`{name}` did not exist at {instant_text(at)}.", remedy=first, slug="not-known-then")
    return known[-1]


def _exposed(table: Published, shown: frozenset[str]) -> list[str]:
    names = [name for name, _ in read_fields(table)]
    only_metadata = all(name in METADATA_COLUMNS for name in names)
    return [] if only_metadata else [name for name in names if name in shown]


def _unknown_table(project: Project, name: str) -> CallError:
    if name in project.readable:
        return CallError(
            f"`{name}` has never been built.", remedy="Run `strandline run` first.", slug="never-built"
        )
    known = sorted({*project.readable, *RECORDS})
    close = get_close_matches(name, known, 1)
    remedy = f"Did you mean `{close[0]}`?" if close else f"Known: {', '.join(known)}."
    return CallError(f"There is no dataset `{name}`.", remedy=remedy, slug="unknown-table")
