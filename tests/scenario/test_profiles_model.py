"""The rows and the model of examples/profiles, without the engine.

The model follows the commands of the README. What the README tells must be what the model says.
"""

import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.scenario.json_rows import as_json
from tests.scenario.profiles_model import (
    FACTS,
    MOMENTS,
    Follower,
    Row,
    State,
    after_run,
    start_of_day,
)
from tests.scenario.story import commands_of, copy_project

COMMANDS = commands_of("profiles")
DAYS = ("1", "2", "4")


@dataclass
class Told:
    """The states of the model, and what the generator printed and wrote."""

    project: Path
    model: Follower
    printed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    written: dict[Path, bytes] = field(default_factory=dict)

    def row(self, moment: str, entity: str, name: object) -> Row:
        (row,) = (row for row in self.rows(moment, entity) if name == next(iter(row.values())))
        return row

    def rows(self, moment: str, entity: str) -> tuple[Row, ...]:
        return self.model.states[moment].rows[entity]

    def of(self, entity: str, name: object, *columns: str) -> dict[str, tuple[Any, ...]]:
        """By moment: some variables of one entity."""
        rows = {moment: self.row(moment, entity, name) for moment in MOMENTS}
        return {moment: tuple(row[column] for column in columns) for moment, row in rows.items()}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """Runs the generator as the README does, and the model instead of the engine."""
    project = copy_project("profiles", tmp_path_factory.mktemp("model"))
    told = Told(project=project, model=Follower(project))
    for command in COMMANDS:
        if command.words[:2] == ["python", "generate.py"]:
            told.printed[command.words[2]] = tuple(generate(project, command.words[2]).splitlines())
        told.model.follow(command.words)
    told.written = read_rows(project)
    return told


def read_rows(project: Path) -> dict[Path, bytes]:
    return {path.relative_to(project): path.read_bytes() for path in (project / "data").rglob("day-*")}


def generate(project: Path, day: str) -> str:
    call = [sys.executable, "generate.py", day]
    return subprocess.run(call, cwd=project, check=True, capture_output=True, text=True).stdout


def test_the_generator_makes_the_same_rows_each_time(told: Told, tmp_path: Path) -> None:
    project = copy_project("profiles", tmp_path)

    for day in DAYS:
        generate(project, day)

    assert read_rows(project) == told.written
    assert len(told.written) == 18


def test_the_readme_plays_every_moment_and_shows_what_the_generator_prints(told: Told) -> None:
    shown = {
        command.words[2]: command.shown
        for command in COMMANDS
        if command.words[:2] == ["python", "generate.py"]
    }

    assert tuple(told.model.states) == MOMENTS
    assert shown == told.printed
    assert tuple(told.printed) == DAYS


def test_there_are_3000_workspaces_of_400_accounts(told: Told) -> None:
    workspaces, accounts = (told.rows("Friday", name) for name in ("workspace", "account"))

    assert len(workspaces) == 3000
    assert len(accounts) == 400
    assert len({row["organization_id"] for row in workspaces} - {None}) > 395
    assert any(row["organization_id"] is None for row in workspaces)


# The story


def test_a_deleted_and_a_moved_source_change_both_workspaces_and_the_deleted_one_comes_back(
    told: Told,
) -> None:
    live = ("live_sources", "source_kinds", "removed_sources_7d")
    old, new = (told.of("workspace", name, *live) for name in ("ws-0042", "ws-0043"))

    assert [old[moment] for moment in ("Friday", "Saturday", "Monday")] == [
        (3, "ios, server, web", 0),
        (1, "ios", 1),
        (2, "ios, web", 0),
    ]
    assert [new[moment] for moment in ("Friday", "Saturday", "Monday")] == [
        (2, "web", 0),
        (3, "server, web", 0),
        (4, "server, web", 0),
    ]


def test_a_workspace_that_moves_changes_both_accounts_although_its_rows_stay(told: Told) -> None:
    mine = ("organization_id", "live_sources", "tracks")
    moved = told.of("workspace", "ws-0077", *mine)
    both = {name: told.of("account", name, "workspaces", "live_sources") for name in (1042, 1043)}
    came = {name: row["Saturday"][0] - row["Friday"][0] for name, row in both.items()}

    assert (moved["Friday"], moved["Saturday"]) == ((1042, 2, 10), (1043, 2, 10))
    assert came == {1042: -1, 1043: 1}


def test_the_tickets_of_an_account_go_with_it_and_come_back_with_it(told: Told) -> None:
    rows = told.of("account", 1050, "tickets", "stage", "is_customer")

    assert rows["Friday"][0] > 0
    assert rows["Saturday"] == (0, None, False)
    assert rows["Monday"][0] >= rows["Friday"][0]


def test_a_window_empties_when_nothing_comes_and_fills_when_the_clock_is_set_back(told: Told) -> None:
    created = told.of("workspace", "ws-0043", "created_sources_7d", "created_sources_30d")

    assert [created[moment] for moment in MOMENTS[:4]] == [(1, 1), (2, 2), (1, 2), (2, 2)]


def test_late_tracks_count_where_they_belong(told: Told) -> None:
    tracks = told.of("workspace", "ws-0311", "tracks_7d", "tracks_30d", "tracks_90d", "tracks")

    assert tracks["Friday"] == (0, 0, 0, 0)
    assert tracks["Saturday"] == (2, 10, 18, 20)
    assert tracks["Friday again"] == (2, 12, 20, 20)


def test_a_month_begins_with_nothing_and_the_last_one_is_kept(told: Told) -> None:
    for moment, month in (("Sunday", "rows_this_month"), ("Monday", "rows_last_month")):
        assert sum(row[month] for row in told.rows(moment, "workspace")) > 10_000_000
    assert {row["rows_this_month"] for row in told.rows("Monday", "workspace")} == {0}


def test_entities_exist_for_whoever_a_fact_named(told: Told) -> None:
    names = {row["workspace_id"] for row in told.rows("Saturday", "workspace")}
    accounts = {row["organization_id"] for row in told.rows("Saturday", "account")}

    assert names >= {"ws-9001", "ws-9002"}
    assert not names & {None, ""}
    assert told.row("Saturday", "workspace", "ws-9001")["live_sources"] == 0
    assert told.row("Saturday", "workspace", "ws-9002")["tracks"] == 2
    assert accounts - {row["organization_id"] for row in told.rows("Friday", "account")} == {1999}


def test_a_changed_variable_keeps_its_values_until_it_is_filled_and_new_entities_have_none(
    told: Told,
) -> None:
    before, held, filled = (
        {row["workspace_id"]: row["source_owners"] for row in told.rows(moment, "workspace")}
        for moment in ("Friday again", "Monday", "Monday filled")
    )

    assert {name: held[name] for name in before} == before
    assert held.keys() - before.keys() == {"ws-3001"}
    assert held["ws-3001"] is None
    assert filled["ws-3001"] in (0, 1)
    assert sum(filled[name] < before[name] for name in before) > 100


def test_a_variable_comes_and_another_goes(told: Told) -> None:
    columns = {moment: set(told.rows(moment, "workspace")[0]) for moment in MOMENTS}

    assert columns["Monday"] - columns["Sunday"] == {"web_sources"}
    assert columns["Sunday"] - columns["Monday"] == {"region"}
    assert len(columns["Sunday"]) == 44


# The cases


@pytest.mark.parametrize("moment", MOMENTS)
def test_rollups_are_sums_of_workspaces(told: Told, moment: str) -> None:
    members = [row for row in told.rows(moment, "workspace") if row["organization_id"] is not None]

    for column in ("live_sources", "created_sources_30d", "tracks_30d", "rows_this_month"):
        assert sum(row[column] for row in told.rows(moment, "account")) == sum(r[column] for r in members)


def test_rows_come_twice_late_and_without_an_id(told: Told) -> None:
    received = told.model.states["Saturday"].received
    sources, tracks = received["app_sources"].accepted, received["app_tracks"]
    twice = Counter((row["id"], row["updatedat"]) for row in sources)

    assert max(twice.values()) == 2
    assert sum(count == 2 for count in twice.values()) > 40
    assert (received["app_sources"].quarantined, tracks.quarantined) == (1, 1)
    assert tracks.duplicates == 150
    assert sum(row["workspaceid"] is None for row in sources) == 2
    assert sum(row["workspace_id"] is None for row in tracks.accepted) == 650
    assert all(received[name].offered for name in FACTS)


def test_every_case_is_among_the_accounts(told: Told) -> None:
    """Agreement on flawless data would show little."""
    accounts = told.rows("Saturday", "account")

    assert {row["care"] for row in accounts} == {"none", "now", "usual", "soon"}
    assert any(row["arr"] == Decimal("0.00") for row in accounts)
    assert any(row["renewal_on"] is None and row["is_customer"] for row in accounts)
    assert any(row["satisfaction"] is None for row in accounts)
    assert any(row["sources_per_workspace"] is None for row in accounts)
    assert {row["storage_kinds"] for row in accounts} >= {"", "managed, other, own"}


@pytest.mark.parametrize("variable", ["live_sources", "source_types", "tracks_7d", "created_sources_90d"])
def test_counts_fall_as_well_as_rise_on_an_ordinary_day(told: Told, variable: str) -> None:
    before, after = (
        {row["workspace_id"]: row[variable] for row in told.rows(moment, "workspace")}
        for moment in ("Friday", "Saturday")
    )

    assert any(after[name] < before[name] for name in before)
    assert any(after[name] > before[name] for name in before)


def test_the_clock_stands_still_from_midnight_to_midnight_in_berlin(told: Told) -> None:
    morning = datetime(2024, 4, 1, 6, tzinfo=UTC)

    assert start_of_day(morning) == datetime(2024, 3, 31, 22, tzinfo=UTC)
    assert start_of_day(morning - timedelta(days=1)) == datetime(2024, 3, 30, 23, tzinfo=UTC)
    assert start_of_day(start_of_day(morning)) == start_of_day(morning)


def test_the_order_of_rows_and_of_runs_does_not_matter(told: Told, tmp_path: Path) -> None:
    """What the model says depends on the rows and the time alone."""
    later = datetime(2024, 4, 1, 6, tzinfo=UTC)
    once = after_run(State(), told.project / "data", later, told.model.declared)

    assert as_json(once.rows["workspace"]) == as_json(told.rows("Monday filled", "workspace"))
    assert as_json(once.rows["account"]) == as_json(told.rows("Monday filled", "account"))
