"""`explain` describes the kind of the node, not another one."""

from datetime import UTC, datetime
from pathlib import Path

from strandline.model.catalog_records import CatalogView
from strandline.model.explained import Explained
from strandline.model.plan import Plan, Strategy
from strandline.plan import Observed
from strandline.plan.explain import explain_node
from tests.unit.declare.builders import load
from tests.unit.declare.timelines.builders import FILES, PROJECT

YAML = """
project: small
sources:
  blocks: {files: "d/*.jsonl"}
datasets:
  block:
    from: blocks
    columns: {number: {path: n, type: bigint}, hash: h, parent: p, at: {path: at, type: timestamp}}
    event_stream: {identity: [hash]}
  account:
    from: blocks
    columns: {id: id, at: {path: at, type: timestamp}}
    record_set: {key: [id], order_by: [at]}
chains:
  canonical: {from: block, number: number, hash: hash, parent: parent, head: longest, follow: {kept: block}}
jobs:
  - name: totals
    input_datasets: [canonical]
    output_dataset: totals
    incremental: {mode: keyed, key: [number]}
    sql: select number, count(*) as n from canonical group by number
  - name: hourly
    input_datasets: [block]
    output_dataset: hourly
    incremental: {mode: partition}
    partition: {column: at, unit: hour, final_after: 12 hours}
    sql: select hash, at from block
"""


def explained(folder: Path, name: str, yaml: str = YAML) -> Explained:
    observed = Observed(view=CatalogView(nodes={}), tables={}, listings={})
    return explain_node(
        load(folder, yaml, FILES).get(name), Plan(as_of=datetime(2024, 1, 1, tzinfo=UTC), tasks=()), observed
    )


def test_a_chain_is_explained_by_its_blocks(tmp_path: Path) -> None:
    chain = explained(tmp_path, "canonical")

    assert chain.how.startswith("The branch of the best head (longest) among the blocks of `block`")
    assert [i.why for i in chain.inputs] == ["each announced block names its number"]


def test_a_snapshot_by_its_facts_and_a_job_by_its_proof(tmp_path: Path) -> None:
    assert [i.why for i in explained(tmp_path, "account").inputs] == ["each fact names its key"]
    assert [i.why for i in explained(tmp_path, "totals").inputs] == [
        "its columns number are the key (proved from the SQL)"
    ]
    assert explained(tmp_path, "kept").how.startswith("Mode `keyed`: the SQL is run for the keys (hash)")


def test_how_far_a_partition_must_be_behind_is_shown_as_it_is_declared(tmp_path: Path) -> None:
    assert "once it is 12 hours behind the newest" in explained(tmp_path, "hourly").how


def test_a_valuation_by_its_history_and_by_what_looks_each_reference_up(tmp_path: Path) -> None:
    fold = explained(tmp_path, "position_history", PROJECT)
    valuation = explained(tmp_path, "daily_position_snapshots", PROJECT)

    assert fold.how.startswith("The facts of `transactions` are folded for each key")
    assert [i.why for i in fold.inputs] == ["each fact names its key"]
    assert [(i.name, i.relation) for i in valuation.inputs] == [
        ("position_history", "by"),
        ("business_dates", "matched"),
        ("securities", "matched"),
        ("market_prices", "matched"),
        ("fx_rates", "matched"),
    ]
    assert {i.strategy for i in valuation.inputs} == {Strategy.RECOMPUTE}
    assert valuation.inputs[0].why == "each row of the history names its key"
    assert valuation.inputs[4].why == (
        "it is looked up by currency: a change touches the rows that look it up"
    )
