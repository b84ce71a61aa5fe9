"""The story of examples/property_tax: the commands of its README, checked after each day.

Every dataset is compared with a model in plain Python.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from examples.play import Command
from tests.scenario.property_tax_model import DATASETS, Model
from tests.scenario.story import (
    Played,
    ask,
    assert_shown,
    commands_of,
    copy_project,
    in_some_order,
    play,
    query,
    rows_of,
)

pytestmark = pytest.mark.spark

COMMANDS = commands_of("property_tax")
JOBS = (
    "demand_outstanding",
    "property_outstanding",
    "defaulters",
    "demand_collection_by_year",
    "payments",
    "collections_by_month",
    "property_counts_by_tenant",
    "property_counts_by_usage",
    "property_counts_by_ownership",
    "new_properties_by_year",
    "properties_with_demand_by_year",
)
DAYS = (1, 2, 3)


@dataclass
class Day:
    """Published and expected rows after the files of one day."""

    model: Model
    published: dict[str, list[dict[str, Any]]]
    quarantined: dict[str, list[str]]
    counts: dict[str, dict[str, int]]


@dataclass
class Story:
    played: list[Played] = field(default_factory=list)
    days: dict[int, Day] = field(default_factory=dict)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """Plays the README once. A day is checked when its first run has ended."""
    project = copy_project("property_tax", tmp_path_factory.mktemp("readme"))
    story = Story()

    def look(command: Command) -> None:
        day = len(list((project / "data" / "property").glob("*.jsonl")))
        if command.words == ["strandline", "run"] and day not in story.days:
            story.days[day] = look_at(project)

    with chdir(project):
        story.played = play(COMMANDS, look)
        yield story


def look_at(project: Path) -> Day:
    return Day(
        model=Model(project / "data"),
        published={name: query(f"SELECT * FROM {name}") for name in (*DATASETS, *JOBS)},
        quarantined={name: [row["payload"] for row in ask("quarantine", name)["rows"]] for name in DATASETS},
        counts={row["dataset"]: row["counts"] for row in ask("status")["datasets"]},
    )


def money(rows: list[dict[str, Any]], column: str) -> Decimal:
    return sum((Decimal(row[column]) for row in rows), Decimal(0))


def test_the_generator_makes_the_same_messages_each_time(tmp_path: Path) -> None:
    made = []
    for name in ("once", "again"):
        project = copy_project("property_tax", tmp_path / name)
        for day in DAYS:
            subprocess.run([sys.executable, "generate.py", str(day)], cwd=project, check=True)
        made.append({path.relative_to(project): path.read_bytes() for path in project.rglob("*.jsonl")})

    assert made[0] == made[1]
    assert len(made[0]) == 7


def test_every_command_of_the_readme_succeeds(story: Story) -> None:
    assert [(ended.command.text, ended.code) for ended in story.played] == [
        (command.text, 0) for command in COMMANDS
    ]


@pytest.mark.parametrize("place", [number for number, command in enumerate(COMMANDS) if command.shown])
def test_the_readme_shows_what_the_command_prints(story: Story, place: int) -> None:
    assert_shown(story.played[place])


@pytest.mark.parametrize("dataset", [*DATASETS, *JOBS])
@pytest.mark.parametrize("day", DAYS)
def test_a_dataset_equals_the_model_after_each_day(story: Story, day: int, dataset: str) -> None:
    expected = story.days[day].model.as_json(dataset)

    assert in_some_order(story.days[day].published[dataset]) == in_some_order(expected)
    assert expected


@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("day", DAYS)
def test_what_the_model_refuses_is_in_quarantine_with_its_payload(
    story: Story, day: int, dataset: str
) -> None:
    assert sorted(story.days[day].quarantined[dataset]) == sorted(story.days[day].model.refused[dataset])


@pytest.mark.parametrize("dataset", DATASETS)
def test_nothing_is_lost_or_doubled(story: Story, dataset: str) -> None:  # L10
    counts = story.days[3].counts[f"{dataset}_facts"]

    assert counts["offered"] == story.days[3].model.offered[dataset]
    assert (
        counts["offered"]
        == counts["accepted"] + counts["duplicates"] + counts["quarantined"] + counts["passed_over"]
    )
    assert counts["quarantined"] == len(story.days[3].model.refused[dataset])


def test_the_demand_of_the_story_is_paid_in_three_days(story: Story) -> None:
    owed = {
        day: [
            row["outstanding"]
            for row in story.days[day].published["defaulters"]
            if row["property_id"] == "PB-PT-2024-001"
        ]
        for day in DAYS
    }

    assert owed == {1: ["5500.00"], 2: ["2500.00"], 3: []}


@pytest.mark.parametrize("day", DAYS)
def test_the_months_sum_up_to_what_is_collected_now(story: Story, day: int) -> None:
    published = story.days[day].published

    assert money(published["collections_by_month"], "amount") == money(
        published["demand_detail"], "collection_amount"
    )


def test_a_late_message_moves_money_between_past_months(story: Story) -> None:
    past = {
        day: {
            (row["tenant_id"], row["month"]): Decimal(row["amount"])
            for row in story.days[day].published["collections_by_month"]
            if row["month"] < "2023-12"
        }
        for day in DAYS
    }

    moved = [amount - past[2][month] for month, amount in past[3].items()]

    assert past[1] == past[2]
    assert min(moved) < 0 < max(moved)


def test_every_mishap_is_among_the_messages(story: Story) -> None:
    """The messages contain each mishap. Agreement on flawless messages would show little."""
    properties = {(row["tenant_id"], row["property_id"]): row for row in story.days[2].published["property"]}
    units = {day: {row["unit_id"] for row in story.days[day].published["unit"]} for day in DAYS}
    inactive = [
        row
        for row in story.days[3].published["property"]
        if row["status"] == "INACTIVE"
        and properties.get((row["tenant_id"], row["property_id"]), row)["status"] == "ACTIVE"
    ]
    debts = {
        day: {
            row["demand_id"]: Decimal(row["outstanding"])
            for row in story.days[day].published["demand_outstanding"]
        }
        for day in DAYS
    }

    assert units[1] - units[2], "a removed unit"
    assert units[2] - units[3], "an emptied list of units"
    assert inactive, "an INACTIVE property"
    assert any(debts[3][demand] > debt for demand, debt in debts[2].items() if demand in debts[3]), (
        "a correction"
    )
    assert set(debts[2]) - set(debts[3]), "a cancelled demand"
    assert any(not is_json(line) for line in story.days[2].model.refused["demand"]), "a broken line"
    assert any(is_json(line) for line in story.days[2].model.refused["property"]), "a missing key"


def is_json(line: str) -> bool:
    try:
        json.loads(line)
    except json.JSONDecodeError:
        return False
    return True


def test_the_first_day_works_as_a_program_of_its_own(tmp_path: Path) -> None:
    """Both sources, a snapshot, and jobs in SQL and in Python; a cold JVM takes seconds for each node."""
    names = ("collections_by_month", "property_counts_by_tenant")
    project = copy_project("property_tax", tmp_path)
    subprocess.run([sys.executable, "generate.py", "1"], cwd=project, check=True)

    report = run_program(
        project, "run", "--select", " ".join(f"+{name}" for name in names), "--output", "json"
    )

    assert {task["status"] for task in report["tasks"]} <= {"done", "unchanged"}
    for name in names:
        answer = run_program(project, "query", f"SELECT * FROM {name}", "--output", "json")
        assert in_some_order(rows_of(answer)) == in_some_order(Model(project / "data").as_json(name))


def run_program(project: Path, *arguments: str) -> Any:
    installed = Path(sys.executable).with_name("strandline")
    program = [str(installed)] if installed.exists() else [sys.executable, "-m", "strandline.cli"]
    ended = subprocess.run([*program, *arguments], cwd=project, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)
