"""The result of a job, computed without the code that it judges (L2).

Nothing here uses scopes, ranges or lookups: an oracle that shares them would share their mistakes. Every
table is read by Spark, whole.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import Any
from zoneinfo import ZoneInfo

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, StringType

from strandline.compute.job.code import compute, compute_whole
from strandline.compute.job.rows import lower_columns
from strandline.lake.work import Work
from strandline.model.columns import quote
from strandline.model.node import By, Input, Via
from strandline.model.project import Calendar, Job, Partitioning, Unit

_DAYS_OF_400_YEARS = 146_097
_NAME = "__name"
_RANK, _ROW, _HASH = "__rank", "__row", "__h"


def expect_job(work: Work, job: Job) -> DataFrame:
    """The user's code over everything. Partitions that wait to be final are left out."""
    whole = lower_columns(job, compute_whole(work, job))
    waiting = _find_waiting(work, job.partition) if job.partition is not None and work.waiting else []
    if job.partition is None or (set(job.key) <= set(whole.columns) and not waiting):
        return whole
    if set(job.key) <= set(whole.columns):
        name = _name_column(job.partition, work.project.calendar, whole, job.key)
        return whole.where(~name.isin(waiting))
    return _expect_each(work, job, job.partition, waiting)


def _find_waiting(work: Work, partitioning: Partitioning) -> list[str]:
    """The partitions that are recorded as waiting, and rightly so.

    One that is final by the newest value of its group should have been built.
    """
    if partitioning.final_after is None:
        return []
    first: dict[str, str] = {}

    def place(own: str) -> tuple[int, str]:
        return (int(re.split(r"(?<=\d)-", own)[0]), "") if partitioning.size is not None else (0, own)

    for input_ in work.node.inputs:
        if isinstance(input_.relation, By):
            rows = work.read_live(input_.dataset)
            *groups, column = input_.relation.columns
            newest = (
                rows.groupBy(*map(quote, groups))
                .agg(F.max(quote(column)).alias(column))
                .where(F.col(quote(column)).isNotNull())
            )
            name = _name_column(
                partitioning,
                work.project.calendar,
                newest,
                input_.relation.columns,
                behind=partitioning.final_after,
            )
            for group, _, own in (row[0].rpartition("/") for row in newest.select(name).collect()):
                first[group] = max(first.get(group, own), own, key=place)
    split = {name: name.rpartition("/") for name in work.waiting}
    dated = {
        name: (group, own) for name, (group, _, own) in split.items() if own != "null"
    }  # rows without a value wait for nothing
    return [
        name
        for name, (group, own) in dated.items()
        if group not in first or place(own) >= place(first[group])
    ]


def _expect_each(work: Work, job: Job, partitioning: Partitioning, waiting: Sequence[str]) -> DataFrame:
    """Each partition computed from its own rows, where the result lacks the partition column."""
    named = {}
    for input_ in work.node.inputs:
        if isinstance(input_.relation, By):
            rows = work.read_live(input_.dataset)
            named[input_.name] = rows.withColumn(
                _NAME, _name_column(partitioning, work.project.calendar, rows, input_.relation.columns)
            )
    names = {row[0] for rows in named.values() for row in rows.select(_NAME).distinct().collect()}
    results = []
    for name in sorted((names | set(work.partitions)) - set(waiting)):
        inputs = {i.name: _rows_of(work, i, name, named) for i in work.node.inputs}
        results.append(lower_columns(job, compute(work, job, inputs)).localCheckpoint(eager=True))
    return (
        reduce(DataFrame.unionByName, results)
        if results
        else lower_columns(job, compute_whole(work, job)).limit(0)
    )


def _rows_of(work: Work, input_: Input, name: str, named: Mapping[str, DataFrame]) -> DataFrame:
    """The rows of an input that one partition is computed from."""
    match input_.relation:
        case By():
            return named[input_.name].where(F.col(_NAME) == name).drop(_NAME)
        case Via(input=through, on=on):
            there = _rows_of(work, work.node.get_input(through), name, named)
            keys_there = there.select(
                *(F.col(quote(theirs)).alias(f"__on{i}") for i, (_, theirs) in enumerate(on))
            ).distinct()
            same = [F.col(f"__on{i}").eqNullSafe(F.col(quote(ours))) for i, (ours, _) in enumerate(on)]
            return work.read_live(input_.dataset).join(keys_there, same, "left_semi")
        case _:
            return work.read_live(input_.dataset)


def _name_column(
    partitioning: Partitioning,
    calendar: Calendar,
    rows: DataFrame,
    columns: Sequence[str],
    *,
    behind: int | None = None,
) -> Column:
    """The name of each row's partition, in plain Python.

    With `behind`, the name of the partition that is this far behind it: the first that is not final yet.
    """
    size, unit, zone = partitioning.size, partitioning.unit, calendar.timezone
    kind, value = rows.schema[columns[-1]].dataType, F.col(quote(columns[-1]))
    is_date = isinstance(kind, DateType)
    if unit is not None:
        value = F.unix_date(value) if is_date else F.unix_micros(value.cast("timestamp"))

    def name(*values: Any) -> str:
        *groups, own = values
        texts = [
            "null" if g is None else "%6Eull" if g == "null" else g.replace("%", "%25").replace("/", "%2F")
            for g in groups
        ]
        if own is None:
            return "/".join([*texts, "null"])
        if behind is not None:
            own = int(own) - behind + 1 if size is not None else _go_back(own, behind, is_date=is_date)
        if size is not None:
            start = int(own) // size * size
            return "/".join([*texts, f"{start}-{start + size}"])
        return "/".join([*texts, _time_text(own, unit, None if is_date else zone)])

    return F.udf(name, StringType())(*(F.col(quote(c)).cast("string") for c in columns[:-1]), value)


def _go_back(number: int, seconds: int, *, is_date: bool) -> int:
    """The day or microsecond that is `seconds` and two hours earlier. Clocks may be set back by that much."""
    seconds += 2 * 3600
    return (number * 86_400 - seconds) // 86_400 if is_date else number - seconds * 1_000_000


def _time_text(number: int, unit: Unit | None, zone: str | None) -> str:
    """A day since 1970, or a microsecond in a time zone, as it appears in a partition's name.

    Calendar and zone rules repeat after 400 years, so years that Python lacks are looked up in ones that it
    has.
    """
    since = timedelta(days=number) if zone is None else timedelta(microseconds=number)
    cycles = (since.days + 719_162) // _DAYS_OF_400_YEARS
    shift = 5 - cycles if cycles > 23 else 1 - cycles if cycles < 1 else 0
    at = datetime(1970, 1, 1, tzinfo=UTC) + since + timedelta(days=shift * _DAYS_OF_400_YEARS)
    local = at if zone is None else at.astimezone(ZoneInfo(zone))
    text = f"{local.year - 400 * shift:04}-{local.month:02}"
    if unit is not Unit.MONTH:
        text += f"-{local.day:02}" + (f"T{local.hour:02}" if unit is Unit.HOUR else "")
    return text
