"""Nodes, names and configurations."""

from pathlib import Path

import pytest

from strandline.declare.json_schema import SCHEMA_FILE, spell_json_schema
from strandline.model.hashing import compare_configs
from strandline.model.node import By, NewRows
from strandline.model.project import FactDataset, FileSource, Job, Quarantine, Snapshot
from tests.unit.declare.builders import load

YAML = """
project: x
timezone: UTC
sources:
  events: {files: "d/*.jsonl"}
  exports: {files: "e/*.csv"}
datasets:
  person:
    from: events
    columns:
      tenant: t
      person_id: p
      born_on: {path: b, type: date}
      year: {sql: "financial_year(at)", type: string}
      at: {path: at, type: timestamp_ms}
    record_set: {key: [tenant, person_id], order_by: [at]}
  child:
    from: events
    explode: children
    columns: {tenant: t, person_id: p, child_id: item.id, at: {path: at, type: bigint}}
    record_set: {key: [tenant, person_id, child_id], order_by: [at], children: replace}
  register:
    from: exports
    columns: {amount: {type: bigint}}
  visits:
    from: events
    columns: {id: id}
    event_stream: {identity: [id]}
jobs:
  - name: late
    input_datasets: [counts]
    output_dataset: doubled
    sql: select tenant, n * 2 as n from counts
  - name: count_people
    input_datasets: [person]
    output_dataset: counts
    incremental: {mode: keyed, key: [tenant]}
    config: {least: 1}
    sql: |
      -- people per tenant
      select tenant, count(*) as n from person group by tenant having count(*) > :least
"""


def test_every_dataset_becomes_its_nodes(tmp_path: Path) -> None:
    project = load(tmp_path, YAML)

    kinds = {node.name: node.kind for node in project.nodes}
    assert kinds == {
        "events": FileSource.kind,
        "exports": FileSource.kind,
        "person_facts": FactDataset.kind,
        "person_quarantine": Quarantine.kind,
        "person": Snapshot.kind,
        "child_facts": FactDataset.kind,
        "child_quarantine": Quarantine.kind,
        "child": Snapshot.kind,
        "register_facts": FactDataset.kind,
        "register_quarantine": Quarantine.kind,
        "visits_facts": FactDataset.kind,
        "visits_quarantine": Quarantine.kind,
        "counts": Job.kind,
        "doubled": Job.kind,
    }


def test_inputs_come_before_their_readers(tmp_path: Path) -> None:
    project = load(tmp_path, YAML)

    seen: set[str] = set()
    for node in project.nodes:
        assert {i.dataset for i in node.inputs} <= seen
        seen.add(node.name)


def test_facts_take_new_rows_and_snapshots_the_keys_in_them(tmp_path: Path) -> None:
    project = load(tmp_path, YAML)

    assert [(i.dataset, i.relation) for i in project.get("person_facts").inputs] == [("events", NewRows())]
    assert [(i.dataset, i.relation) for i in project.get("person_quarantine").inputs] == [
        ("events", NewRows())
    ]
    assert project.get("person").inputs[0].relation == By(columns=("tenant", "person_id"))
    assert project.get("child").inputs[0].relation == By(columns=("tenant", "person_id"))


def test_a_name_on_the_command_line_means_its_nodes(tmp_path: Path) -> None:
    project = load(tmp_path, YAML)

    assert project.names["person"] == ("person_facts", "person_quarantine", "person")
    assert project.names["visits"] == ("visits_facts", "visits_quarantine")
    assert project.names["person_facts"] == ("person_facts",)
    assert project.names["count_people"] == ("counts",)
    assert project.names["counts"] == ("counts",)
    assert project.names["events"] == ("events",)


def test_a_name_in_sql_means_one_table(tmp_path: Path) -> None:
    project = load(tmp_path, YAML)

    assert project.tables["person"] == "person"
    assert project.tables["visits"] == "visits_facts"
    assert project.tables["counts"] == "counts"


def changed(folder: Path, node: str, *edits: tuple[str, str]) -> tuple[set[str], bool]:
    """Parts of a node's configuration that an edit changes, and whether that freezes it."""
    edited = YAML
    for old, new in edits:
        assert old in edited
        edited = edited.replace(old, new)
    before, after = load(folder, YAML).get(node).config, load(folder, edited).get(node).config
    parts, freezes = compare_configs(before.parts, after)
    assert (before.hash != after.hash) == bool(parts)
    return set(parts), freezes


@pytest.mark.parametrize(
    ("node", "old", "new", "parts", "freezes"),
    [
        ("person_facts", "person_id: p\n", "person_id: q\n", {"column person_id", "deciding columns"}, False),
        (
            "person_facts",
            "person_id: p\n",
            "person_id: {path: p, default: x}\n",
            {"default person_id"},
            False,
        ),
        (
            "person_facts",
            "born_on: {path: b, type: date}",
            "born_on: {path: c, type: date}",
            {"column born_on"},
            False,
        ),
        (
            "person_facts",
            "      tenant: t\n",
            "      tenant: t\n      name: n\n",
            {"column name", "type name"},
            False,
        ),
        (
            "person_facts",
            "      born_on: {path: b, type: date}\n",
            "",
            {"column born_on", "type born_on"},
            True,
        ),
        ("person_facts", "type: date", "type: timestamp", {"column born_on", "type born_on"}, True),
        (
            "person_facts",
            "type: timestamp_ms",
            "type: timestamp_us",
            {"column at", "deciding columns", "source_at"},
            False,
        ),
        (
            "person_facts",
            "order_by: [at]}",
            "order_by: [at], deleted: \"year = 'x'\"}",
            {"deleted", "deciding columns"},
            True,
        ),
        ("person_facts", "key: [tenant, person_id]", "key: [person_id, tenant]", {"key"}, True),
        (
            "person_facts",
            "from: events\n    columns:\n",
            "from: events\n    where: t is not null\n    columns:\n",
            {"where"},
            False,
        ),
        ("person_facts", "timezone: UTC", "timezone: Asia/Kolkata", {"column year"}, False),
        ("child_facts", "timezone: UTC", "timezone: Asia/Kolkata", set(), False),
        ("person_facts", "order_by: [at]}", "order_by: [at]}\n    guard: {at_least: 3}", set(), False),
        ("person_facts", "sources:", "settings: {workers: 7}\nsources:", set(), False),
        (
            "person",
            "      tenant: t\n",
            "      tenant: t\n      name: n\n",
            {"column name", "type name"},
            False,
        ),
        ("person", "person_id: p\n", "person_id: q\n", {"column person_id", "deciding columns"}, False),
        ("person", "type: date", "type: timestamp", {"column born_on", "type born_on"}, True),
        ("person_quarantine", "type: date", "type: timestamp", {"column born_on", "type born_on"}, False),
        ("child", ", children: replace", "", {"children"}, True),
        ("child_facts", "explode: children", "explode: kids", {"explode"}, True),
        ("visits_facts", "    event_stream: {identity: [id]}\n", "", {"identity", "deciding columns"}, True),
        (
            "register_facts",
            "amount: {type: bigint}",
            "amount: {type: bigint}, name: {type: date}",
            {"column name", "cast name"},
            True,
        ),
        (
            "register_facts",
            "amount: {type: bigint}",
            "amount: {type: bigint}, name: {sql: x, type: date}",
            {"column name", "type name"},
            False,
        ),
        ("exports", '{files: "e/*.csv"}', '{files: "f/*.csv"}', set(), False),
        ("exports", '{files: "e/*.csv"}', '{files: "e/*.csv", options: {sep: ;}}', {"options"}, False),
        ("counts", "-- people per tenant", "-- tenants", set(), False),
        ("counts", "having count(*)", "having max(1)", {"sql"}, False),
        ("counts", "least: 1", "least: 2", {"config"}, False),
        ("counts", "mode: keyed, key: [tenant]", "mode: full", {"mode", "key", "inputs"}, True),
        ("counts", "timezone: UTC", "timezone: Asia/Kolkata", set(), False),
        ("counts", "name: count_people", "name: count_persons", set(), False),
    ],
)
def test_a_change_is_named_and_freezes_only_what_it_must(
    node: str, old: str, new: str, parts: set[str], freezes: bool, tmp_path: Path
) -> None:
    assert changed(tmp_path, node, (old, new)) == (parts, freezes)


@pytest.mark.parametrize("node", ["person_facts", "person"])
def test_a_source_that_becomes_complete_freezes_what_is_made_of_it(node: str, tmp_path: Path) -> None:
    edits = (
        ('"d/*.jsonl"', '"d/*.jsonl", complete: true'),
        ("event_stream: {identity: [id]}", "record_set: {key: [id], order_by: [id]}"),
    )

    assert changed(tmp_path, node, *edits) == ({"complete"}, True)


@pytest.mark.parametrize(
    "node", ["person_facts", "person_quarantine", "person", "child_facts", "visits_facts"]
)
def test_another_source_freezes_what_is_made_of_it(node: str, tmp_path: Path) -> None:
    edits = (
        ('  events: {files: "d/*.jsonl"}', '  messages: {files: "d/*.jsonl"}'),
        ("from: events", "from: messages"),
    )

    assert changed(tmp_path, node, *edits) == ({"from"}, True)


def test_the_shipped_json_schema_is_up_to_date() -> None:
    assert SCHEMA_FILE.read_text() == spell_json_schema(), "run `python -m strandline.declare.json_schema`"


@pytest.mark.parametrize(
    ("sql", "counts"),
    [
        ("select * from visits union all select * from others", True),
        ("select * from visits union by name select * from others", False),
        ("select id, page from visits union all select id, page from others", False),
        ("select * from visits", False),
    ],
)
def test_the_order_of_columns_counts_where_the_sql_goes_by_it(sql: str, counts: bool, tmp_path: Path) -> None:
    inputs = "[visits, others]" if "others" in sql else "[visits]"
    yaml = f"""
project: x
sources: {{events: {{files: "d/*.jsonl"}}}}
datasets:
  visits: {{from: events, columns: {{id: id, page: page}}}}
  others: {{from: events, columns: {{id: id, page: page}}}}
jobs:
  - {{name: j, input_datasets: {inputs}, output_dataset: j, sql: "{sql}"}}
"""
    before, after = (
        load(tmp_path, text).get("j").config
        for text in (yaml, yaml.replace("{id: id, page: page}", "{page: page, id: id}", 1))
    )

    assert (before.hash != after.hash) is counts
