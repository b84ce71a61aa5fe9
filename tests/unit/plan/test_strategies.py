"""The planner takes the cheapest strategy that is right: accumulate, recompute or full."""

from dataclasses import replace

import pytest

from strandline.app.planning import plan_request
from strandline.model.plan import Strategy, Task
from strandline.model.thresholds import SHIPPED, UNLIMITED
from strandline.plan import plan
from tests.golden.cases import World, tell

DISTINCT = "edit app_sources, select: count(*) => app_sources, select: count(distinct id)"
WINDOWS = "edit app_tracks, select: count(*), window => app_tracks, select: count(distinct sent_at), window"
VIA = (
    "edit id: workspace_id => id: workspace_id\\n"
    "    by: {app_tracks: {via: app_sources, on: {workspace_id: id}}}"
)
DAY_LATER = "ask --as-of 2024-05-02T00:00:00+00:00"


def plan_task(*commands: str, rows: int = 0, percent: int = SHIPPED.full_percent) -> Task:
    """The task of an entity with 500 rows in each of two inputs. `rows`: up to these nothing is in full."""
    world: World = tell(("project profiles", *commands))
    thresholds = replace(SHIPPED, incremental_rows=rows, full_percent=percent)
    project = replace(world.project, settings=replace(world.project.settings, thresholds=thresholds))
    observed = world.observed
    made = plan(project, observed, plan_request(world.workspace, observed, world.request))
    return next(task for task in made.tasks if task.node == "workspace")


@pytest.mark.parametrize(("rows", "strategy"), [(330, Strategy.ACCUMULATE), (331, Strategy.FULL)])
def test_a_task_that_would_read_a_third_of_the_rows_computes_everything(
    rows: int, strategy: Strategy
) -> None:
    task = plan_task("built", f"commit app_tracks_facts append {rows} rows")

    assert task.strategy is strategy


@pytest.mark.parametrize(("rows", "strategy"), [(178, Strategy.RECOMPUTE), (182, Strategy.FULL)])
def test_entities_that_are_recomputed_read_their_other_rows_too(rows: int, strategy: Strategy) -> None:
    task = plan_task(DISTINCT, "built", f"commit app_sources replace_keys {rows} rows")

    assert task.strategy is strategy


def test_a_full_task_says_what_it_was_compared_with_and_reads_everything() -> None:
    task = plan_task("built", "commit app_tracks_facts append 400 rows")

    assert task.reason == (
        "changed rows in version 1 of `app_tracks_facts`, about 400 rows; about 55 % of the entities are"
        " affected, and to compute them alone would read about 400 of 1,000 rows: everything takes no longer"
    )
    assert task.estimated_rows == task.full_rows


@pytest.mark.parametrize(("rows", "strategy"), [(1000, Strategy.ACCUMULATE), (999, Strategy.FULL)])
def test_small_inputs_are_never_computed_in_full_for_their_changes(rows: int, strategy: Strategy) -> None:
    task = plan_task("built", "commit app_tracks_facts append 400 rows", rows=rows)

    assert task.strategy is strategy


def test_no_share_is_too_much_where_the_threshold_says_so() -> None:
    task = plan_task("built", "commit app_tracks_facts append 400 rows", percent=UNLIMITED)

    assert task.strategy is Strategy.ACCUMULATE


def test_a_recompute_inside_of_a_window_is_judged_by_the_rows_of_the_window() -> None:
    """Half of the entities are affected, and of the five files one lies in the window."""
    files = [f"range app_tracks_facts sent_at 202{year}-04-01 202{year}-04-30" for year in range(5)]
    grown = ("built", *files, "commit app_tracks_facts append 250 rows", DAY_LATER)

    assert plan_task(WINDOWS, *grown).strategy is Strategy.RECOMPUTE
    everything = "edit window: {column: sent_at, last: [7 days, 30 days]} => where: sent_at < :as_of"
    assert plan_task(WINDOWS, everything, *grown).strategy is Strategy.FULL


def test_rows_between_two_times_are_estimated_by_the_share_of_a_file_and_not_by_whole_files() -> None:
    wide = plan_task("built", "range app_tracks_facts sent_at 2020-01-01 2024-05-01", DAY_LATER)

    assert (wide.strategy, wide.estimated_rows) == (Strategy.ACCUMULATE, 100)


def test_what_accumulates_and_what_is_recomputed_is_told() -> None:
    task = plan_task(WINDOWS, "built", "commit app_sources replace_keys 1 rows")

    assert task.strategy is Strategy.ACCUMULATE
    assert task.reason.endswith("`sources` accumulates")
    both = plan_task(
        WINDOWS,
        "built",
        "range app_tracks_facts sent_at unknown",
        "commit app_sources replace_keys 1 rows",
        DAY_LATER,
    )
    assert both.reason.endswith("`sources` accumulates, `tracks_7d` and `tracks_30d` are recomputed")


def test_nothing_accumulates_if_only_what_is_recomputed_can_have_changed() -> None:
    task = plan_task(DISTINCT, "built", "commit app_sources replace_keys 1 rows")

    assert task.strategy is Strategy.RECOMPUTE
    assert "accumulate" not in task.reason


def test_rows_whose_owners_are_found_elsewhere_accumulate_until_that_changes_too() -> None:
    facts = "commit app_tracks_facts append 1 rows"

    assert plan_task(VIA, "built", facts).strategy is Strategy.ACCUMULATE
    both = plan_task(VIA, DISTINCT, "built", facts, "commit app_sources replace_keys 1 rows")
    assert both.strategy is Strategy.RECOMPUTE


@pytest.mark.parametrize(
    "asked", ["ask backfill workspace --all", "commit app_tracks_facts invalidate because checked"]
)
def test_who_asks_for_rows_to_be_computed_again_gets_that(asked: str) -> None:
    task = plan_task("built", asked)

    assert task.strategy in (Strategy.FULL, Strategy.RECOMPUTE)
    assert "accumulate" not in task.reason
