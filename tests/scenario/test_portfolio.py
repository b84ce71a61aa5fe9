"""The story of examples/portfolio: the commands of its README, checked after each delivery.

Every dataset is compared with a model in plain Python.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import chdir
from dataclasses import dataclass, field
from typing import Any

import pytest

from examples.play import Command
from strandline.model.typed_values import parse_instant
from tests.scenario.json_rows import as_json
from tests.scenario.portfolio_model import DATASETS, FACTS, UNKNOWN, State, after_run
from tests.scenario.story import (
    Played,
    ask,
    assert_shown,
    commands_of,
    copy_project,
    in_some_order,
    play,
    query,
)

pytestmark = pytest.mark.spark

COMMANDS = commands_of("portfolio")
DELIVERIES = ("1", "2", "3", "4 later", "5", "5 later", "6", "6 later")
"""Deliveries after which a run published everything."""
IN_BATCHES = ("4", "4 later")
"""Deliveries after which a run published one batch."""
VALUED = ("daily_position_snapshots", "position_timeseries", "portfolio_timeseries")
FAILED_AT = {"6"}

Rows = list[dict[str, Any]]


@dataclass
class Look:
    """Published and expected rows after a run."""

    before: State
    expected: State
    """After a run in batches: as if all of them had been published."""
    published: dict[str, Rows]
    counts: dict[str, dict[str, int]]
    reprocessing_status: dict[str, str]


@dataclass
class Story:
    played: list[Played] = field(default_factory=list)
    looks: dict[str, Look] = field(default_factory=dict)
    in_batches: dict[str, Look] = field(default_factory=dict)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """Plays the README once. A delivery is checked when its first run has ended."""
    project = copy_project("portfolio", tmp_path_factory.mktemp("readme"))
    story, state, delivery = Story(), State(), ""

    def look(command: Command) -> None:
        nonlocal state, delivery
        match command.words:
            case ["python", "generate.py", *arguments]:
                delivery = " ".join(arguments)
            case ["strandline", "run", "--as-of", as_of, *options]:
                reached = after_run(state, project / "data", parse_instant(as_of))
                looks = story.in_batches if options else story.looks
                if delivery not in looks:
                    looks[delivery] = look_at(state, reached)
                state = state if options else reached

    with chdir(project):
        story.played = play(COMMANDS, look)
        yield story


def look_at(before: State, expected: State) -> Look:
    statuses: dict[str, str] = {}
    for name in VALUED:
        statuses |= ask("query", f"SELECT count(*) AS n FROM {name}")["reprocessing_status"]
    return Look(
        before=before,
        expected=expected,
        published={name: query(f"SELECT * FROM {name}") for name in DATASETS},
        counts={row["dataset"]: row["counts"] for row in ask("status")["datasets"]},
        reprocessing_status=statuses,
    )


def known(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Rows as text, without the columns that the model does not predict."""
    return in_some_order(
        [{column: value for column, value in row.items() if column not in UNKNOWN} for row in rows]
    )


def by_portfolio(rows: Iterable[dict[str, Any]]) -> dict[str, list[str]]:
    groups: defaultdict[str, Rows] = defaultdict(list)
    for row in rows:
        groups[row["portfolio_id"]].append(row)
    return {portfolio: in_some_order(of_portfolio) for portfolio, of_portfolio in groups.items()}


def test_every_command_of_the_readme_succeeds(story: Story) -> None:
    assert [(ended.command.text, ended.code) for ended in story.played] == [
        (command.text, 0) for command in COMMANDS
    ]
    assert tuple(story.looks) == DELIVERIES
    assert tuple(story.in_batches) == IN_BATCHES


@pytest.mark.parametrize("place", [number for number, command in enumerate(COMMANDS) if command.shown])
def test_the_readme_shows_what_the_command_prints(story: Story, place: int) -> None:
    assert_shown(story.played[place])


@pytest.mark.parametrize("dataset", [name for name in DATASETS if name != "positions_state"])
@pytest.mark.parametrize("delivery", DELIVERIES)
def test_a_dataset_equals_the_model_after_each_delivery(story: Story, delivery: str, dataset: str) -> None:
    look = story.looks[delivery]
    expected = as_json(look.expected.rows[dataset])

    assert known(look.published[dataset]) == known(expected)
    assert expected or dataset == "positions_epochs"


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_the_state_of_each_position_equals_the_model(story: Story, delivery: str) -> None:
    """The watermark of a position that waits for a rate stands before its first date, wherever that is."""
    look = story.looks[delivery]
    expected = as_json(look.expected.rows["positions_state"])
    waits = {("P30", "DUNES")} if delivery in FAILED_AT else set()

    def without_watermark_of_those_that_wait(rows: Rows) -> Rows:
        return [
            {**row, "watermark_on": None} if (row["portfolio_id"], row["security_id"]) in waits else row
            for row in rows
        ]

    published = look.published["positions_state"]
    assert known(without_watermark_of_those_that_wait(published)) == known(
        without_watermark_of_those_that_wait(expected)
    )
    for row in published:
        assert bool(row["reason"]) == (row["status"] == "FAILED")
        if (row["portfolio_id"], row["security_id"]) in waits:
            assert (row["watermark_on"] or "") < "2024-02-15"


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_readers_are_told_whether_a_dataset_is_complete(story: Story, delivery: str) -> None:
    status = "FAILED" if delivery in FAILED_AT else "CURRENT"

    assert story.looks[delivery].reprocessing_status == dict.fromkeys(VALUED, status)


@pytest.mark.parametrize("dataset", FACTS)
def test_nothing_is_lost_or_doubled(story: Story, dataset: str) -> None:  # L10
    look = story.looks["6 later"]
    counts = look.counts[f"{dataset}_facts"]

    assert counts["offered"] == look.expected.offered[dataset]
    assert counts["accepted"] == counts["offered"]


@pytest.mark.parametrize("dataset", VALUED)
@pytest.mark.parametrize("delivery", IN_BATCHES)
def test_while_batches_are_left_each_portfolio_is_whole_in_its_old_or_its_new_state(
    story: Story, delivery: str, dataset: str
) -> None:  # L8
    look = story.in_batches[delivery]
    published = by_portfolio(look.published[dataset])
    old = by_portfolio(as_json(look.before.rows[dataset]))
    new = by_portfolio(as_json(look.expected.rows[dataset]))

    waiting = {portfolio for portfolio, rows in published.items() if rows == old[portfolio] != new[portfolio]}

    assert published.keys() == new.keys()
    assert all(rows in (old[portfolio], new[portfolio]) for portfolio, rows in published.items())
    assert waiting
    assert waiting == {
        row["portfolio_id"] for row in look.published["positions_state"] if row["status"] == "REPROCESSING"
    }
    assert look.reprocessing_status[dataset] == "IN_PROGRESS"


def test_a_trade_that_comes_while_portfolios_wait_is_published_by_the_next_run(story: Story) -> None:
    look = story.in_batches["4 later"]
    of_position = {
        row["date"]: (row["quantity"], row["epoch"])
        for row in look.published["daily_position_snapshots"]
        if (row["portfolio_id"], row["security_id"]) == ("P33", "BORG")
    }

    assert of_position["2024-03-22"] == ("200.0000", 0)
    assert of_position["2024-03-25"] == ("120.0000", 1)


def test_a_failing_position_is_named_with_its_reason(story: Story) -> None:
    failed = {
        (row["portfolio_id"], row["security_id"]): row["reason"]
        for row in story.looks["6"].published["positions_state"]
        if row["status"] == "FAILED"
    }

    assert set(failed) == {("P50", "DUNES"), ("P30", "DUNES")}
    assert "T0331 sells 500.0000, but only 120.0000 are held" in failed["P50", "DUNES"]
