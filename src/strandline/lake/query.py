"""SQL over published tables by delta-rs (DataFusion), with answers as plain values. Starts no Spark."""

import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import reduce
from operator import and_
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.dataset
from deltalake import QueryBuilder, write_deltalake

from strandline.model.columns import DELETED, HEAD, INGESTED_AT, METADATA_COLUMNS, ROLE
from strandline.model.errors import CallError, OutsideError
from strandline.model.timeline import KeyStatus
from strandline.model.traits import Part
from strandline.sql.literals import datafusion_literal, datafusion_name

from .location import open_folder
from .log import LogEntry, read_entries
from .plain_values import plain_column, plain_rows
from .state import require_all_files
from .table import Table, open_table

ENGINE = "datafusion"
CHECKED_PARQUET = pyarrow.dataset.ParquetFileFormat(page_checksum_verification=True)
FILE = "__filename"
"""Arrow's name for the file a row was read from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A table under its name in SQL, at one version."""

    name: str
    dataset: str
    uri: str
    version: int
    live_only: bool
    """Snapshots and keyed outputs contain `_deleted` rows, which readers do not see."""
    in_order: Callable[[Iterable[str]], list[str]] = list
    """Puts the table's columns in the order in which readers see them: as they are declared."""
    part: Part | None = None
    """Only the rows of one role, with columns of their own."""
    defaults: Mapping[str, object] = field(default_factory=dict)
    """By column of the part: what NULL stands for in the head of a current key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    versions: Mapping[str, int]


def query_tables(sql: str, tables: Iterable[Published], shown: Collection[str] = ()) -> Answer:
    """Run SQL over these tables.

    Each is a view that hides deleted rows, and metadata columns that are not in `shown`.
    """
    answer, versions = _ask(sql, tables, shown)
    return Answer(columns=tuple(answer.column_names), rows=_plain(answer), versions=versions)


def query_slices(
    sql: str, tables: Iterable[Published], shown: Collection[str], size: int
) -> Iterator[tuple[tuple[object, ...], ...]]:
    """The same rows, of which only some at once are plain values."""
    answer, _ = _ask(sql, tables, shown)
    for start in range(0, answer.num_rows, size):
        yield _plain(answer.slice(start, size))


def _ask(sql: str, tables: Iterable[Published], shown: Collection[str]) -> tuple[Any, dict[str, int]]:
    """The answer, and by dataset the version that was read."""
    session, versions = QueryBuilder(), {}
    for published in tables:
        table = _open(published)
        raw = f"__raw_{published.name}"
        table.register(session, raw)
        _run(
            session,
            f"CREATE VIEW {datafusion_name(published.name)} AS {_select(published, table, raw, shown)}",
        )
        versions[published.dataset] = table.version
    return _run(session, sql), versions


def _plain(answer: Any) -> tuple[tuple[object, ...], ...]:
    columns = [plain_column(answer.column(i)) for i in range(answer.num_columns)]
    return tuple(zip(*columns, strict=True)) if columns else ()


def write_records(folder: Path, columns: Mapping[str, str], rows: Sequence[Mapping[str, object]]) -> None:
    """Write rows that are in no table of the lake as a table, so that SQL can read them.

    Nested values become JSON.
    """
    kinds = {"string": pa.string(), "bigint": pa.int64(), "timestamp": pa.timestamp("us", tz="UTC")}
    data = {name: pa.array([_flat(row[name]) for row in rows], kinds[kind]) for name, kind in columns.items()}
    write_deltalake(str(folder), pa.table(data))


def _flat(value: object) -> object:
    return json.dumps(value, sort_keys=True) if isinstance(value, dict | list) else value


def find_rows(uri: str, where: Mapping[str, object]) -> list[dict[str, object]]:
    """The rows of a table whose columns have these values, including metadata and deleted rows."""
    table = open_table(uri)
    if table is None:
        return []
    session = table.register(QueryBuilder(), "__rows")
    literals = {name: datafusion_literal(value) for name, value in where.items()}
    conditions = [f"{datafusion_name(name)} = {text}" for name, text in literals.items() if text is not None]
    rows = plain_rows(
        _run(session, f'SELECT * FROM "__rows"{" WHERE " if conditions else ""}{" AND ".join(conditions)}')
    )
    others = [name for name, text in literals.items() if text is None]
    return [row for row in rows if all(_is_same(row[name], where[name]) for name in others)]


def _is_same(one: object, other: object) -> bool:
    return one == other or (one != one and other != other)


def find_appended_rows(uri: str, where: Mapping[str, object]) -> list[tuple[int | None, dict[str, object]]]:
    """The same for a table that is only appended to, each row with the version that added it."""
    table = open_table(uri)
    if table is None or not table.paths:
        return []
    file_system, root = open_folder(uri)
    schema = table.arrow_schema
    table.require_sound()
    files = pyarrow.dataset.dataset(
        [f"{root}/{path}" for path in table.paths], schema, CHECKED_PARQUET, file_system
    )
    try:
        rows = plain_rows(files.to_table([*schema.names, FILE], match_values(where, schema)))
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(error) from error
    entries = list(read_entries(uri, -1))
    added = {added.path: entry for entry in entries for added in entry.added}
    return [
        (_version_of(added.get(str(row.pop(FILE)).removeprefix(f"{root}/")), row, entries), row)
        for row in rows
    ]


def match_values(where: Mapping[str, object], schema: pa.Schema) -> pyarrow.dataset.Expression:
    """The condition that columns have these values."""
    conditions = [
        _is_value(pyarrow.dataset.field(name), value, _type_of(name, schema)) for name, value in where.items()
    ]
    return reduce(and_, conditions)


def _is_value(
    column: pyarrow.dataset.Expression, value: object, kind: pa.DataType
) -> pyarrow.dataset.Expression:
    return (
        column.is_nan()
        if isinstance(value, float) and math.isnan(value)
        else column == pa.scalar(value, kind)
    )


def _version_of(entry: LogEntry | None, row: Mapping[str, object], entries: Sequence[LogEntry]) -> int | None:
    """The commit that added a row's file.

    If a compaction wrote the file, it is the first commit of rows after the row was received.
    """
    if entry is not None and entry.changes_rows:
        return entry.version
    at = row.get(INGESTED_AT)
    later = (
        e.version
        for e in entries
        if e.changes_rows and e.committed_at and isinstance(at, datetime) and e.committed_at >= at
    )
    return next(later, None)


def parse_values(uri: str, texts: Mapping[str, str]) -> dict[str, object]:
    """Values from text, in the types of a table's columns."""
    if (table := open_table(uri)) is None:
        return dict(texts)
    schema = table.arrow_schema
    return {name: _parse(name, text, _type_of(name, schema)) for name, text in texts.items()}


def _type_of(name: str, schema: pa.Schema) -> pa.DataType:
    """The type of a declared column. The table may be older than the declaration."""
    if name not in schema.names:
        raise CallError(
            f"The table has no column `{name}`: it was written before the column was declared.",
            remedy="Run `strandline run`. Of a dataset that is frozen: `strandline backfill NAME --all`.",
            slug="not-built",
        )
    return schema.field(name).type


def _parse(name: str, text: str, kind: Any) -> object:
    try:
        if pa.types.is_timestamp(kind):
            at = datetime.fromisoformat(text)
            return at.replace(tzinfo=UTC) if at.tzinfo is None else at
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            return bytes.fromhex(text.removeprefix("0x"))
        return float(text) if pa.types.is_floating(kind) else pa.scalar(text).cast(kind).as_py()
    except (ValueError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise CallError(
            f"`{text}` is not a value of `{name}`, which is {kind}.",
            remedy="Write it as query prints it.",
            slug="bad-value",
        ) from None


def read_fields(published: Published) -> list[tuple[str, object]]:
    """All columns that a reader may name, including metadata, with their types as in Delta's JSON schema."""
    kinds = _kinds(json.loads(_open(published).schema_json))
    if published.part is None:
        return [(name, kinds[name]) for name in published.in_order(kinds)]
    details = _kinds(kinds[HEAD])
    return [
        *((name, kinds[name]) for name in part_columns(published.part, published.in_order(kinds))),
        *((name, details[name]) for name in published.part.details),
    ]


def _kinds(schema: Any) -> dict[str, object]:
    return {column["name"]: column["type"] for column in schema["fields"]}


def part_columns(part: Part, names: Iterable[str]) -> list[str]:
    """The columns of a table that are columns of a part."""
    return list(part.columns) or visible_columns(names, ())


def visible_columns(names: Iterable[str], shown: Collection[str]) -> list[str]:
    """The columns that a reader sees.

    A source of messages has only metadata columns, and then all are visible.
    """
    known = list(names)
    visible = [name for name in known if name not in METADATA_COLUMNS or name in shown]
    return visible if any(name not in METADATA_COLUMNS for name in known) else known


def _select(published: Published, table: Table, raw: str, shown: Collection[str]) -> str:
    names = published.in_order(table.names)
    if published.part is not None:
        return _select_part(published.part, names, raw, published.defaults)
    where = f" WHERE NOT {datafusion_name(DELETED)}" if published.live_only and DELETED in names else ""
    columns = ", ".join(datafusion_name(name) for name in visible_columns(names, shown))
    return f"SELECT {columns} FROM {datafusion_name(raw)}{where}"


def _select_part(part: Part, names: list[str], raw: str, defaults: Mapping[str, object]) -> str:
    columns = [datafusion_name(name) for name in part_columns(part, names)]
    for name in part.details:
        value = f"{datafusion_name(HEAD)}['{name}']"
        default = datafusion_literal(defaults[name]) if name in defaults else None
        if default:
            current = f"{datafusion_name(HEAD)}['status'] = '{KeyStatus.CURRENT}'"
            value = f"CASE WHEN {current} THEN coalesce({value}, {default}) ELSE {value} END"
        columns.append(f"{value} AS {datafusion_name(name)}")
    where = f"{datafusion_name(ROLE)} = '{part.role}'"
    return f"SELECT {', '.join(columns)} FROM {datafusion_name(raw)} WHERE {where}"


def _run(session: QueryBuilder, sql: str) -> Any:
    try:
        return pa.table(session.execute(sql).read_all())
    except Exception as error:  # noqa: BLE001 delta-rs raises bare Exceptions if reading rows fails
        explain_failure(error)


def explain_failure(error: Exception) -> NoReturn:
    """Raise what DataFusion says, as one line. A fault of the storage is not the caller's."""
    text = " ".join(str(error).split())
    if any(
        word in text
        for word in ("Object at location", "object_store", "Generic ", "Parquet", "Deletion Vector")
    ):
        raise _unreadable(error) from error
    raise CallError(
        f"DataFusion refuses the query: {text}",
        remedy="Correct the SQL, which is DataFusion's here; `--engine spark` uses Spark's.",
        slug="bad-sql",
    ) from error


def _unreadable(error: Exception) -> OutsideError:
    return OutsideError(
        f"A file of the lake cannot be read: {' '.join(str(error).split())}",
        remedy="Run `strandline doctor --deep`; the table's files were moved, removed or damaged.",
        slug="lake-unreadable",
    )


def _open(published: Published) -> Table:
    table = open_table(published.uri, published.version)
    if table is None:
        raise CallError(
            f"`{published.name}` has never been built.",
            remedy="Run `strandline run` first.",
            slug="never-built",
        )
    require_all_files(table)
    return table
