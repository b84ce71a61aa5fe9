"""The planner against its cases. `STRANDLINE_REGENERATE=1` writes what it gives now: read the difference before keeping it."""

import os
from pathlib import Path

import pytest

from tests.golden.cases import CASES, Case, read_cases, render, tell

FILES = sorted(CASES.glob("*.txt"))
ALL = [(file, case) for file in FILES for case in read_cases(file)]


@pytest.mark.parametrize(("file", "case"), ALL, ids=[f"{file.stem}: {case.title}" for file, case in ALL])
def test_the_plan_is_as_told(file: Path, case: Case) -> None:
    made = render(tell(case.told).plan())

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


def test_planning_twice_gives_the_same_plan() -> None:
    world = tell(("project shop", "built", "commit sale replace_keys 3 rows", "file price_list data/second 900 bytes"))

    assert world.plan() == world.plan()


def test_a_plan_has_inputs_before_readers() -> None:
    made = tell(("project shop", "file sale_events data/first 100 bytes", "file price_list data/first 100 bytes")).plan()

    seen: set[str] = set()
    for task in made.tasks:
        assert set(task.needs) <= seen
        seen.add(task.node)
    assert len(seen) == 11
