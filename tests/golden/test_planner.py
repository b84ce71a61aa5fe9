"""The planner against its cases.

`STRANDLINE_REGENERATE=1` writes the current plans. Read the difference before you keep it.
"""

import os
from pathlib import Path

import pytest

from strandline.model.errors import CallError
from strandline.model.plan import Cause, Strategy
from strandline.model.scope import find_partitions
from tests.golden.cases import CASES, Case, read_cases, render, tell

FILES = sorted(CASES.glob("*.txt"))
ALL = [(file, case) for file in FILES for case in read_cases(file)]


@pytest.mark.parametrize(("file", "case"), ALL, ids=[f"{file.stem}: {case.title}" for file, case in ALL])
def test_the_plan_is_as_told(file: Path, case: Case) -> None:
    made = render(tell(case.commands).plan())

    if os.environ.get("STRANDLINE_REGENERATE"):
        kept = [c.text(made if c.title == case.title else c.expected) for c in read_cases(file)]
        file.write_text("\n".join(kept))
    else:
        assert made == case.expected


def test_titles_name_one_case_each() -> None:
    titles = [case.title for _, case in ALL]

    assert ALL
    assert len(titles) == len(set(titles))


def test_a_thousand_pending_commits_are_one_task() -> None:
    world = tell(("project small", "built", "commit sale replace_keys 3 rows x 1000"))

    made = world.plan()

    assert [(t.node, t.estimated_rows) for t in made.tasks] == [("pieces", 500)]
    assert "versions 1 to 1000 of `sale`, about 3,000 rows" in made.tasks[0].reason


def test_a_thousand_invalidations_are_one_task_for_each_job_that_reads_the_dataset() -> None:
    world = tell(
        (
            "project chain",
            "built",
            "commit hot_blocks invalidate because checked x 1000",
            'ask --select "hot_blocks alerts heavy cold_blocks"',
        )
    )

    made = world.plan()

    assert [(t.node, t.cause) for t in made.tasks] == [
        (name, Cause.INVALIDATION) for name in ("alerts", "heavy", "cold_blocks")
    ]


def test_a_thousand_invalidations_among_a_thousand_commits_are_counted_and_named_in_one_line() -> None:
    commands = [
        f"commit hot_blocks {what}"
        for _ in range(500)
        for what in ("replace_keys 2 rows because reorg", "invalidate because checked")
    ]

    (task,) = tell(("project chain", "built", *commands, "ask --select heavy")).plan().tasks

    assert (
        task.reason == "changed rows in versions 1 to 1000 of `hot_blocks`, about 1,000 rows, "
        "1000 invalidations (checked, reorg)"
    )


def test_backfill_of_stale_partitions_asks_for_those_alone_and_for_what_follows() -> None:
    edited = (
        "partitions cold_blocks 0-10 10-20 20-30",
        "edit codec: zstd => codec: lz4",
        "partitions cold_blocks 10-20",
    )

    made = tell(("project chain", "built", *edited, "ask backfill compact --stale")).plan()

    assert [(t.node, t.strategy, find_partitions(t.scope)) for t in made.tasks] == [
        ("cold_blocks", Strategy.RECOMPUTE, ("0-10", "20-30")),
        ("days", Strategy.RECOMPUTE, ()),
    ]


def test_backfill_of_some_partitions_asks_for_those_alone_stale_or_not() -> None:
    edited = (
        "partitions cold_blocks 0-10 10-20 20-30",
        "edit codec: zstd => codec: lz4",
        "partitions cold_blocks 10-20",
    )

    made = tell(
        ("project chain", "built", *edited, "ask backfill cold_blocks --partitions 10-20,20-30")
    ).plan()

    assert [(t.node, t.cause, find_partitions(t.scope)) for t in made.tasks] == [
        ("cold_blocks", Cause.PERSON, ("10-20", "20-30")),
    ]
    assert [h.node for h in made.held] == ["days"]  # 0-10 is still of the older configuration


@pytest.mark.parametrize(
    ("ask", "slug", "expected"),
    [
        ("cold_blocks --partitions 0-10,10-21", "unknown-partition", "Did you mean `10-20`?"),
        (
            "cold_blocks --partitions 2024-01-01",
            "unknown-partition",
            "`cold_blocks` has no partition `2024-01-01`",
        ),
        ("heavy --partitions 0-10", "no-partitions", "`heavy` has no partitions."),
        ("hot_blocks --partitions 0-10", "no-partitions", "`hot_blocks` has no partitions."),
        ("blocks --partitions 0-10", "call", "means 2 nodes"),
        ("cold_blocks --where 'block_nmber > 3'", "unknown-column", "block_number"),
        ("blocks --where 'block_number > 3'", "no-rows-to-filter", "is not one with scopes"),
        ("block_messages --all", "backfill-of-a-source", "what was received is never changed"),
        ("cold_block --all", "unknown-name", "Did you mean `cold_blocks`?"),
    ],
)
def test_a_backfill_of_what_is_not_there_is_refused_with_what_to_ask_for(
    ask: str, slug: str, expected: str
) -> None:
    lines = (
        "partitions cold_blocks 0-10 10-20",
        "columns cold_blocks block_number:bigint",
        f"ask backfill {ask}",
    )

    with pytest.raises(CallError) as refused:
        tell(("project chain", "built", *lines)).plan()

    assert refused.value.slug == slug
    assert expected in str(refused.value)


def test_planning_twice_gives_the_same_plan() -> None:
    world = tell(
        ("project shop", "built", "commit sale replace_keys 3 rows", "file price_list data/second 900 bytes")
    )

    assert world.plan() == world.plan()


def test_a_plan_has_inputs_before_readers() -> None:
    made = tell(
        ("project shop", "file sale_events data/first 100 bytes", "file price_list data/first 100 bytes")
    ).plan()

    seen: set[str] = set()
    for task in made.tasks:
        assert set(task.needs) <= seen
        seen.add(task.node)
    assert len(seen) == 11
