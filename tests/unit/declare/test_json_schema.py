"""The shipped JSON Schema accepts the entries of LANGUAGE, and refuses what the loader refuses."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from strandline.declare.json_schema import SCHEMA_FILE
from strandline.declare.yaml_lines import load_yaml
from strandline.model.project import Chain, Job, Mode, Partitioning
from strandline.model.report import Report
from tests.unit.declare.builders import load
from tests.unit.declare.entities import builders as entities
from tests.unit.declare.timelines.builders import PROJECT as TIMELINES
from tests.unit.declare.timelines.builders import edited

SCHEMA: dict[str, Any] = json.loads(SCHEMA_FILE.read_text())

LANGUAGE = """
project: chain
jobs:
  - name: alert_evaluate
    incremental:
      {mode: cursor, cursor_column: block_number, unique_key: [alert_definition_id, block_hash, tx_hash]}
    update_strategy: append
    input_datasets: [hot_transactions]
    lookup_datasets: [alert_definitions]       # read whole; a change in one makes written rows stale
    output_dataset: alert_events
    sql: jobs/alert_evaluate.sql

  - name: parquet_compact
    incremental: {mode: partition}
    partition: {column: block_number, size: 10000, final_after: 100}
    update_strategy: replace
    input_datasets: [hot_blocks]
    output_dataset: cold_blocks
    config: {codec: zstd}                      # hashed; `:codec` in SQL, context.config in Python
    sql: select * from hot_blocks

datasets:
  alert_events:                                # an output may be described too: no `from:`
    key: [alert_definition_id, block_hash, tx_hash]       # of a row; checked at each commit

chains:
  hot_blocks:
    from: blocks                           # an event stream of every block ever announced
    number: block_number
    hash: block_hash
    parent: parent_hash
    head: {most: total_difficulty}         # or {most_summed: difficulty}, `longest`, or {last: seen_at}
    order_by: [seq]                        # ties: the lower was seen first; default _source_position
    group_by: [chain_id]                   # optional: one chain per value
    anchor: 1                              # optional: the first number; default the lowest seen
    follow: {hot_transactions: transactions, hot_logs: logs}     # rows of canonical blocks, by block hash
"""
OTHER_SPELLINGS = [
    (
        "{column: block_number, size: 10000, final_after: 100}",
        "{column: block_at, unit: day, final_after: 2 days}",
    ),
    ("{column: block_number, size: 10000, final_after: 100}", "{column: block_at, unit: hour}"),
    ("{column: block_number, size: 10000, final_after: 100}", "{column: block_at, unit: month}"),
    (
        "{column: block_number, size: 10000, final_after: 100}",
        "{column: block_number, size: 10000, by: [chain_id]}",
    ),
    ("config: {codec: zstd}", "config: {codec: zstd, finality_threshold: 100}"),
    ("head: {most: total_difficulty}", "head: {most_summed: difficulty}"),
    ("head: {most: total_difficulty}", "head: longest"),
    ("head: {most: total_difficulty}", "head: {last: seen_at}"),
]


def accepts(schema: Mapping[str, Any], value: object) -> bool:
    """Validates like a JSON Schema validator, for the keywords that ours uses."""
    known = {
        "$ref",
        "additionalProperties",
        "anyOf",
        "const",
        "enum",
        "items",
        "minItems",
        "minProperties",
        "minimum",
        "oneOf",
        "properties",
        "required",
        "type",
    }
    assert set(schema) <= known | {"$defs", "$id", "$schema", "default", "description", "title"}, (
        f"not judged: {set(schema) - known}"
    )
    if "$ref" in schema:
        return accepts(SCHEMA["$defs"][schema["$ref"].rsplit("/", 1)[-1]], value)
    return (
        _is_of_type(schema.get("type"), value)
        and ("const" not in schema or value == schema["const"])
        and ("enum" not in schema or value in schema["enum"])
        and ("minimum" not in schema or not isinstance(value, int) or value >= schema["minimum"])
        and ("anyOf" not in schema or any(accepts(part, value) for part in schema["anyOf"]))
        and ("oneOf" not in schema or sum(accepts(part, value) for part in schema["oneOf"]) == 1)
        and (not isinstance(value, list) or _accepts_list(schema, value))
        and (not isinstance(value, dict) or _accepts_object(schema, value))
    )


_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
    "array": list,
    "object": dict,
}


def _is_of_type(name: str | None, value: object) -> bool:
    if name in ("integer", "number") and isinstance(value, bool):
        return False
    return name is None or isinstance(value, _TYPES[name])


def _accepts_list(schema: Mapping[str, Any], value: list[object]) -> bool:
    return len(value) >= schema.get("minItems", 0) and all(
        accepts(schema.get("items", {}), item) for item in value
    )


def _accepts_object(schema: Mapping[str, Any], value: dict[str, object]) -> bool:
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    if not set(schema.get("required", ())) <= set(value) or len(value) < schema.get("minProperties", 0):
        return False
    for key, item in value.items():
        if key in properties:
            if not accepts(properties[key], item):
                return False
        elif others is False or (isinstance(others, dict) and not accepts(others, item)):
            return False
    return True


def replaced(old: str, new: str) -> str:
    assert old in LANGUAGE, old
    return LANGUAGE.replace(old, new)


def test_the_schema_takes_the_example_of_the_language() -> None:
    assert accepts(SCHEMA, yaml.safe_load(LANGUAGE))


@pytest.mark.parametrize(("old", "new"), OTHER_SPELLINGS)
def test_the_schema_takes_the_other_spellings_that_the_language_names(old: str, new: str) -> None:
    assert accepts(SCHEMA, yaml.safe_load(replaced(old, new)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("mode: cursor", "mode: cursr"),
        ("cursor_column: block_number", "cursor_colum: block_number"),
        ("update_strategy: append", "update_strategy: insert"),
        ("unique_key: [alert_definition_id, block_hash, tx_hash]}", "unique_key: []}"),
        ("size: 10000", "size: 0"),
        ("size: 10000", "size: many"),
        ("column: block_number, size: 10000, final_after: 100", "column: block_at, unit: week"),
        ("final_after: 100", "final_after: [100]"),
        ("final_after: 100", "final_after: true"),
        ("column: block_number, ", ""),
        ("head: {most: total_difficulty}", "head: shortest"),
        ("head: {most: total_difficulty}", "head: {most: total_difficulty, last: seen_at}"),
        ("    head: {most: total_difficulty}", "    # head"),
        ("anchor: 1", "anchor: first"),
        ("group_by: [chain_id]", "group_by: chain_id"),
        ("follow: {hot_transactions: transactions, hot_logs: logs}", "follow: [transactions]"),
    ],
)
def test_the_schema_refuses_what_the_language_lacks(old: str, new: str) -> None:
    assert not accepts(SCHEMA, yaml.safe_load(replaced(old, new)))


def parse(text: str) -> object:
    """As the loader reads it, which takes `on` as a word. YAML 1.1 takes it as true."""
    document = load_yaml(text.encode(), "strandline.yaml", Report())
    assert document is not None
    return document.data


def test_the_schema_takes_the_timeline_of_the_language() -> None:
    weekdays = edited(TIMELINES, ("{dataset: business_dates, date: business_on}", "weekdays"))

    assert accepts(SCHEMA, parse(TIMELINES))
    assert accepts(SCHEMA, parse(weekdays))
    assert accepts(SCHEMA, {"project": "x", "settings": {"batch_rows": 1}})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("key: [portfolio_id, security_id]", "key: []"),
        ("    order_by: [transaction_at, transaction_id]\n", ""),
        ("together: [portfolio_id]", "together: portfolio_id"),
        ("{dataset: business_dates, date: business_on}", "workdays"),
        ("{dataset: business_dates, date: business_on}", "{dataset: business_dates}"),
        ("required: true", "required: maybe"),
        ("on: {currency: security.currency}", "on: currency"),
        ("on: {currency: security.currency}", "on: {}"),
        ("      where: ", "      having: "),
        ("market_value: quantity * price.price * fx.rate", "market_value: {sql: quantity}"),
    ],
)
def test_the_schema_refuses_what_a_timeline_lacks(old: str, new: str) -> None:
    assert not accepts(SCHEMA, parse(edited(TIMELINES, (old, new))))


def test_the_schema_takes_the_entities_of_the_language() -> None:
    assert accepts(SCHEMA, parse(entities.PROJECT))
    for old, new in (
        ("id: workspace_id", "id: [workspace_id, part]"),
        ("id: workspace_id", "id: {workspace_id: bigint}"),
        ("by: payer", "by: [payer]"),
        ("by: payer", "by: {organization_id: payer}"),
    ):
        assert accepts(SCHEMA, parse(entities.edited(old, new))), new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    id: workspace_id\n", ""),
        ("every: day", "every: quarter"),
        ("{salesforce_id: id}}", "{}}"),
        ("last: [7 days, 30 days]", "last: []"),
        ("last: [7 days, 30 days]", "latest: 7 days"),
        ('created: "count(*)"', "created: 1"),
        ('{expr: "tracks_7d', '{from: app_tracks, expr: "tracks_7d'),
        ("default: 0", "default: [0]"),
    ],
)
def test_the_schema_refuses_what_an_entity_lacks(old: str, new: str) -> None:
    assert not accepts(SCHEMA, parse(entities.edited(old, new)))


COLUMNS = "chain_id: c, block_number: {path: n, type: bigint}, block_hash: h"
DATASETS = f"""\
sources:
  events: {{files: "e/*.jsonl"}}
datasets:
  blocks:
    from: events
    columns:
      {{{COLUMNS}, parent_hash: p, seq: {{path: s, type: bigint}},
       total_difficulty: {{path: d, type: "decimal(38,0)"}}, difficulty: {{path: e, type: bigint}},
       seen_at: {{path: t, type: timestamp}}, block_at: {{path: b, type: timestamp}}}}
  transactions: {{from: events, columns: {{{COLUMNS}, tx_hash: x, value: {{path: v, type: bigint}}}}}}
  logs: {{from: events, columns: {{{COLUMNS}, log_index: i}}}}
  alert_definitions:
    from: events
    columns: {{alert_definition_id: i, threshold: {{path: t, type: bigint}}, at: a}}
    record_set: {{key: [alert_definition_id], order_by: [at]}}
"""
FILES: dict[str, str | bytes] = {
    "jobs/alert_evaluate.sql": """
        select d.alert_definition_id, t.block_number, t.block_hash, t.tx_hash
        from hot_transactions t join alert_definitions d on t.value > d.threshold
        """
}


def test_the_example_of_the_language_loads(tmp_path: Path) -> None:
    project = load(tmp_path, replaced("datasets:\n", DATASETS), FILES)

    alerts, cold, chain = (
        project.get(name).definition for name in ("alert_events", "cold_blocks", "hot_blocks")
    )
    assert isinstance(alerts, Job)
    assert isinstance(cold, Job)
    assert isinstance(chain, Chain)
    assert (alerts.mode, alerts.key, alerts.row_key) == (Mode.CURSOR, ("block_number",), alerts.unique_key)
    assert cold.partition == Partitioning(column="block_number", size=10_000, final_after=100)
    assert (chain.key, chain.order_by, chain.anchor) == (("chain_id", "block_number"), ("seq",), 1)
    assert {"hot_transactions", "hot_logs"} <= set(project.names)


@pytest.mark.parametrize(("old", "new"), OTHER_SPELLINGS)
def test_the_other_spellings_load_too_and_mean_something_else(old: str, new: str, tmp_path: Path) -> None:
    one, other = (
        load(tmp_path, text.replace("\ndatasets:\n", f"\n{DATASETS}"), FILES)
        for text in (LANGUAGE, replaced(old, new))
    )

    node = "hot_blocks" if "head" in old else "cold_blocks"
    assert one.get(node).config.hash != other.get(node).config.hash
