"""Modes `cursor` and `partition`, and jobs that append: requirements, results, and effects of changes."""

from pathlib import Path

import pytest

from strandline.model.node import By, Input, Lookup, Whole
from strandline.model.project import Job, Mode, Partitioning, Unit
from tests.unit.declare.builders import config_change, line_of, load, report, slugs

BASE = """\
project: x
timezone: UTC
sources:
  block_events: {files: "b/*.jsonl"}
  alert_events: {files: "a/*.jsonl"}
datasets:
  hot_blocks:
    from: block_events
    columns:
      chain_id: {path: c, type: bigint}
      block_number: {path: n, type: bigint}
      block_hash: h
      tx_hash: x
      weight: {path: w, type: bigint}
      block_at: {path: t, type: timestamp}
  limits:
    from: alert_events
    columns: {limit_id: i, least: {path: l, type: bigint}, at: {path: at, type: bigint}}
    record_set: {key: [limit_id], order_by: [at]}
jobs:
  - name: a
    output_dataset: a_out
    input_datasets: [hot_blocks]
"""
ALL = "    sql: select * from hot_blocks\n"
CURSOR = "    incremental: {mode: cursor, cursor_column: block_number}\n"
ALERTS = """\
    lookup_datasets: [limits]
    incremental:
      {mode: cursor, cursor_column: Block_Number, unique_key: [limit_id, Block_Hash, tx_hash, block_hash]}
    update_strategy: append
    sql: >-
      select l.limit_id, b.block_number, b.block_hash, b.tx_hash from hot_blocks b
      join limits l on b.weight > l.least
"""
RANGES = """\
    incremental: {mode: partition}
    partition: {column: block_number, size: 10000, final_after: 100}
    config: {codec: zstd}
    sql: select * from hot_blocks
"""
DAYS = """\
    incremental: {mode: partition}
    partition: {column: block_at, unit: day, final_after: 2 days}
    sql: select local_date(block_at) as day, count(*) as blocks from hot_blocks group by local_date(block_at)
"""


def partition(words: str, sql: str = "select * from hot_blocks", timezone: str = "UTC") -> str:
    """A project with a job in mode `partition`."""
    job = f'    incremental: {{mode: partition}}\n    partition: {{{words}}}\n    sql: "{sql}"\n'
    return (BASE + job).replace("timezone: UTC", f"timezone: {timezone}")


def job_of(folder: Path, text: str) -> Job:
    definition = load(folder, BASE + text).get("a_out").definition
    assert isinstance(definition, Job)
    return definition


def inputs_of(folder: Path, yaml: str) -> dict[str, Input]:
    return {i.name: i for i in load(folder, yaml).get("a_out").inputs}


# what a mode needs


@pytest.mark.parametrize(
    ("text", "at", "expected"),
    [
        (
            "    incremental: {mode: cursor}\n" + ALL,
            "incremental:",
            """\
job `a` has mode `cursor` but no `cursor_column`.
  Add `cursor_column: <column of inputs and output>` to `incremental`.  [cursor-without-column]""",
        ),
        (
            CURSOR + "    update_strategy: append\n" + ALL,
            "incremental:",
            """\
job `a` appends but has no `unique_key`, so new rows could not be distinguished from published ones.
  Add `unique_key: [<columns of the output>]` to `incremental`.  [append-without-key]""",
        ),
        (
            "    incremental: {mode: keyed, key: [block_hash]}\n    update_strategy: append\n" + ALL,
            "update_strategy:",
            """\
job `a` appends in mode `keyed`; only mode `cursor` can append.
  Write `mode: cursor` with a `cursor_column` and a `unique_key`, or `update_strategy: replace`.  \
[append-without-cursor]""",
        ),
        (
            "    incremental: {mode: keyed, key: [block_hash], unique_key: [tx_hash]}\n"
            "    update_strategy: append\n" + ALL,
            "update_strategy:",
            """\
job `a` appends in mode `keyed`; only mode `cursor` can append.
  Write `mode: cursor` with a `cursor_column` and a `unique_key`, or `update_strategy: replace` \
without `unique_key`.  \
[append-without-cursor]""",
        ),
        (
            "    update_strategy: append\n" + ALL,
            "update_strategy:",
            """\
job `a` appends in mode `full`; only mode `cursor` can append.
  Write `mode: cursor` with a `cursor_column` and a `unique_key`, or `update_strategy: replace`.  \
[append-without-cursor]""",
        ),
        (
            "    incremental: {mode: partition}\n    partition: {column: block_number, size: 10}\n"
            "    update_strategy: append\n" + ALL,
            "update_strategy:",
            """\
job `a` appends in mode `partition`; only mode `cursor` can append.
  Write `mode: cursor` with a `cursor_column` and a `unique_key`, or `update_strategy: replace`.  \
[append-without-cursor]""",
        ),
        (
            "    incremental: {mode: partition}\n" + ALL,
            "incremental:",
            """\
job `a` has mode `partition` but does not define what a partition is.
  Add `partition: {column: <column>, size: 10000}`, or `unit: day` instead of `size`.  \
[partition-without-column]""",
        ),
        (
            "    incremental: {mode: partition}\n    partition: {column: block_number, size: 10, unit: day}\n"
            + ALL,
            "partition: {",
            """\
`partition` of job `a` needs either `size` (numbers) or `unit` (times), and has both.
  Write `size: 10000`, or `unit: day`.  [partition-size]""",
        ),
        (
            "    incremental: {mode: partition}\n    partition: {column: block_number}\n" + ALL,
            "partition: {",
            """\
`partition` of job `a` needs either `size` (numbers) or `unit` (times), and has neither.
  Write `size: 10000`, or `unit: day`.  [partition-size]""",
        ),
    ],
    ids=[
        "cursor",
        "append",
        "append keyed",
        "append keyed with a unique key",
        "append full",
        "append partition",
        "partition",
        "size and unit",
        "neither size nor unit",
    ],
)
def test_what_a_mode_lacks_is_told_once_with_its_line_and_a_remedy(
    text: str, at: str, expected: str, tmp_path: Path
) -> None:
    yaml = BASE + text

    assert report(tmp_path, yaml) == f"strandline.yaml:{line_of(yaml, at)}: {expected}"


@pytest.mark.parametrize(
    ("text", "at", "expected"),
    [
        (
            "    incremental:\n      mode: cursor\n      cursor_column: block_number\n"
            "      unique_key: [block_hash]\n" + ALL,
            "unique_key:",
            """\
job `a` replaces and has a `unique_key`, which only `update_strategy: append` uses.
  Remove `unique_key`, or write `update_strategy: append`.  [unused-key]""",
        ),
        (
            "    incremental:\n      mode: keyed\n      key: [block_hash]\n      unique_key: [block_hash]\n"
            + ALL,
            "unique_key:",
            """\
job `a` has mode `keyed` and `unique_key`, which only mode `cursor` uses.
  Remove `unique_key`, or write `mode: cursor`.  [unused-key]""",
        ),
        (
            "    incremental:\n      mode: cursor\n      cursor_column: block_number\n"
            "      key: [block_hash]\n" + ALL,
            " key:",
            """\
job `a` has mode `cursor` and `key`, which only mode `keyed` uses.
  Remove `key`, or write `mode: keyed`.  [unused-key]""",
        ),
        (
            "    incremental:\n      mode: partition\n      key: [block_hash]\n"
            "    partition: {column: block_number, size: 10}\n" + ALL,
            " key:",
            """\
job `a` has mode `partition` and `key`, which only mode `keyed` uses.
  Remove `key`, or write `mode: keyed` and remove `partition`.  [unused-key]""",
        ),
        (
            "    incremental:\n      mode: full\n      cursor_column: block_number\n" + ALL,
            "cursor_column:",
            """\
job `a` has mode `full` and `cursor_column`, which only mode `cursor` uses.
  Remove `cursor_column`, or write `mode: cursor`.  [unused-key]""",
        ),
        (
            CURSOR + "    partition: {column: block_number, size: 10}\n" + ALL,
            "partition:",
            """\
job `a` has `partition`, which only mode `partition` uses.
  Remove `partition`, or write `mode: partition`.  [unused-key]""",
        ),
    ],
    ids=[
        "unique_key that replaces",
        "unique_key keyed",
        "key of a cursor",
        "key of partitions",
        "cursor_column full",
        "partition of a cursor",
    ],
)
def test_what_a_mode_has_no_use_for_is_told_once_with_its_line_and_a_remedy(
    text: str, at: str, expected: str, tmp_path: Path
) -> None:
    yaml = BASE + text

    assert report(tmp_path, yaml) == f"strandline.yaml:{line_of(yaml, at)}: {expected}"


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("size: 10", "-1"),
        ("size: 10", "2 days"),
        ("size: 10", "many"),
        ("unit: day", "100"),
        ("unit: day", "2 fortnights"),
        ("unit: hour", "1"),
    ],
)
def test_a_finality_that_does_not_fit_is_told_with_its_value(words: str, value: str, tmp_path: Path) -> None:
    yaml = (
        BASE + f"    incremental: {{mode: partition}}\n"
        f"    partition: {{column: block_at, {words}, final_after: {value}}}\n{ALL}"
    )

    reported = report(tmp_path, yaml)

    place = f"strandline.yaml:{line_of(yaml, 'final_after')}"
    if "size" in words:
        assert (
            reported == f"{place}: `final_after` of job `a` is `{value}`, not a whole number of at least 0.\n"
            "  Write `100`.  [final-after]"
        )
    else:
        assert (
            reported == f"{place}: `final_after` of job `a` is `{value}`, not a duration.\n"
            "  Write `2 days` or `36 hours`.  [final-after]"
        )


def test_the_seeds_word_for_finality_is_told_where_it_stands(tmp_path: Path) -> None:
    yaml = BASE + "    incremental: {mode: partition}\n    partition: {column: block_number, size: 10}\n"
    yaml += "    config: {codec: zstd,\n      finality_threshold: soon}\n" + ALL

    reported = report(tmp_path, yaml)

    assert reported.startswith(
        f"strandline.yaml:{line_of(yaml, 'finality_threshold')}: `final_after` of job `a` is `soon`"
    )
    assert slugs(tmp_path, yaml) == ["final-after"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("column: block_number, size: 0", "`size` is `0` in `jobs[0].partition`."),
        (
            "column: block_at, unit: week",
            "`unit` is `week` in `jobs[0].partition`, which is not a valid value.",
        ),
        ("column: block_at, unit: dya", "Did you mean `day`?"),
        ("size: 10", "`jobs[0].partition` lacks `column`."),
        (
            "column: block_number, size: 10, by: chain_id",
            "`jobs[0].partition.by` is `chain_id`, not a list.\n  Write `[chain_id]`.",
        ),
        (
            "column: block_number, size: 10, final_after: true",
            "`jobs[0].partition.final_after` is `true`, not a whole number or text.",
        ),
        (
            "column: block_number, size: 10, final_after: [1]",
            "`jobs[0].partition.final_after` is a list, not a whole number or text.",
        ),
        (
            "column: block_number, sise: 10",
            "unknown key `sise` in `jobs[0].partition`.\n  Did you mean `size`?",
        ),
    ],
)
def test_a_wrong_shape_of_a_partition_is_told_once(words: str, expected: str, tmp_path: Path) -> None:
    shown = report(tmp_path, partition(words))

    assert expected in shown
    assert shown.count("strandline.yaml:") == 1


def test_a_unique_key_that_the_output_lacks_is_told_with_the_nearest(tmp_path: Path) -> None:
    yaml = (
        BASE
        + CURSOR.replace("block_number}", "block_number, unique_key: [block_hash, tx_hsh]}")
        + "    update_strategy: append\n"
        + ALL
    )

    reported = report(tmp_path, yaml)

    assert (
        reported
        == f"""\
strandline.yaml:{line_of(yaml, "incremental:")}: the unique key of job `a` names `tx_hsh`, \
which its SQL does not return.
  Did you mean `tx_hash`?  [key-not-in-output]"""
    )


def test_a_cursor_column_that_the_output_lacks_is_told_with_the_nearest(tmp_path: Path) -> None:
    yaml = BASE + CURSOR + "    sql: select block_number as block_numbr, block_hash from hot_blocks\n"

    reported = report(tmp_path, yaml)

    assert (
        "names `block_number`, which its SQL does not return.\n"
        "  Did you mean `block_numbr`?  [key-not-in-output]" in reported
    )


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("    incremental: {mode: cursor, cursor_column: _ingested_at}\n", "_ingested_at"),
        ("    incremental: {mode: keyed, key: [block_hash, _ingested_at]}\n", "_ingested_at"),
        (
            CURSOR.replace("block_number}", "block_number, unique_key: [_Key]}")
            + "    update_strategy: append\n",
            "_key",
        ),
        (
            "    incremental: {mode: partition}\n    partition: {column: _source_at, unit: day}\n",
            "_source_at",
        ),
        (
            "    incremental: {mode: partition}\n"
            "    partition: {column: block_number, size: 10, by: [_config]}\n",
            "_config",
        ),
    ],
    ids=["cursor_column", "key", "unique_key", "column", "by"],
)
def test_no_scope_is_made_of_a_metadata_column(text: str, column: str, tmp_path: Path) -> None:
    yaml = BASE + text + ALL

    reported = report(tmp_path, yaml)

    what = (
        f"the key of job `a` names the metadata column `{column}`.\n"
        "  Use columns of the output.  [metadata-column]"
    )
    assert reported == f"strandline.yaml:{line_of(yaml, '    incremental:')}: {what}"


def test_a_python_job_in_any_mode_declares_its_inputs(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {"a.py": "def f(inputs, context):\n    return inputs['hot_blocks']\n"}
    yaml = BASE + CURSOR + "    python: a.py:f\n"

    undeclared = report(tmp_path, yaml, files)
    declared = report(
        tmp_path,
        yaml.replace("block_number}", "block_number, inputs: {hot_blocks: {by: [block_number]}}}"),
        files,
    )

    assert "job `a` follows `block_number`, and how `hot_blocks` relates to that is not known" in undeclared
    assert "Python jobs always declare `inputs`" in undeclared
    assert declared == ""


# what it gives


def test_a_job_that_follows_a_cursor_replaces_values_of_its_column(tmp_path: Path) -> None:
    job = job_of(tmp_path, CURSOR + ALL)

    assert (job.mode, job.key, job.unique_key, job.partition) == (Mode.CURSOR, ("block_number",), (), None)
    assert not load(tmp_path, BASE + CURSOR + ALL).get("a_out").traits.only_grows


def test_a_job_that_appends_has_a_unique_key(tmp_path: Path) -> None:
    job = job_of(tmp_path, ALERTS)
    node = load(tmp_path, BASE + ALERTS).get("a_out")

    assert (job.mode, job.key, job.unique_key) == (
        Mode.CURSOR,
        ("block_number",),
        ("limit_id", "block_hash", "tx_hash"),
    )
    assert {i.name: i.relation for i in node.inputs} == {
        "hot_blocks": By(columns=("block_number",)),
        "limits": Lookup(),
    }
    assert node.traits.only_grows


@pytest.mark.parametrize(
    ("words", "partitioning", "key"),
    [
        (
            "column: Block_Number, size: 10000",
            Partitioning(column="block_number", size=10_000),
            ("block_number",),
        ),
        (
            "column: block_number, size: 10, by: [Chain_Id, chain_id], final_after: 0",
            Partitioning(column="block_number", size=10, by=("chain_id",), final_after=0),
            ("chain_id", "block_number"),
        ),
        ("column: block_at, unit: hour", Partitioning(column="block_at", unit=Unit.HOUR), ("block_at",)),
        (
            "column: block_at, unit: day, final_after: 2 days",
            Partitioning(column="block_at", unit=Unit.DAY, final_after=172_800),
            ("block_at",),
        ),
        (
            "column: block_at, unit: month, final_after: 1 week",
            Partitioning(column="block_at", unit=Unit.MONTH, final_after=604_800),
            ("block_at",),
        ),
        (
            "column: block_at, unit: day, final_after: 36 hours",
            Partitioning(column="block_at", unit=Unit.DAY, final_after=129_600),
            ("block_at",),
        ),
        (
            "column: block_at, unit: day, final_after: 90 minutes",
            Partitioning(column="block_at", unit=Unit.DAY, final_after=5_400),
            ("block_at",),
        ),
        (
            "column: block_at, unit: day, final_after: 1 second",
            Partitioning(column="block_at", unit=Unit.DAY, final_after=1),
            ("block_at",),
        ),
    ],
)
def test_a_partition_is_taken_as_declared(
    words: str, partitioning: Partitioning, key: tuple[str, ...], tmp_path: Path
) -> None:
    job = load(tmp_path, partition(words)).get("a_out").definition

    assert isinstance(job, Job)
    assert (job.mode, job.partition, job.key) == (Mode.PARTITION, partitioning, key)


@pytest.mark.parametrize(
    ("threshold", "words", "final_after"),
    [("100", "size: 10", 100), ("2 days", "unit: day", 172_800), ("100", "size: 10, final_after: 7", 7)],
    ids=["numbers", "times", "the partition's own comes first"],
)
def test_the_seeds_word_means_final_after_and_is_config_all_the_same(
    threshold: str, words: str, final_after: int, tmp_path: Path
) -> None:
    text = f"    partition: {{column: block_at, {words}}}\n    config: {{finality_threshold: {threshold}}}\n"

    job = job_of(tmp_path, "    incremental: {mode: partition}\n" + text + ALL)

    assert job.partition is not None
    assert job.partition.final_after == final_after
    assert str(job.config["finality_threshold"]) == threshold


def test_the_columns_that_scopes_lie_along_are_those_that_statistics_are_kept_of(tmp_path: Path) -> None:
    second = (
        "  - name: b\n    output_dataset: b_out\n    input_datasets: [a_out]\n"
        "    incremental: {mode: cursor, cursor_column: block_hash}\n"
    )
    project = load(tmp_path, BASE + RANGES + second + "    sql: select * from a_out\n")

    assert project.indexed("a_out") == ("block_number", "block_hash")
    assert project.indexed("hot_blocks_facts") == ("block_number",)
    assert project.indexed("limits") == ()


# `by` is proved, or asked for

PER = "select {0} as part, count(*) as blocks from hot_blocks group by {0}"


@pytest.mark.parametrize(
    ("words", "sql", "timezone", "columns"),
    [
        ("column: block_number, size: 10", "select * from hot_blocks", "Asia/Kolkata", ("block_number",)),
        (
            "column: block_number, size: 10, by: [chain_id]",
            "select * from hot_blocks",
            "UTC",
            ("chain_id", "block_number"),
        ),
        (
            "column: block_at, unit: hour",
            "select block_at, weight * 2 as weight from hot_blocks",
            "Asia/Kolkata",
            ("block_at",),
        ),
        ("column: block_at, unit: day", PER.format("local_date(block_at)"), "UTC", ("block_at",)),
        ("column: block_at, unit: day", PER.format("local_date(block_at)"), "Asia/Kolkata", ("block_at",)),
        ("column: block_at, unit: month", PER.format("local_date(block_at)"), "Asia/Kolkata", ("block_at",)),
        ("column: block_at, unit: month", PER.format("local_month(block_at)"), "Asia/Kolkata", ("block_at",)),
        ("column: block_at, unit: day", PER.format("to_date(block_at)"), "UTC", ("block_at",)),
        ("column: block_at, unit: day", PER.format("cast(block_at as date)"), "UTC", ("block_at",)),
        ("column: block_at, unit: day", PER.format("date_trunc('day', block_at)"), "UTC", ("block_at",)),
        ("column: block_at, unit: hour", PER.format("date_trunc('hour', block_at)"), "UTC", ("block_at",)),
        (
            "column: block_at, unit: day",
            "select local_date(b.Block_At) as d, max(weight) as w from hot_blocks b group by 1",
            "UTC",
            ("block_at",),
        ),
        (
            "column: block_at, unit: day",
            "select distinct local_date(block_at) as day from hot_blocks",
            "Asia/Kolkata",
            ("block_at",),
        ),
        (
            "column: block_at, unit: day, by: [chain_id]",
            "select chain_id, local_date(block_at) as day, count(*) as n from hot_blocks "
            "group by chain_id, local_date(block_at)",
            "UTC",
            ("chain_id", "block_at"),
        ),
        (
            "column: block_at, unit: day",
            "select a.block_at, b.n from hot_blocks a "
            "left join (select local_date(block_at) as d, count(*) as n from hot_blocks "
            "group by 1) b on local_date(a.block_at) = b.d",
            "America/New_York",
            ("block_at",),
        ),
        (
            "column: block_at, unit: day",
            "select *, sum(weight) over (partition by local_date(block_at) "
            "order by block_number, block_hash) as so_far from hot_blocks",
            "Asia/Kolkata",
            ("block_at",),
        ),
    ],
)
def test_by_is_proved_where_rows_of_two_partitions_never_meet(
    words: str, sql: str, timezone: str, columns: tuple[str, ...], tmp_path: Path
) -> None:
    by_name = inputs_of(tmp_path, partition(words, sql, timezone))

    blocks = by_name["hot_blocks"]
    assert (blocks.dataset, blocks.relation, blocks.proved) == ("hot_blocks_facts", By(columns=columns), True)


@pytest.mark.parametrize(
    ("words", "sql", "timezone", "reason"),
    [
        (
            "column: block_at, unit: hour",
            PER.format("local_date(block_at)"),
            "UTC",
            "a GROUP BY lacks `block_at`",
        ),
        (
            "column: block_at, unit: day",
            PER.format("local_month(block_at)"),
            "UTC",
            "a GROUP BY lacks `block_at`",
        ),
        (
            "column: block_at, unit: day",
            PER.format("to_date(block_at)"),
            "Asia/Kolkata",
            "a GROUP BY lacks `block_at`",
        ),
        (
            "column: block_at, unit: day",
            PER.format("cast(block_at as date)"),
            "Asia/Kolkata",
            "a GROUP BY lacks `block_at`",
        ),
        (
            "column: block_at, unit: month",
            PER.format("date_trunc('day', block_at)"),
            "Asia/Kolkata",
            "a GROUP BY lacks `block_at`",
        ),
        (
            "column: block_at, unit: month",
            PER.format("date_trunc('week', block_at)"),
            "UTC",
            "a GROUP BY lacks `block_at`",
        ),
        (
            "column: block_at, unit: day",
            PER.format("date_trunc('month', block_at)"),
            "UTC",
            "a GROUP BY lacks `block_at`",
        ),
        (
            "column: block_at, unit: month",
            PER.format("financial_year(block_at)"),
            "UTC",
            "a GROUP BY lacks `block_at`",
        ),
        (
            "column: block_number, size: 10",
            PER.format("local_date(block_number)"),
            "UTC",
            "a GROUP BY lacks `block_number`",
        ),
        (
            "column: block_at, unit: day",
            PER.format("trunc(block_at, 'day')"),
            "UTC",
            "a GROUP BY lacks `block_at`",
        ),
        (
            "column: block_at, unit: day",
            PER.format("to_date(block_at, 'yyyy')"),
            "UTC",
            "a GROUP BY lacks `block_at`",
        ),
        (
            "column: block_at, unit: day",
            "select local_date(d) as d, count(*) as n "
            "from (select local_date(block_at) as d from hot_blocks) group by local_date(d)",
            "America/New_York",
            "a GROUP BY lacks `block_at`",
        ),
        (
            "column: block_at, unit: day",
            "select x.d as block_at, b.weight from (select distinct local_date(block_at) as d "
            "from hot_blocks) x "
            "join hot_blocks b on x.d = b.block_at",
            "America/New_York",
            "it is joined on `block_at`, which is not declared to be of one type on both sides",
        ),
        ("column: block_number, size: 10", PER.format("chain_id"), "UTC", "a GROUP BY lacks `block_number`"),
        (
            "column: block_at, unit: day, by: [chain_id]",
            PER.format("local_date(block_at)"),
            "UTC",
            "a GROUP BY lacks `chain_id`",
        ),
        (
            "column: block_number, size: 10",
            "select count(*) as blocks from hot_blocks",
            "UTC",
            "it is aggregated over all keys at once",
        ),
        (
            "column: block_number, size: 10",
            "select *, sum(weight) over () as total from hot_blocks",
            "UTC",
            "a window is not partitioned by `block_number`",
        ),
        (
            "column: block_at, unit: day",
            "select block_at + interval 1 day as block_at from hot_blocks",
            "UTC",
            "a SELECT does not pass `block_at` on unchanged",
        ),
    ],
)
def test_by_is_asked_for_where_rows_of_two_partitions_may_meet(
    words: str, sql: str, timezone: str, reason: str, tmp_path: Path
) -> None:
    yaml = partition(words, sql, timezone)

    reported = report(tmp_path, yaml)

    assert reported.startswith(
        f"strandline.yaml:{line_of(yaml, 'incremental:')}: job `a` is partitioned by ("
    )
    assert f"and how `hot_blocks` relates to that is not known (`hot_blocks`: {reason})." in reported
    assert slugs(tmp_path, yaml) == ["input-relation-unknown"]


def test_what_is_declared_is_taken_although_it_is_not_proved(tmp_path: Path) -> None:
    sql = (
        "select b.chain_id, l.limit_id, count(*) as n from hot_blocks b cross join limits l "
        "group by b.chain_id, l.limit_id"
    )
    yaml = partition("column: block_number, size: 10", sql).replace("[hot_blocks]", "[hot_blocks, limits]")

    by_name = inputs_of(
        tmp_path,
        yaml.replace(
            "mode: partition", "mode: partition, inputs: {hot_blocks: {by: [block_number]}, limits: whole}"
        ),
    )

    assert {name: (i.relation, i.proved) for name, i in by_name.items()} == {
        "hot_blocks": (By(columns=("block_number",)), False),
        "limits": (Whole(), False),
    }


def test_the_partitions_column_may_have_another_name_in_an_input(tmp_path: Path) -> None:
    yaml = partition("column: number, size: 10", "select block_number as number from hot_blocks")

    by_name = inputs_of(
        tmp_path,
        yaml.replace(
            "mode: partition", "mode: partition, inputs: {hot_blocks: {by: {number: block_number}}}"
        ),
    )

    assert by_name["hot_blocks"].relation == By(columns=("block_number",))


# what a change of it does


@pytest.mark.parametrize(
    ("text", "edits", "parts", "freezes"),
    [
        (
            ALERTS,
            [("limit_id, Block_Hash, tx_hash, block_hash]", "limit_id, block_hash]")],
            {"unique_key"},
            True,
        ),
        (ALERTS, [("b.weight > l.least", "b.weight >= l.least")], {"sql"}, False),
        (
            ALERTS,
            [("Block_Number, unique", "weight, unique"), ("b.tx_hash from", "b.tx_hash, b.weight from")],
            {"key", "inputs", "sql"},
            True,
        ),
        (ALERTS, [("Block_Number", "block_number")], set(), False),
        (
            CURSOR + ALL,
            [("mode: cursor, cursor_column: block_number", "mode: keyed, key: [block_number]")],
            {"mode"},
            True,
        ),
        (
            CURSOR + ALL,
            [("block_number}", "block_number, unique_key: [block_hash]}\n    update_strategy: append")],
            {"unique_key"},
            True,
        ),
        (RANGES, [("size: 10000", "size: 5000")], {"partition"}, True),
        (RANGES, [("size: 10000,", "size: 10000, by: [chain_id],")], {"partition", "key", "inputs"}, True),
        (RANGES, [("column: block_number", "column: weight")], {"key", "inputs"}, True),
        (RANGES, [("final_after: 100", "final_after: 200")], {"final_after"}, False),
        (RANGES, [(", final_after: 100", "")], {"final_after"}, False),
        (
            RANGES,
            [(", final_after: 100", ""), ("codec: zstd", "codec: zstd, finality_threshold: 100")],
            {"config"},
            False,
        ),
        (RANGES, [("codec: zstd", "codec: lz4")], {"config"}, False),
        (RANGES, [("select * from hot_blocks", "select *, 1 as one from hot_blocks")], {"sql"}, False),
        (RANGES, [("select * from hot_blocks", "SELECT  *  FROM hot_blocks -- all")], set(), False),
        (RANGES, [("name: a\n", "name: another\n")], set(), False),
        (RANGES, [("timezone: UTC", "timezone: Asia/Kolkata")], set(), False),
        (DAYS, [("unit: day", "unit: month")], {"partition"}, True),
        (DAYS, [("final_after: 2 days", "final_after: 48 hours")], set(), False),
        (DAYS, [("final_after: 2 days", "final_after: 3 days")], {"final_after"}, False),
    ],
)
def test_a_change_is_named_and_freezes_only_what_it_must(
    text: str, edits: list[tuple[str, str]], parts: set[str], freezes: bool, tmp_path: Path
) -> None:
    assert config_change(tmp_path, BASE + text, "a_out", *edits) == (parts, freezes)


@pytest.mark.parametrize("job", [RANGES, DAYS, CURSOR + ALL])
def test_a_job_that_reads_nothing_is_a_mistake_in_every_mode(job: str, tmp_path: Path) -> None:
    base = BASE.replace("    input_datasets: [hot_blocks]\n", "")

    assert slugs(tmp_path, base + job) == ["missing-key", "undeclared-input"]
