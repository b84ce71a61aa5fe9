"""Accumulate, recompute and full agree bit for bit, `_state` included, with a model in plain Python."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from strandline.app.planning import RunRequest
from strandline.model.node import Node
from strandline.model.plan import Strategy, Task
from strandline.model.scope import find_origins
from strandline.plan import planner, strategies
from strandline.plan.draft import make_full_task
from tests.harness import TestProject, result_of
from tests.spark.entity_histories import COLUMNS, ENTITIES, HAPPENINGS, History, day, declare

pytestmark = pytest.mark.spark
RUNS, HAPPENINGS_A_RUN = 4, 16


@pytest.fixture(autouse=True)
def _each_entity_has_a_way_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """`added` gets what the planner chooses, `again` is recomputed, `whole` is computed in full."""

    def choose(node: Node, task: Task, record: Any, observed: Any, settings: Any, draft: Any) -> Task:
        follows = task.strategy is Strategy.RECOMPUTE
        if node.name == "whole" and follows:
            origins = find_origins(task.scope)
            whole = make_full_task(node, observed, draft, task.cause, "forced", new=False, origins=origins)
            return replace(whole, as_of=task.as_of)
        if node.name == "again":
            return task
        return strategies.choose_strategy(node, task, record, observed, settings, draft)

    monkeypatch.setattr(planner, "choose_strategy", choose)


@pytest.mark.parametrize(("seed", "thresholds"), [(1, ""), (2, "least,incremental_rows=1000000")])
def test_random_histories_give_the_same_rows_and_states_in_every_way(
    seed: int, thresholds: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRANDLINE_THRESHOLDS", thresholds)
    project = TestProject.create(tmp_path / "histories", declare())
    history = History(seed, project)
    for what in ("fact", "event", "computed"):
        history.happen(what)
    taken: Counter[str] = Counter()

    for _ in range(RUNS):
        for _ in range(HAPPENINGS_A_RUN):
            history.happen(history.chance.choice(HAPPENINGS))
        history.write()
        outcome = project.run(RunRequest(as_of=day(history.as_of)))
        expected = history.expect()
        for name in ENTITIES:
            assert project.rows(name, COLUMNS) == expected, name
        taken.update(f"{r.node} {r.strategy}" for r in outcome.results if r.node in ENTITIES)

    project.assert_verified(*ENTITIES)
    assert taken["added accumulate"] >= RUNS - 2
    assert taken["again recompute"] >= RUNS - 2
    assert result_of(outcome, "whole").strategy is Strategy.FULL
