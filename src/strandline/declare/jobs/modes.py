"""Which keys a job's mode needs, and which it cannot use."""

import re

from strandline.declare.names import lowered
from strandline.declare.yaml_lines import DataPath, Document
from strandline.model.project import Mode, Partitioning, Unit
from strandline.model.report import Report

from .spec import JobSpec, PartitionSpec

_OF_MODE = {"key": Mode.KEYED, "cursor_column": Mode.CURSOR, "unique_key": Mode.CURSOR}
_DURATION = re.compile(r"\s*(\d+)\s*(second|minute|hour|day|week)s?\s*")
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 7 * 86_400}
THRESHOLD = "finality_threshold"
"""The seed's word for `final_after`, under `config`."""


def scope_key(spec: JobSpec, mode: Mode, partition: Partitioning | None) -> tuple[str, ...]:
    """The columns that determine to which scope a row of the output belongs."""
    match mode:
        case Mode.KEYED:
            return lowered(spec.incremental.key if spec.incremental else None)
        case Mode.CURSOR:
            return lowered(
                [spec.incremental.cursor_column]
                if spec.incremental and spec.incremental.cursor_column
                else None
            )
        case Mode.PARTITION if partition:
            return (*partition.by, partition.column)
        case _:
            return ()


def check_mode(spec: JobSpec, mode: Mode, path: DataPath, document: Document, report: Report) -> None:
    """Report every key that the mode needs and lacks, and every key that only another mode uses."""
    incremental = spec.incremental
    if mode is Mode.KEYED and incremental is not None and not incremental.key:
        what = f"job `{spec.name}` is keyed but has no key."
        remedy = "Add `key: [<columns of the output>]` to `incremental`."
        report.add("keyed-without-key", what, remedy, document.place(*path, "incremental"))
    if mode is Mode.CURSOR and incremental is not None and not incremental.cursor_column:
        what = f"job `{spec.name}` has mode `cursor` but no `cursor_column`."
        remedy = "Add `cursor_column: <column of inputs and output>` to `incremental`."
        report.add("cursor-without-column", what, remedy, document.place(*path, "incremental"))
    if mode is Mode.PARTITION and spec.partition is None:
        what = f"job `{spec.name}` has mode `partition` but does not define what a partition is."
        remedy = "Add `partition: {column: <column>, size: 10000}`, or `unit: day` instead of `size`."
        report.add("partition-without-column", what, remedy, document.place(*path, "incremental"))
    _check_append(spec, mode, path, document, report)
    if mode is not Mode.PARTITION and spec.partition is not None:
        what = f"job `{spec.name}` has `partition`, which only mode `partition` uses."
        report.add(
            "unused-key",
            what,
            "Remove `partition`, or write `mode: partition`.",
            document.place(*path, "partition"),
        )
    for word, of in _OF_MODE.items():
        # `_check_append` has reported this one.
        reported = word == "unique_key" and spec.update_strategy == "append"
        if incremental is not None and mode is not of and getattr(incremental, word) and not reported:
            what = f"job `{spec.name}` has mode `{mode}` and `{word}`, which only mode `{of}` uses."
            instead = " and remove `partition`" if spec.partition is not None else ""
            report.add(
                "unused-key",
                what,
                f"Remove `{word}`, or write `mode: {of}`{instead}.",
                document.place(*path, "incremental", word),
            )
    if mode is Mode.FULL and incremental is not None and incremental.inputs:
        what = f"job `{spec.name}` has mode `full` and `inputs`, but this mode reads every input whole."
        report.add(
            "unused-key",
            what,
            "Remove `inputs`, or write `mode: keyed` with a `key`.",
            document.place(*path, "incremental", "inputs"),
        )


def _check_append(spec: JobSpec, mode: Mode, path: DataPath, document: Document, report: Report) -> None:
    unique_key = spec.incremental.unique_key if spec.incremental else None
    if spec.update_strategy == "append" and mode is not Mode.CURSOR:
        what = f"job `{spec.name}` appends in mode `{mode}`; only mode `cursor` can append."
        without = " without `unique_key`" if unique_key else ""
        remedy = (
            "Write `mode: cursor` with a `cursor_column` and a `unique_key`,"
            f" or `update_strategy: replace`{without}."
        )
        report.add("append-without-cursor", what, remedy, document.place(*path, "update_strategy"))
    elif spec.update_strategy == "append" and not unique_key:
        what = (
            f"job `{spec.name}` appends but has no `unique_key`,"
            " so new rows could not be distinguished from published ones."
        )
        remedy = "Add `unique_key: [<columns of the output>]` to `incremental`."
        report.add("append-without-key", what, remedy, document.place(*path, "incremental"))
    elif unique_key and mode is Mode.CURSOR and spec.update_strategy == "replace":
        what = (
            f"job `{spec.name}` replaces and has a `unique_key`, which only `update_strategy: append` uses."
        )
        remedy = "Remove `unique_key`, or write `update_strategy: append`."
        report.add("unused-key", what, remedy, document.place(*path, "incremental", "unique_key"))


def make_partitioning(
    spec: JobSpec, path: DataPath, document: Document, report: Report
) -> Partitioning | None:
    declared = spec.partition
    if declared is None:
        return None
    if (declared.size is None) == (declared.unit is None):
        has = "both" if declared.size else "neither"
        what = (
            f"`partition` of job `{spec.name}` needs either `size` (numbers) or `unit` (times),"
            f" and has {has}."
        )
        report.add(
            "partition-size", what, "Write `size: 10000`, or `unit: day`.", document.place(*path, "partition")
        )
        return None
    return Partitioning(
        column=declared.column.lower(),
        size=declared.size,
        unit=Unit(declared.unit) if declared.unit else None,
        final_after=_final_after(spec, declared, path, document, report),
        by=lowered(declared.by),
    )


def _final_after(
    spec: JobSpec, declared: PartitionSpec, path: DataPath, document: Document, report: Report
) -> int | None:
    in_config = THRESHOLD in spec.config and declared.final_after is None
    value = spec.config[THRESHOLD] if in_config else declared.final_after
    place = (
        document.place(*path, "config", THRESHOLD)
        if in_config
        else document.place(*path, "partition", "final_after")
    )
    if value is None:
        return None
    if declared.size is not None:
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        report.add(
            "final-after",
            f"`final_after` of job `{spec.name}` is `{value}`, not a whole number of at least 0.",
            "Write `100`.",
            place,
        )
        return None
    duration = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if duration is None:
        what = f"`final_after` of job `{spec.name}` is `{value}`, not a duration."
        report.add("final-after", what, "Write `2 days` or `36 hours`.", place)
        return None
    return int(duration[1]) * _SECONDS[duration[2]]
