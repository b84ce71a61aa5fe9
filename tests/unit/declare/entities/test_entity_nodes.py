"""An entity becomes one node: its uses, who exists by it, its borders, and a configuration per variable."""

from pathlib import Path

import pytest

from strandline.model.entity import Namer, Step
from strandline.model.node import By, Matched, Via
from strandline.model.own_clock import Every
from strandline.model.traits import OnClock
from tests.unit.declare.builders import config_change, load
from tests.unit.declare.entities.builders import PROJECT, edited, load_entity

ARR = '      arr:           {from: contracts, select: "sum(amount)", default: 0}'


def test_the_columns_are_the_id_and_the_variables_in_the_order_they_are_written(tmp_path: Path) -> None:
    node = load(tmp_path, PROJECT).get("workspace")

    families = ("tracks_7d", "tracks_30d")
    created = ("created_7d", "created_90d", "web_created_7d", "web_created_90d")
    assert node.columns == (
        *("workspace_id", "live_sources", "source_types", "newest_source", *families),
        *("users_30d", "renewals_due", "arr", "pace", *created),
    )
    assert node.key == ("workspace_id",)


def test_all_variables_of_one_input_and_id_share_a_use(tmp_path: Path) -> None:
    workspace = load_entity(tmp_path, "workspace")

    assert [(use.dataset, use.columns) for use in workspace.uses] == [
        ("app_sources", ("workspaceid",)),
        ("app_tracks_facts", ("workspace_id",)),
        ("contracts", ("workspace_id",)),
    ]
    assert len(workspace.variables_of(workspace.uses[0])) == 7


def test_one_dataset_under_two_id_columns_is_two_uses_and_one_input(tmp_path: Path) -> None:
    account = load_entity(tmp_path, "account")

    assert [use.columns for use in account.uses if use.input == "transfers"] == [("payer",), ("payee",)]
    (transfers,) = [i for i in load(tmp_path, PROJECT).get("account").inputs if i.name == "transfers"]
    assert transfers.relation == Matched(columns=("payer", "payee"))


def test_a_row_may_find_its_entity_through_another_dataset(tmp_path: Path) -> None:
    (calls,) = [use for use in load_entity(tmp_path, "account").uses if use.input == "calls"]

    assert calls.columns == ("organization_id",)
    assert calls.via == (Step(dataset="sf_account", on=(("salesforce_id", "id"),)),)
    inputs = {i.name: i.relation for i in load(tmp_path, PROJECT).get("account").inputs}
    assert inputs["calls"] == Via(input="sf_account", on=(("salesforce_id", "id"),))


def test_facts_name_entities_for_ever_and_what_is_computed_while_a_row_does(tmp_path: Path) -> None:
    assert load_entity(tmp_path, "workspace").namers == (
        Namer(dataset="app_sources_facts", columns=("workspaceid",), for_ever=True),
        Namer(dataset="app_tracks_facts", columns=("workspace_id",), for_ever=True),
        Namer(dataset="contracts_facts", columns=("workspace_id",), for_ever=True),
    )
    assert load_entity(tmp_path, "account").namers == (
        Namer(dataset="workspace", columns=("workspace_id",), for_ever=False),
        Namer(dataset="transfers_facts", columns=("payer",), for_ever=True),
        Namer(dataset="transfers_facts", columns=("payee",), for_ever=True),
        Namer(dataset="sf_account_facts", columns=("organization_id",), for_ever=True),
    )


def test_the_facts_of_a_record_set_are_an_input_beside_its_snapshot(tmp_path: Path) -> None:
    inputs = {i.dataset: i for i in load(tmp_path, PROJECT).get("workspace").inputs}

    assert inputs["app_sources_facts"].relation == By(columns=("workspaceid",))
    assert inputs["app_sources_facts"].reads == {"workspaceid"}
    assert list(inputs) == [
        *("app_sources", "app_tracks_facts", "contracts", "app_sources_facts", "contracts_facts"),
    ]


def test_a_window_has_two_borders_and_a_comparison_with_as_of_one(tmp_path: Path) -> None:
    workspace = load_entity(tmp_path, "workspace")
    borders = {v.name: [(b.column, b.sql) for b in v.borders] for v in workspace.variables}

    assert borders["tracks_7d"] == [("sent_at", ":as_of - INTERVAL 604800 SECONDS"), ("sent_at", ":as_of")]
    assert borders["renewals_due"] == [
        ("renews_at", ":as_of"),
        ("renews_at", ":as_of + INTERVAL '30' DAYS"),
    ]
    assert borders["arr"] == []
    assert load(tmp_path, PROJECT).indexed("app_tracks_facts") == ("sent_at",)


def test_a_family_has_a_name_and_a_length_for_each_of_its_windows(tmp_path: Path) -> None:
    project = edited("[7 days, 30 days]", "[7 days, 30 days, 15 minutes, 36 hours, 2 weeks, 1 day]")
    workspace = load_entity(tmp_path, "workspace", project)

    seconds = {v.name: v.window.seconds for v in workspace.variables if v.window and v.name[:6] == "tracks"}
    assert seconds == {
        "tracks_7d": 7 * 86_400,
        "tracks_30d": 30 * 86_400,
        "tracks_15min": 900,
        "tracks_36h": 36 * 3_600,
        "tracks_2w": 14 * 86_400,
        "tracks_1d": 86_400,
    }


@pytest.mark.parametrize(
    ("select", "clock"),
    [
        ("sum(amount)", OnClock.SCOPE),
        ("sum(datediff(:as_of, renews_at))", OnClock.EVERYTHING),
        ("max(renews_at) > :as_of", OnClock.EVERYTHING),
        ("sum(if(signed_on > local_date(:as_of), 1, 0))", OnClock.SCOPE),
    ],
)
def test_what_a_move_of_the_clock_touches(tmp_path: Path, select: str, clock: OnClock) -> None:
    project = load(tmp_path, edited(ARR, ARR.replace("sum(amount)", select)))

    assert project.get("workspace").traits.clock is clock
    assert project.get("account").traits.clock is OnClock.NOTHING


def test_the_clock_may_stand_still_between_days(tmp_path: Path) -> None:
    assert load_entity(tmp_path, "workspace").every is Every.DAY
    assert load_entity(tmp_path, "account").every is None


def test_entities_and_jobs_are_sorted_together(tmp_path: Path) -> None:
    names = [node.name for node in load(tmp_path, PROJECT).nodes]

    assert names.index("workspace") < names.index("large_workspaces") < len(names)
    assert names.index("workspace") < names.index("account")


@pytest.mark.parametrize(
    ("old", "new", "changed", "freezes"),
    [
        ('sum(amount)", default', 'max(amount)", default', {"variable arr"}, False),
        ('sum(amount)", default', 'SUM(amount) -- as before", default', set(), False),
        ("default: 0", "default: 1", {"variable arr"}, False),
        (ARR + "\n", "", {"variable arr"}, False),
        ("[7 days, 30 days]", "[7 days, 31 days]", {"variable tracks_30d", "variable tracks_31d"}, False),
        ("tracks_30d, 0)", "users_30d, 0)", {"variable pace"}, False),
        ("every: day", "every: week", set(), False),
        ("id: workspace_id", "id: {workspace_id: string}", set(), False),
        ("last: 30 days}", "last: 29 days}", {"variable users_30d"}, False),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_each_variable_is_a_part_of_the_configuration(
    tmp_path: Path, old: str, new: str, changed: set[str], freezes: bool
) -> None:
    project = PROJECT
    if "31 days" in new:
        project = edited("tracks_7d / nullif(tracks_30d, 0)", "tracks_7d / 7", project)

    assert config_change(tmp_path, project, "workspace", (old, new)) == (changed, freezes)


def test_a_changed_variable_changes_the_expressions_over_it(tmp_path: Path) -> None:
    parts, freezes = config_change(
        tmp_path, PROJECT, "workspace", ('select: "count(*)", window', 'select: "count(user_id)", window')
    )

    assert parts == {"variable tracks_7d", "variable tracks_30d", "variable pace"}
    assert not freezes


def test_another_id_freezes_the_entity(tmp_path: Path) -> None:
    parts, freezes = config_change(
        tmp_path,
        edited("id: organization_id", "id: {organization_id: string}"),
        "workspace",
        ("id: workspace_id", "id: {workspace_id: bigint}"),
    )

    assert "id" in parts
    assert freezes


def test_a_dataset_that_is_added_or_removed_changes_who_exists(tmp_path: Path) -> None:
    parts, _ = config_change(
        tmp_path,
        PROJECT,
        "account",
        ('      calls:    {from: calls, select: "count(*)"}\n', ""),
        ("calls: {via: sf_account, on: {salesforce_id: id}}, ", ""),
    )

    assert parts == {"variable calls", "named by sf_account_facts(organization_id)"}


def test_ids_of_several_columns_are_mapped_by_a_list_or_by_name(tmp_path: Path) -> None:
    entity = """\
entities:
  pair:
    id: [a, b]
    by: {transfers: [payer, payee]}
    variables:
      n: {from: transfers, select: "count(*)"}
      m: {from: transfers, by: {b: payer, a: payee}, select: "count(*)"}
"""
    base = PROJECT[: PROJECT.index("jobs:")]

    assert [use.columns for use in load_entity(tmp_path, "pair", base + entity).uses] == [
        ("payer", "payee"),
        ("payee", "payer"),
    ]


def test_facts_that_only_move_the_rank_of_a_record_are_read_where_a_variable_ranks(tmp_path: Path) -> None:
    """The record set itself does not change then, so its changes would not tell."""
    ranked = PROJECT.replace("order_by: [changed_at]}", "order_by: [_source_position]}")
    picking = ranked.replace('"sum(amount)", default', '"latest(amount)", default')

    assert [use.ranked_by for use in load_entity(tmp_path, "workspace", ranked).uses] == ["", "", ""]
    assert [use.ranked_by for use in load_entity(tmp_path, "workspace", picking).uses] == [
        *("", "", "contracts_facts"),
    ]
