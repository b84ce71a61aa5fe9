"""Received rows -> rows that pass and rows that fail: one decode for runs, backfills and `verify`.

Each row of the result is one offered fact, with its `_outcome`. A message that `where` refuses, or whose list
is absent or empty, is one row `passed_over`. A line that does not parse is one row `quarantined`.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.compute.keys import typed_key
from strandline.model.columns import (
    DELETED,
    INGESTED_AT,
    KEY,
    METADATA_COLUMNS,
    PAYLOAD,
    POSITION,
    RESERVED_PREFIX,
    SOURCE_AT,
    SOURCE_TS,
    TypeName,
    native_name,
    quote,
)
from strandline.model.project import Calendar, Children, FactColumn, FactDataset
from strandline.sql.calendar import inline_calendar
from strandline.sql.job_sql import find_first_names

from .payload import ITEM, MESSAGE, PARENT, evaluate, get_emptied, get_list, get_text, parse_messages
from .source_time import find_source_time
from .values import decode_text, decode_value

OUTCOME, SLUG, REASON = f"{RESERVED_PREFIX}outcome", f"{RESERVED_PREFIX}slug", f"{RESERVED_PREFIX}reason"
ACCEPTED, QUARANTINED, PASSED_OVER, DERIVED, DUPLICATE = (
    "accepted",
    "quarantined",
    "passed_over",
    "derived",
    "duplicate",
)
# Columns that exist only while decoding. A file's column may not begin with this prefix.
_LIST, _MISFIT = (RESERVED_PREFIX + name for name in ("list", "misfit"))
RAW = f"{RESERVED_PREFIX}raw_"
_LARGEST = 20_000_000
"""At most this many characters may be in one string of a message: Spark's JSON parser accepts no more."""
_ESCAPED_BYTES = r"(?<!\\)(\\\\)*\\x[0-9a-f]{2}"
"""How a byte that is not text is shown in received text."""


def decode(received: DataFrame, dataset: FactDataset, calendar: Calendar) -> DataFrame:
    """Decode rows of a source's table.

    `_payload` (the message, or the row as JSON) is kept for the quarantine.
    """
    if dataset.takes_other_columns:
        return _check(_from_columns(received, dataset, calendar), dataset)
    return _check(_from_messages(received, dataset, calendar), dataset)


def _from_messages(received: DataFrame, dataset: FactDataset, calendar: Calendar) -> DataFrame:
    rows = parse_messages(received.select(PAYLOAD, POSITION, INGESTED_AT), PAYLOAD)
    unparsed = F.col(MESSAGE).isNull()
    outcome = F.when(unparsed, QUARANTINED)
    if dataset.where:
        rows, condition = evaluate(rows, inline_calendar(dataset.where, calendar), frozenset())
        outcome = outcome.when(~F.coalesce(condition, F.lit(False)), PASSED_OVER)
    rows = rows.withColumn(OUTCOME, outcome)
    if dataset.explode:
        rows = _explode(rows, dataset)
    for column in dataset.columns:
        rows = _add_message_column(rows, column, calendar)
    undecodable, large = F.col(PAYLOAD).rlike(_ESCAPED_BYTES), F.length(F.col(PAYLOAD)) > _LARGEST
    broken = (
        F.when(undecodable, "The line has bytes that are not text; they are shown as \\xNN.")
        .when(large, "The message is not JSON, or has a string of more than 20,000,000 characters.")
        .otherwise(
            "The line is not one JSON object, a name appears twice in it, or it contains half a character."
        )
    )
    slug = F.when(undecodable, "not-text").when(large, "too-large").otherwise("not-json")
    return rows.withColumns(
        {SLUG: F.when(F.col(MESSAGE).isNull(), slug), REASON: F.when(F.col(MESSAGE).isNull(), broken)}
    )


def _explode(rows: DataFrame, dataset: FactDataset) -> DataFrame:
    rows = rows.withColumn(_LIST, F.when(F.col(OUTCOME).isNull(), get_list(dataset.explode)))
    nothing = F.array(
        F.struct(F.lit(None).cast("variant").alias("parent"), F.lit(None).cast("variant").alias("item"))
    )
    empty = F.coalesce(F.size(_LIST), F.lit(0)) <= 0
    passed_over = F.coalesce(F.col(OUTCOME), F.lit(PASSED_OVER))
    elements = F.when(empty, _with_outcome(nothing, passed_over)).otherwise(
        _with_outcome(F.col(_LIST), F.lit(None))
    )
    if dataset.record_set and dataset.record_set.children is Children.REPLACE:
        # An empty list is the whole truth too, so it leaves one deleting fact of its parent. An absent one
        # says nothing.
        emptied = (
            F.when(F.col(OUTCOME).isNull(), get_emptied(dataset.explode))
            if _is_around(dataset, dataset.record_set.parent_key)
            else F.when(F.col(_LIST).isNotNull() & empty, nothing)
        )
        markers = _with_outcome(emptied, F.lit(DERIVED))
        elements = F.concat(elements, F.coalesce(markers, F.slice(elements, 1, 0)))
    rows = rows.withColumn("__element", F.explode(elements)).drop(_LIST)
    taken = {
        OUTCOME: F.col("__element.outcome"),
        ITEM: F.col("__element.item"),
        PARENT: F.col("__element.parent"),
    }
    return rows.withColumns(taken).drop("__element")


def _with_outcome(elements: Column, outcome: Column) -> Column:
    outcome = outcome.cast("string").alias("outcome")
    return F.transform(
        elements, lambda e: F.struct(outcome, e["parent"].alias("parent"), e["item"].alias("item"))
    )


def _is_around(dataset: FactDataset, names: Sequence[str]) -> bool:
    """Whether a column comes, directly or indirectly, from `parent`, the element around the exploded one."""
    around = {"parent"}
    for column in dataset.columns:
        if column.path[:1] == ("parent",) or (
            column.sql is not None and around & set(find_first_names(column.sql))
        ):
            around.add(column.name)
    return (
        len(dataset.explode) > 1
        and any(step.endswith("[]") for step in dataset.explode)
        and bool(around & set(names))
    )


def _add_message_column(rows: DataFrame, column: FactColumn, calendar: Calendar) -> DataFrame:
    if column.sql is not None:
        return _add_sql_column(rows, column, calendar)
    return _add_decoded(rows, column, get_text(rows, column.path))


def _add_sql_column(rows: DataFrame, column: FactColumn, calendar: Calendar) -> DataFrame:
    above = frozenset(c for c in rows.columns if not c.startswith("__"))
    rows, value = evaluate(rows, inline_calendar(column.sql or "", calendar), above)
    return rows.withColumn(column.name, _typed(value, column))


def _typed(value: Column, column: FactColumn) -> Column:
    return value if column.type is None else value.try_cast(column.type.stored)


def _add_decoded(rows: DataFrame, column: FactColumn, text: Column) -> DataFrame:
    """The decoded value under its name, and its raw text beside it for the checks."""
    assert column.type is not None
    rows = rows.withColumn(RAW + column.name, text)
    raw = F.col(quote(RAW + column.name))
    decoded = decode_text(raw, column.type)
    if column.default is not None:
        decoded = F.when(raw.isNull(), F.lit(column.default).cast(column.type.stored)).otherwise(decoded)
    return rows.withColumn(column.name, decoded)


def _from_columns(received: DataFrame, dataset: FactDataset, calendar: Calendar) -> DataFrame:
    misfit = F.col(PAYLOAD).isNotNull() if PAYLOAD in received.columns else F.lit(False)
    native = [c for c in received.columns if c not in METADATA_COLUMNS]
    as_json = F.to_json(F.struct(*(F.col(quote(c)) for c in native)), {"ignoreNullFields": "true"})
    payload = F.coalesce(F.col(PAYLOAD), as_json) if PAYLOAD in received.columns else as_json
    rows = received.withColumns({PAYLOAD: payload, _MISFIT: misfit})
    outcome = F.when(F.col(_MISFIT), QUARANTINED)
    if dataset.where:
        outcome = outcome.when(
            ~F.coalesce(F.expr(inline_calendar(dataset.where, calendar)), F.lit(False)), PASSED_OVER
        )
    rows = rows.withColumn(OUTCOME, outcome)
    renamed: set[str] = set()
    for column in dataset.columns:
        if column.sql is not None:
            rows = rows.withColumn(column.name, _typed(F.expr(inline_calendar(column.sql, calendar)), column))
            continue
        old = native_name(".".join(column.path))
        if old not in native:
            rows = rows.withColumn(
                column.name, F.lit(column.default).cast(column.type.stored if column.type else "string")
            )
            continue
        value = F.col(quote(old))
        rows = rows.withColumn(RAW + column.name, value.cast("string"))
        decoded = (
            value if column.type is None else decode_value(value, received.schema[old].dataType, column.type)
        )
        if column.default is not None:
            decoded = F.when(
                value.isNull(), F.lit(column.default).cast(column.type.stored if column.type else "string")
            ).otherwise(decoded)
        rows = rows.withColumn(column.name, decoded)
        if old != column.name:
            renamed.add(old)
    declared = {c.name for c in dataset.columns}
    rows = rows.drop(*(old for old in renamed if old not in declared and not old.startswith("__")))
    undecodable = F.col(PAYLOAD).rlike(_ESCAPED_BYTES)
    broken = F.when(undecodable, "The row has bytes that are not text; they are shown as \\xNN.").otherwise(
        "The row has more or fewer fields than its header, or does not fit the types that the source's"
        " columns are stored with."
    )
    slug = F.when(undecodable, "not-text").otherwise("type-changed")
    return rows.withColumns({SLUG: F.when(F.col(_MISFIT), slug), REASON: F.when(F.col(_MISFIT), broken)})


def _check(rows: DataFrame, dataset: FactDataset) -> DataFrame:
    """Values that do not fit, NULL keys and missing required columns; then the metadata columns of a fact."""
    key = dataset.record_set.key if dataset.record_set else dataset.identity
    offered = F.col(OUTCOME).isNull()
    needed = _needed_of_deleting(dataset)
    failures: list[tuple[str, Column, Column]] = []

    def fail(slug: str, column: str, failed: Column, text: Column) -> None:
        # A deleting fact does not need the columns that only a live record needs.
        failures.append(
            (
                slug,
                failed if column in needed or not deletes(dataset) else failed & ~is_deleting(dataset),
                text,
            )
        )

    for column in dataset.columns:
        raw, name = RAW + column.name, quote(column.name)
        if (
            raw in rows.columns
            and column.type is not None
            and column.type.name not in (TypeName.STRING, TypeName.JSON)
        ):
            failed = F.col(quote(raw)).isNotNull() & F.col(name).isNull()
            text = F.concat(
                F.lit(f"`{column.name}` = "),
                F.substring(F.col(quote(raw)), 1, 80),
                F.lit(f" does not fit {column.type}."),
            )
            fail("does-not-fit", column.name, failed, text)
    for name in key:
        fail(
            "null-key",
            name,
            F.col(quote(name)).isNull(),
            F.lit(f"`{name}` is part of the key and is missing."),
        )
    for name in dataset.require:
        fail(
            "required-missing",
            name,
            F.col(quote(name)).isNull(),
            F.lit(f"`{name}` is required and is missing."),
        )
    # One flat list of conditions: Spark looks for common parts of nested ones in a time that doubles with
    # every few of them.
    slugs = [F.when(offered & failed, failure) for failure, failed, _ in failures]
    reasons = [F.when(offered & failed, text) for _, failed, text in failures]
    rows = rows.withColumns(
        {SLUG: F.coalesce(F.col(SLUG), *slugs), REASON: F.coalesce(F.col(REASON), *reasons)}
    )
    rows = rows.withColumn(
        OUTCOME, F.coalesce(F.when(F.col(SLUG).isNotNull(), QUARANTINED), F.col(OUTCOME), F.lit(ACCEPTED))
    )
    return _add_metadata(rows, dataset)


def deletes(dataset: FactDataset) -> bool:
    return dataset.record_set is not None and dataset.record_set.deleted is not None


def is_deleting(dataset: FactDataset) -> Column:
    """Whether a fact says that its record is deleted."""
    assert dataset.record_set is not None
    return (
        F.coalesce(F.expr(dataset.record_set.deleted), F.lit(False))
        if dataset.record_set.deleted
        else F.lit(False)
    )


def _needed_of_deleting(dataset: FactDataset) -> frozenset[str]:
    """Key, order and the columns of `deleted`, with the columns from which these are computed."""
    record_set = dataset.record_set
    if record_set is None:
        return frozenset()
    sql_by_name = {c.name: c.sql for c in dataset.columns if c.sql is not None}
    waiting = [*record_set.key, *record_set.order_by, *find_first_names(record_set.deleted or "NULL")]
    needed: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += find_first_names(sql_by_name.get(name, "NULL"))
    return frozenset(needed)


def _add_metadata(rows: DataFrame, dataset: FactDataset) -> DataFrame:
    source_at, source_ts = find_source_time(rows, dataset, RAW)
    added: dict[str, Column] = {SOURCE_AT: source_at, SOURCE_TS: source_ts}
    if dataset.record_set:
        added[DELETED] = is_deleting(dataset) | (F.col(OUTCOME) == DERIVED)
        added[KEY] = typed_key(dataset.record_set.scope_key)
    elif dataset.identity:
        added[KEY] = typed_key(dataset.identity)
    rows = rows.withColumns(added)
    return rows.drop(*(c for c in rows.columns if c.startswith("__") and c not in (OUTCOME, SLUG, REASON)))
