"""Columns with a definition each: what is added, removed, changed, and what a task leaves as it is."""

from collections.abc import Collection, Mapping

from strandline.model.definitions import ColumnWork, Definitions, find_definitions, plan_columns
from strandline.model.node import Node
from tests.golden.cases import tell

EVERYTHING = ("app_sources", "app_sources_facts", "app_tracks_facts")
SOURCES = EVERYTHING[:2]
PACE = 'edit       sources: {from => pace: {expr: "tracks_7d + sources"}\\n      sources: {from'
CHANGED = (
    "edit sources: {from: app_sources, select: count(*)} => sources: {from: app_sources, select: count(id)}"
)


def workspace(*commands: str) -> Node:
    return tell(("project profiles", *commands)).project.get("workspace")


def find(node: Node, written: Mapping[str, str] | None, present: Collection[str] = EVERYTHING) -> Definitions:
    return find_definitions(node, written, node.config, present)


def work(
    node: Node,
    written: Mapping[str, str] | None,
    applies: Collection[str] = (),
    present: Collection[str] = EVERYTHING,
) -> ColumnWork:
    return plan_columns(node, written, node.config, present, applies, anew=written is None)


def test_a_new_table_has_all_columns_and_the_declared_configuration() -> None:
    node = workspace(PACE)

    first = work(node, None)

    assert first.filled == {"pace", "sources", "tracks_7d", "tracks_30d"}
    assert (first.config.hash, first.config.parts) == (node.config.hash, node.config.parts)
    assert work(node, first.config.parts).config == first.config
    assert not work(node, first.config.parts).is_whole


def test_what_a_task_does_not_apply_stays_as_it_is() -> None:
    before, node = workspace(), workspace(CHANGED, PACE)

    left = work(node, before.config.parts)

    assert left.kept == {"sources"}
    assert not left.filled
    assert left.followed == {"tracks_7d", "tracks_30d"}
    assert "variable pace" not in left.config.parts
    assert left.config.parts["variable sources"] == before.config.parts["variable sources"] + " kept"
    assert work(node, left.config.parts).config == left.config


def test_what_is_changed_back_before_any_commit_is_current_and_after_one_is_returned() -> None:
    before, changed = workspace(), workspace(CHANGED)
    left = work(changed, before.config.parts).config.parts

    assert find(before, before.config.parts).due == ()
    assert find(before, left).returned == ("variable sources",)
    assert work(before, left, ("variable sources",)).config.hash == before.config.hash


def test_what_is_changed_twice_is_changed() -> None:
    before, changed = workspace(), workspace(CHANGED)
    again = workspace(CHANGED.replace("count(id)", "max(id)"))
    left = work(changed, before.config.parts).config.parts

    assert find(again, left).changed == ("variable sources",)
    assert work(again, left).config.parts == left


def test_what_is_removed_stays_recorded_until_a_task_drops_it() -> None:
    before, node = workspace(PACE), workspace()

    assert find(node, before.config.parts).removed == ("variable pace",)
    left = work(node, before.config.parts).config.parts
    assert left["variable pace"] == before.config.parts["variable pace"] + " kept"
    dropped = work(node, left, ("variable pace",))
    assert dropped.dropped == {"pace"}
    assert dropped.config.hash == node.config.hash


def test_what_was_removed_and_is_declared_again_before_a_task_dropped_it_catches_up() -> None:
    before, without = workspace(PACE), workspace()
    left = work(without, before.config.parts).config.parts

    assert find(before, left).returned == ("variable pace",)


def test_what_reads_a_missing_input_waits_with_its_expressions_and_names_nobody() -> None:
    node = workspace(PACE)

    found, first = find(node, None, SOURCES), work(node, None, present=SOURCES)

    assert found.added == ("variable sources",)
    assert set(found.waiting) == {"variable pace", "variable tracks_7d", "variable tracks_30d"}
    assert found.waiting["variable pace"] == ("app_tracks_facts",)
    assert first.rows == {"named by app_sources_facts(workspace_id)"}
    arrived = find(node, first.config.parts)
    assert arrived.rows == ("named by app_tracks_facts(workspace_id)",)
    assert set(arrived.added) == set(found.waiting)


def test_an_expression_over_a_changed_column_is_filled_with_it_and_never_before() -> None:
    before, node = workspace(), workspace(CHANGED, PACE)

    assert find(node, before.config.parts).waiting == {"variable pace": ()}
    alone = work(node, before.config.parts, ("variable pace",))
    together = work(node, before.config.parts, ("variable sources", "variable pace"))

    assert alone.filled == frozenset()
    assert together.filled == {"sources", "pace"}
    assert together.config.hash == node.config.hash


def test_a_changed_column_whose_new_input_is_missing_cannot_be_filled() -> None:
    before = workspace()
    node = workspace("edit sources: {from: app_sources, select => sources: {from: app_tracks, select")

    found = find(node, before.config.parts, SOURCES)

    assert (found.changed, found.fillable) == (("variable sources",), ())
    assert work(node, before.config.parts, ("variable sources",), SOURCES).kept == {"sources"}


def test_another_id_is_no_column() -> None:
    before, node = workspace(), workspace("edit id: workspace_id => id: {workspace_id: bigint}")

    assert find(node, before.config.parts).due == ()
    assert node.config.freezing == {"id"}
