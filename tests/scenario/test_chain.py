"""The story of examples/chain: the commands of its README, checked after each day against plain Python."""

import json
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest

from examples.play import Command
from tests.scenario.chain_model import (
    DATASETS,
    DAYS,
    IDENTITIES,
    State,
    after_alert_backfill,
    after_transfer_backfill,
    play_days,
)
from tests.scenario.json_rows import as_json
from tests.scenario.story import Played, ask, commands_of, copy_project, in_some_order, play, query

pytestmark = pytest.mark.spark

COMMANDS = commands_of("chain")
Published = dict[str, list[dict[str, Any]]]


@dataclass
class Story:
    played: list[Played] = field(default_factory=list)
    published: dict[int, Published] = field(default_factory=dict)
    counts: dict[int, dict[str, dict[str, int]]] = field(default_factory=dict)
    alerts_filled: list[dict[str, Any]] = field(default_factory=list)
    transfers_filled: list[dict[str, Any]] = field(default_factory=list)
    partitions: dict[int, set[str]] = field(default_factory=dict)
    invalidations: list[dict[str, Any]] = field(default_factory=list)
    jobs: list[dict[str, Any]] = field(default_factory=list)
    model: dict[int, State] = field(default_factory=dict)
    verified: Any = None


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """Plays the README once. A day is checked when its first run has ended."""
    project = copy_project("chain", tmp_path_factory.mktemp("readme"))
    story = Story()

    def look(command: Command) -> None:
        day = len(list((project / "data" / "blocks").glob("*.jsonl")))
        match command.words:
            case ["strandline", "run"] if day not in story.published:
                story.published[day] = {name: query(f"SELECT * FROM {name}") for name in DATASETS}
                story.counts[day] = {row["dataset"]: row["counts"] for row in ask("status")["datasets"]}
                built = query("SELECT partition_key FROM partition_versions WHERE dataset = 'cold_blocks'")
                story.partitions[day] = {row["partition_key"] for row in built}
            case ["strandline", "backfill", "alert_evaluate", *_]:
                story.alerts_filled = query("SELECT * FROM alert_events")
            case ["strandline", "backfill", "enrich_transfers", *_]:
                story.transfers_filled = query("SELECT * FROM enriched_transfers")
            case ["strandline", "verify"]:
                story.invalidations = query("SELECT * FROM data_invalidations ORDER BY created_at")
                story.jobs = query("SELECT * FROM invalidation_jobs")

    with chdir(project):
        story.played = play(COMMANDS, look)
        story.model = play_days(project / "data")
        yield story


def test_every_command_of_the_readme_succeeds(story: Story) -> None:
    assert [(ended.command.text, ended.code) for ended in story.played] == [
        (command.text, 0) for command in COMMANDS
    ]


@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("day", DAYS)
def test_a_dataset_equals_the_model_after_each_day(story: Story, day: int, dataset: str) -> None:
    assert in_some_order(story.published[day][dataset]) == in_some_order(
        as_json(story.model[day].rows[dataset])
    )


@pytest.mark.parametrize("day", DAYS)
def test_blocks_that_wait_are_counted_and_partitions_are_those_that_are_final(story: Story, day: int) -> None:
    assert story.counts[day]["hot_blocks"].get("waiting", 0) == len(story.model[day].waiting)
    assert story.partitions[day] == {f"{first}-{first + 500}" for first in story.model[day].built}


@pytest.mark.parametrize("dataset", IDENTITIES)
def test_nothing_is_lost_or_doubled(story: Story, dataset: str) -> None:  # L10
    counts, model = story.counts[6][f"{dataset}_facts"], story.model[6]
    assert counts["offered"] == model.offered[dataset]
    assert counts["accepted"] == len(model.facts[dataset])
    assert (
        counts["offered"]
        == counts["accepted"] + counts["duplicates"] + counts["quarantined"] + counts["passed_over"]
    )


def test_each_reorg_is_recorded_once_with_its_range_and_processed_by_every_job(story: Story) -> None:
    reorgs = [state.reorg for state in story.model.values() if state.reorg]
    recorded = [i for i in story.invalidations if i["reason"] == "reorg"]
    invalidations = [(json.loads(i["row_filter"]), json.loads(i["source_event"])) for i in recorded]
    assert invalidations == [
        (
            {"block_number": {"gte": r.first, "lte": r.last}},
            {"old_tip": r.old_tip, "new_tip": r.new_tip, "fork_block": r.fork_block},
        )
        for r in reorgs
    ]
    assert len(reorgs) == 3
    assert all(i["processed_at"] for i in story.invalidations)
    readers = {
        "hot_transactions",
        "hot_logs",
        "alert_events",
        "orphaned_alerts",
        "enriched_transfers",
        "cold_blocks",
    }
    assert {j["job"] for j in story.jobs} == readers
    assert len(story.jobs) == len(readers) * len(story.invalidations)
    by_hand = [i for i in story.invalidations if i["reason"] == "correction"]
    assert [json.loads(i["row_filter"]) for i in by_hand] == [{"block_number": {"gte": 100, "lte": 110}}]


def test_backfills_fire_old_blocks_and_apply_the_new_setting(story: Story) -> None:
    alerts = after_alert_backfill(story.model[6])
    assert in_some_order(story.alerts_filled) == in_some_order(as_json(alerts.rows["alert_events"]))
    transfers = after_transfer_backfill(alerts, Decimal(10) ** 21)
    assert in_some_order(story.transfers_filled) == in_some_order(
        as_json(transfers.rows["enriched_transfers"])
    )


def test_a_run_of_the_deep_reorg_reads_what_changed_and_not_the_chain(story: Story) -> None:
    runs = [ended.printed for ended in story.played if ended.command.words == ["strandline", "run"]]
    assert "2 partitions (2500-3000, 3000-3500)" in runs[4] or "partition (2500-3000)" in runs[4]
    assert "reorg of block_number 2970 to 3120" in runs[4]
