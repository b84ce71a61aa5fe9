"""Every mistake of an entity is told once, where it stands, with what to do."""

from pathlib import Path

import pytest

from tests.unit.declare.builders import line_of, report, slugs
from tests.unit.declare.entities.builders import BASE, edited

ID = "    id: workspace_id"
BY = "    by: {app_sources: workspaceid}"
LIVE = """      live_sources:  {from: app_sources, select: "count(id)", where: "deleted = 'FALSE'"}"""
NEWEST = '      newest_source: {from: app_sources, select: "latest(name)"}'
TRACKS = (
    '      tracks:       {from: app_tracks, select: "count(*)",'
    " window: {column: sent_at, last: [7 days, 30 days]}}"
)
SHARED = "        where: \"deleted = 'FALSE'\""
ARR = '      arr:           {from: contracts, select: "sum(amount)", default: 0}'
PACE = '      pace:          {expr: "tracks_7d / nullif(tracks_30d, 0)"}'
VIA = "    by: {calls: {via: sf_account, on: {salesforce_id: id}}, workspace: workspace_id}"
SOURCES = '      sources:  {from: workspace, select: "sum(live_sources)"}'

Told = tuple[str, str, str, str]
"""The line as it is written, and the line instead; what is told of it; the remedy with its slug."""

MISTAKES: tuple[Told, ...] = (
    (
        ID,
        "    id: [workspace_id, Workspace_id]",
        "the id of the entity `workspace` names a column twice.",
        "Keep one of them.  [named-twice]",
    ),
    (
        ID,
        "    id: {workspace_id: double}",
        "the id `workspace_id` of the entity `workspace` is `double`, which cannot name an entity.",
        "Write `decimal(18,2)`.  [entity-id-type]",
    ),
    (
        BY,
        "    by: {app_sources: workspace}",
        "`by` of the entity `workspace` names `workspace`, which is not a column of `app_sources`.",
        "Did you mean `workspaceid`?  [unknown-column]",
    ),
    (
        BY,
        "    by: {app_sources: [workspaceid, id]}",
        "`by` of the entity `workspace` names `workspaceid` and `id`, and its id has one column.",
        "The id is `workspace_id`: write one column for each, in this order, or {id: column}.  [entity-by]",
    ),
    (
        BY,
        "    by: {app_sources: {workspace: workspaceid}}",
        "`by` of the entity `workspace` names `workspace`, which is not part of its id.",
        "Did you mean `workspace_id`?  [entity-by]",
    ),
    (
        BY,
        "    by: {app_sources: workspaceid, calls: call_id}",
        "`by` of the entity `workspace` names `calls`, which no variable reads.",
        "Remove `calls` from `by`.  [unused-input]",
    ),
    (
        LIVE,
        '      live_sources:  {from: app_source, select: "count(id)"}',
        "the variable `live_sources` of the entity `workspace` reads `app_source`, which is not a dataset.",
        "Did you mean `app_sources`?  [unknown-dataset]",
    ),
    (
        LIVE,
        '      live_sources:  {from: app_sources, select: "count(idd)"}',
        "`select` of the variable `live_sources` names `idd`, which is not a column of `app_sources`.",
        "Did you mean `id`?  [unknown-column]",
    ),
    (
        LIVE,
        '      live_sources:  {from: app_sources, select: "count(*)", where: "deletd"}',
        "`where` of the variable `live_sources` names `deletd`, which is not a column of `app_sources`.",
        "Did you mean `deleted`?  [unknown-column]",
    ),
    (
        LIVE,
        '      live_sources:  {from: app_sources, select: "count(*)", where: "_deleted"}',
        "`where` of the variable `live_sources` names the metadata column `_deleted`.",
        "Name another column of `app_sources`.  [metadata-column]",
    ),
    (
        LIVE,
        '      live_sources:  {from: app_sources, select: "upper(name)"}',
        "`select` of the variable `live_sources` names `name` outside of an aggregate.",
        "Write it inside of one, such as `max`: an entity has one value, and many rows.  [variable-select]",
    ),
    (
        LIVE,
        '      live_sources:  {from: app_sources, select: "amount_of(name)"}',
        "`select` of the variable `live_sources` names `name` outside of an aggregate.",
        "Write it inside of one, such as `max`: an entity has one value, and many rows.  [variable-select]",
    ),
    (
        LIVE,
        '      live_sources:  {from: app_sources, select: "any_value(name)"}',
        "`select` of the variable `live_sources`: `any_value` takes whichever row comes first.",
        "Use `latest(<column>)` or `earliest(<column>)`, which say which row is taken.  [nondeterministic]",
    ),
    (
        LIVE,
        '      live_sources:  {from: app_sources, select: "max(now())"}',
        "`select` of the variable `live_sources`: `now` reads the wall clock.",
        "Use `:as_of`, the run's logical time.  [nondeterministic]",
    ),
    (
        LIVE,
        '      live_sources:  {from: app_sources, select: "count(*)", where: "id = :who"}',
        "`where` of the variable `live_sources` uses the parameter `:who`, which does not exist.",
        "Write the value itself, or use `:as_of`, the run's logical time.  [unknown-parameter]",
    ),
    (
        LIVE,
        '      live_sources:  {from: app_sources, select: "count(*)", merge: sum}',
        "the variable `live_sources` has `merge`, and rows of `app_sources` are updated:"
        " a record would count again with each update.",
        "Remove `merge`: Strandline finds out how a change reaches the variable.  [merge-refused]",
    ),
    (
        TRACKS,
        TRACKS.replace("window:", "merge: max, window:"),
        "the variable `tracks` has `merge: max`, which is not right for it.",
        "Write `merge: sum`.  [merge-refused]",
    ),
    (
        TRACKS,
        TRACKS.replace("30 days", "3 months"),
        "the window of the variable `tracks` has the length `3 months`: months differ in length.",
        "Write days: `90 days`.  [window-length]",
    ),
    (
        TRACKS,
        TRACKS.replace("30 days", "a while"),
        "the window of the variable `tracks` has the length `a while`, which is not one.",
        "Write a number of minutes, hours, days or weeks, such as `7 days`.  [window-length]",
    ),
    (
        TRACKS,
        TRACKS.replace("column: sent_at", "column: sent"),
        "the window of the variable `tracks` names `sent`, which is not a column of `app_tracks`.",
        "Did you mean `sent_at`?  [unknown-column]",
    ),
    (
        TRACKS,
        TRACKS.replace("column: sent_at", "column: user_id"),
        "the window of the variable `tracks` is over `user_id` of `app_tracks`, which is string, not a time.",
        "Name a timestamp or date column, or give this one such a type where it is declared.  [window-type]",
    ),
    (
        ARR,
        ARR.replace("arr: ", "tracks_7d: "),
        "the entity `workspace` has two variables `tracks_7d`; the other is at strandline.yaml:",
        "Rename one of them: each is a column.  [named-twice]",
    ),
    (
        ARR,
        ARR.replace("arr: ", "workspace_id: "),
        "the variable `workspace_id` of the entity `workspace` has the name of its id.",
        "Give it another name.  [named-twice]",
    ),
    (
        PACE,
        '      pace:          {expr: "tracks_7d / track_30d"}',
        "`expr` of the variable `pace` names `track_30d`, which is not a variable of the entity `workspace`.",
        "Did you mean `tracks_30d`?  [unknown-column]",
    ),
    (
        ARR,
        ARR.replace("sum(amount)", "count()"),
        "`select` of the variable `arr` uses `count` with arguments that it does not take.",
        "Write `count(*)` or `count(<column>)`.  [variable-select]",
    ),
    (
        ARR,
        ARR.replace("default: 0", "default: abc"),
        'the default "abc" is not a `decimal(28,2)`.',
        "Write a number with at most 2 decimals that fits `decimal(28,2)`.  [default-does-not-fit]",
    ),
    (
        TRACKS,
        TRACKS.replace("window:", "default: 1.5, window:"),
        "the default 1.5 is not a `bigint`.",
        "Write a whole number.  [default-does-not-fit]",
    ),
    (
        TRACKS,
        TRACKS.replace("count(*)", "max(now())"),
        "`select` of the variable `tracks`: `now` reads the wall clock.",
        "Use `:as_of`, the run's logical time.  [nondeterministic]",
    ),
    (
        TRACKS,
        TRACKS.replace("30 days", "1 day, 7 days"),
        "the window of the variable `tracks` has the length `7 days` twice.",
        "Keep one of them.  [named-twice]",
    ),
    (
        SHARED,
        SHARED.replace("deleted", "deletd"),
        "`where` of a group names `deletd`, which is not a column of `app_sources`.",
        "Did you mean `deleted`?  [unknown-column]",
    ),
    (
        PACE,
        '      pace:          {expr: "tracks_7d", where: "tracks_7d > 1"}',
        "`where` does not go with the other keys in `entities.workspace.variables.pace`.",
        "Remove it. It goes with `by`, `default`, `from`, `merge`, `select` and `window`.  [unknown-key]",
    ),
    (
        PACE,
        '      pace:          {expr: "pace + 1"}',
        "variables of the entity `workspace` depend on each other: `pace` needs `pace`.",
        "Write one of them without the other.  [cycle]",
    ),
    (
        PACE,
        '      pace:          {expr: "sum(tracks_7d)"}',
        "`expr` of the variable `pace` uses an aggregate; it is computed from one row alone.",
        "Do this in a job.  [sql-not-row-wise]",
    ),
    (
        SOURCES,
        '      sources:  {from: workspace, select: "latest(live_sources)"}',
        "`select` of the variable `sources` takes the latest row of `workspace`, whose rows have no order:"
        " it is computed.",
        "Name the order: `max_by(<column>, <order>)` or `min_by(<column>, <order>)`.  [latest-without-order]",
    ),
    (
        VIA,
        VIA.replace("via: sf_account", "via: sf_accounts"),
        "`by` of the entity `account` reads `sf_accounts`, which is not a dataset.",
        "Did you mean `sf_account`?  [unknown-dataset]",
    ),
    (
        VIA,
        VIA.replace("{salesforce_id: id}", "{}"),
        "`on` is empty in `entities.account.by.calls`.",
        "Name at least one: `on: [<name>]`.  [wrong-type]",
    ),
    (
        VIA,
        VIA.replace("{salesforce_id: id}", "{salesforce: id}"),
        "`on` of the entity `account` names `salesforce`, which is not a column of `calls`.",
        "Did you mean `salesforce_id`?  [unknown-column]",
    ),
    (
        VIA,
        VIA.replace("{salesforce_id: id}", "{at: id}"),
        "`on` of the entity `account` compares `at` of `calls`, which is timestamp, with `id` of"
        " `sf_account`, which is string.",
        "Give both one type where they are declared.  [entity-by]",
    ),
)


@pytest.mark.parametrize(("old", "new", "what", "remedy"), MISTAKES, ids=lambda text: text.strip()[:50])
def test_a_mistake_is_told_once_where_it_stands(
    tmp_path: Path, old: str, new: str, what: str, remedy: str
) -> None:
    project = edited(old, new)

    told = report(tmp_path, project)

    line = line_of(project, new.splitlines()[0])
    assert f"strandline.yaml:{line}: {what}" in told
    assert remedy in told
    assert told.count("  [") == 1, told


def test_all_mistakes_of_entities_are_told_at_once(tmp_path: Path) -> None:
    project = (
        BASE
        + """\
entities:
  workspace:
    id: workspace_id
    by: {app_sources: workspace}
    variables:
      live_sources: {from: app_sources, by: workspaceid, select: "count(idd)"}
      tracks: {from: app_tracks, select: "tracks(*)", window: {column: sent, last: 2 months}}
      tracks_7d: {from: app_tracks, select: "count(*)"}
      other: {from: app_trackss, select: "count(*)"}
      one: {expr: "two"}
      two: {expr: "one"}
      three: {expr: "four"}
    groups:
      - {from: app_tracks, window: {column: sent_at, last: [7 days]}, variables: {tracks: "count(*)"}}
"""
    )

    assert sorted(slugs(tmp_path, project)) == sorted(
        [
            "window-length",
            "unknown-dataset",
            "variable-select",
            "cycle",
            "unknown-column",
            "named-twice",
            "unused-input",
        ]
    )


def test_ids_whose_types_differ_are_asked_for(tmp_path: Path) -> None:
    project = edited(
        "transfers:\n    from: transfer_events\n    columns: {payer: payer",
        "transfers:\n    from: transfer_events\n    columns: {payer: {path: payer, type: bigint}",
    )

    told = report(tmp_path, project)

    assert "is string in `workspace` and bigint in `transfers`." in told
    assert "Say which it is: `id: {organization_id: string}`.  [entity-id-type]" in told
    assert report(tmp_path, project.replace("id: organization_id", "id: {organization_id: string}")) == ""


def test_a_dataset_without_the_ids_column_asks_for_by(tmp_path: Path) -> None:
    told = report(tmp_path, edited(BY + "\n", ""))

    assert "the entity `workspace` reads `app_sources`, which has no column `workspace_id`" in told
    assert "Add `by: {app_sources: <column>}`. Did you mean `workspaceid`?  [entity-by]" in told


def test_a_row_cannot_find_its_entity_through_itself(tmp_path: Path) -> None:
    there = "{calls: {via: sf_account, on: {salesforce_id: id}}, "
    back = "sf_account: {via: calls, on: {id: salesforce_id}}, "

    told = report(tmp_path, edited(there, there + back))

    assert "`by` of the entity `account` finds the owners of `calls` through itself." in told


def test_an_entity_without_variables_is_refused(tmp_path: Path) -> None:
    told = report(tmp_path, BASE[: BASE.index("jobs:")] + "entities:\n  workspace: {id: workspace_id}\n")

    assert "the entity `workspace` has no variables." in told


def test_entities_that_read_each_other_are_a_cycle(tmp_path: Path) -> None:
    project = edited(ARR, ARR + '\n      loop: {from: account, by: organization_id, select: "sum(sources)"}')

    assert "these outputs depend on each other" in report(tmp_path, project)


def test_a_variable_is_either_selected_or_computed(tmp_path: Path) -> None:
    project = edited(PACE, '      pace: {expr: "tracks_7d", select: "count(*)", from: app_tracks}')

    told = report(tmp_path, project)

    assert "`expr` does not go with the other keys in `entities.workspace.variables.pace`." in told
    assert "Remove it. It goes with `default`.  [unknown-key]" in told


@pytest.mark.parametrize("merge", ["sum", "sum({{rowset.tracks}})"])
def test_merge_is_accepted_on_an_event_stream_where_it_is_right(tmp_path: Path, merge: str) -> None:
    project = edited(TRACKS, TRACKS.replace("window:", f'merge: "{merge}", window:'))

    assert report(tmp_path, project) == ""


def test_a_job_that_reads_a_variable_that_was_removed_is_told(tmp_path: Path) -> None:
    told = report(tmp_path, edited(LIVE + "\n", ""))

    assert "the SQL of job `large` names `live_sources`, which is not a column of its inputs." in told
