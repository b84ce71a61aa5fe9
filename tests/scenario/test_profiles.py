"""The story of examples/profiles: the commands of its README, checked after each run.

Every variable of every entity is compared with a model in plain Python.
"""

from collections.abc import Iterator
from contextlib import chdir
from dataclasses import dataclass, field
from typing import Any

import pytest

from examples.play import Command
from tests.scenario.json_rows import as_json
from tests.scenario.profiles_model import ENTITIES, FACTS, MOMENTS, RESULTS, Follower, State
from tests.scenario.story import Played, ask, assert_shown, commands_of, copy_project, play, query

pytestmark = pytest.mark.spark

COMMANDS = commands_of("profiles")
IDS = {"workspace": "workspace_id", "account": "organization_id", "current_customers": "organization_id"}

Rows = list[dict[str, Any]]


@dataclass
class Look:
    """Published and expected rows after a run."""

    expected: State
    published: dict[str, Rows]
    counts: dict[str, dict[str, int]]


@dataclass
class Story:
    played: list[Played] = field(default_factory=list)
    looks: dict[str, Look] = field(default_factory=dict)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """Plays the README once. A moment is checked when its run has ended."""
    project = copy_project("profiles", tmp_path_factory.mktemp("readme"))
    story, model = Story(), Follower(project)

    def look(command: Command) -> None:
        if moment := model.follow(command.words):
            story.looks[moment] = Look(
                expected=model.states[moment],
                published={name: query(f"SELECT * FROM {name}") for name in RESULTS},
                counts={row["dataset"]: row["counts"] for row in ask("status")["datasets"]},
            )

    with chdir(project):
        story.played = play(COMMANDS, look)
        yield story


def test_every_command_of_the_readme_succeeds(story: Story) -> None:
    assert [(ended.command.text, ended.code) for ended in story.played] == [
        (command.text, 0) for command in COMMANDS
    ]
    assert tuple(story.looks) == MOMENTS


@pytest.mark.parametrize("place", [number for number, command in enumerate(COMMANDS) if command.shown])
def test_the_readme_shows_what_the_command_prints(story: Story, place: int) -> None:
    assert_shown(story.played[place])


@pytest.mark.parametrize("result", RESULTS)
@pytest.mark.parametrize("moment", MOMENTS)
def test_every_variable_of_every_entity_equals_the_model(story: Story, moment: str, result: str) -> None:
    look, name = story.looks[moment], IDS[result]
    expected = {row[name]: row for row in as_json(look.expected.rows[result])}
    published = {row[name]: row for row in look.published[result]}

    differing = {
        f"{key}.{column}": (published[key].get(column), value)
        for key, row in expected.items()
        if key in published
        for column, value in row.items()
        if published[key].get(column) != value
    }

    assert len(look.published[result]) == len(published), "an entity has two rows"
    assert published.keys() == expected.keys()
    assert {frozenset(row) for row in published.values()} == {frozenset(row) for row in expected.values()}
    assert not differing
    assert len(expected) >= (100 if result == "current_customers" else 400)


def test_each_entity_has_the_variables_that_the_readme_counts(story: Story) -> None:
    columns = {name: len(story.looks["Friday"].published[name][0]) - 1 for name in ENTITIES}

    assert columns == {"workspace": 43, "account": 28}


@pytest.mark.parametrize("dataset", FACTS)
@pytest.mark.parametrize("moment", ["Friday", "Saturday", "Monday"])
def test_nothing_is_lost_or_doubled(story: Story, moment: str, dataset: str) -> None:  # L10
    look = story.looks[moment]
    counts, received = look.counts[f"{dataset}_facts"], look.expected.received[dataset]

    assert counts["offered"] == received.offered
    assert counts["accepted"] == len(received.accepted)
    assert counts["duplicates"] == received.duplicates
    assert counts["quarantined"] == received.quarantined
