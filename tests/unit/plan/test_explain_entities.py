"""`explain` of an entity lists each variable: where it comes from, how a change reaches it, its window."""

from strandline.cli.explain import render_explained
from strandline.model.explained import ExplainedVariable
from strandline.model.plan import Strategy
from strandline.plan.explain import explain_node
from tests.golden.cases import tell

WORLD = ("project profiles", "built")


def explain(*commands: str) -> tuple[dict[str, ExplainedVariable], str]:
    world = tell((*WORLD, *commands))
    explained = explain_node(world.project.get("workspace"), world.plan(), world.observed)
    return {v.name: v for v in explained.variables}, render_explained(explained)


def test_each_variable_of_an_entity_is_listed_with_its_window() -> None:
    variables, text = explain()

    assert variables["tracks_7d"] == ExplainedVariable(
        name="tracks_7d",
        read_from="app_tracks",
        strategy=Strategy.ACCUMULATE,
        why="changed rows are added and subtracted, and so are rows that cross a border when `as_of` moves",
        window="7 days",
        written=True,
    )
    assert list(variables) == ["sources", "tracks_7d", "tracks_30d"]
    assert variables["sources"].window == ""
    assert "tracks_30d  app_tracks   accumulate  30 days" in text


def test_a_variable_that_depends_on_all_rows_is_recomputed() -> None:
    variables, _ = explain("edit select: count(*), window => select: count(distinct sent_at), window")

    assert variables["tracks_7d"].strategy is Strategy.RECOMPUTE
    assert variables["tracks_7d"].why.endswith(
        "; then `count(distinct ...)` depends on all rows: the affected entities are read again, inside of"
        " the window"
    )


def test_all_variables_are_computed_in_full_where_the_next_task_does_so() -> None:
    variables, _ = explain("commit app_sources overwrite 500 rows")

    assert variables["sources"].strategy is Strategy.FULL
    assert variables["sources"].why.startswith("`app_sources` was rewritten; else accumulate, as ")


def test_a_time_that_is_not_a_border_is_told() -> None:
    variables, _ = explain(
        'edit tracks: {from => age: {from: app_tracks, select: "sum(datediff(:as_of, sent_at))"}\\n'
        "      tracks: {from"
    )

    assert "every entity is affected when it moves" in variables["age"].why
    assert "every entity" not in variables["tracks_7d"].why


def test_an_expression_reads_no_input() -> None:
    variables, _ = explain('edit tracks: {from => pace: {expr: "tracks_7d / 7"}\\n      tracks: {from')

    assert (variables["pace"].read_from, variables["pace"].why) == (
        "",
        "it is computed from `tracks_7d` and reads no input",
    )


def test_a_variable_that_was_changed_or_never_published_is_not_written() -> None:
    selects = "sources: {from: app_sources, select: count"
    changed, _ = explain(f"edit {selects}(*) => {selects}(id)")

    assert [name for name, v in changed.items() if not v.written] == ["sources"]
    world = tell((*WORLD[:1],))
    new = explain_node(world.project.get("workspace"), world.plan(), world.observed)
    assert not any(v.written for v in new.variables)


def test_a_variable_that_is_stale_or_waits_says_so() -> None:
    stale, _ = explain("edit app_sources, select: count(*) => app_sources, select: count(id)")
    built = "built source_events app_sources_facts app_sources workspace"
    world = tell((WORLD[0], "edit t/*.jsonl => t/*.csv", built))
    waiting = explain_node(world.project.get("workspace"), world.plan(), world.observed).variables

    assert "until `strandline backfill workspace --stale` fills it; then " in stale["sources"].why
    assert [(v.name, v.written) for v in waiting] == [
        ("sources", True),
        ("tracks_7d", False),
        ("tracks_30d", False),
    ]
    assert waiting[1].why.startswith("it waits for `app_tracks`, which was never received; then ")


def test_other_nodes_have_no_variables() -> None:
    world = tell(WORLD)

    assert explain_node(world.project.get("busy"), world.plan(), world.observed).variables == ()
