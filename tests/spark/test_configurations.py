"""What a changed declaration does to existing rows.

No published row lacks a configuration, none occurs twice, and each change can be settled.
"""

from pathlib import Path

import pytest

from strandline.app.planning import RunRequest
from tests.harness import TestProject

pytestmark = pytest.mark.spark

YAML = """
    project: shop
    sources:
      order_events: {files: "orders/*.jsonl"}
      clicks_received: {files: "clicks/*.jsonl"}
    datasets:
      orders:
        from: order_events
        columns:
          order_id: id
          shop: shop
          amount: {path: amount, type: "decimal(12,2)"}
          changed_at: {path: at, type: bigint}
        record_set: {key: [order_id], order_by: [changed_at]}
      clicks:
        from: clicks_received
        columns: {page: page}
    jobs:
      - name: totals
        input_datasets: [orders]
        output_dataset: totals
        incremental: {mode: keyed, key: [shop]}
        sql: select shop, sum(amount) as amount from orders group by shop
      - name: doubles
        input_datasets: [totals]
        output_dataset: doubles
        incremental: {mode: keyed, key: [shop]}
        sql: select shop, amount * 2 as amount from totals
      - name: pages
        input_datasets: [clicks]
        output_dataset: pages
        incremental: {mode: keyed, key: [page]}
        sql: select page, count(*) as clicks from clicks group by page
"""
FEE = ("          shop: shop\n", "          shop: shop\n          fee: {path: fee, type: int}\n")
WITH_FEE = ("sum(amount) as amount", "sum(amount) + sum(fee) as amount")
WIDER = ("decimal(12,2)", "decimal(14,2)")


def edited(*edits: tuple[str, str]) -> str:
    text = YAML
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return text


def order(name: str, shop: str, amount: int, at: int = 1) -> dict[str, object]:
    return {"id": name, "shop": shop, "amount": amount, "fee": 5, "at": at}


def test_no_row_of_no_configuration_is_published_and_each_change_has_a_way_out(tmp_path: Path) -> None:
    project = TestProject.create(tmp_path, YAML)
    project.lines("orders/1.jsonl", order("1", "a", 100), order("2", "a", 200), order("3", "b", 50))
    project.lines("clicks/1.jsonl", {"page": "home"}, {"page": "home"}, {"page": "help"})
    project.run()

    # A column is added and used. One new row has it; the older rows do not have it yet.
    project.declare(edited(FEE, WITH_FEE))
    project.lines("orders/2.jsonl", order("4", "a", 1000))
    outcome = project.run()

    assert [h.node for h in outcome.plan.held] == ["totals", "doubles"]
    assert project.rows("orders", "order_id", "fee") == {("1", None), ("2", None), ("3", None), ("4", 5)}
    assert project.query("select shop, cast(amount as int) from totals order by shop") == [
        ("a", 300),
        ("b", 50),
    ]

    # The call that the plan names settles it. The SQL has changed too, and the sum has another type.
    assert "`strandline backfill orders --stale`" in outcome.plan.held[0].reason
    _, _, *names, option = outcome.held.command.split()
    assert option == "--stale"
    project.run(RunRequest(backfill=" ".join(names), only_stale=True))

    assert project.query("select shop, cast(amount as int) from totals order by shop") == [
        ("a", 1315),
        ("b", 55),
    ]
    assert project.query("select shop, cast(amount as int) from doubles order by shop") == [
        ("a", 2630),
        ("b", 110),
    ]
    project.assert_verified()
    assert not project.plan().held

    # The source has another name but the same files, so its facts are not appended a second time.
    renamed = (("clicks_received", "clicks_seen"),)
    project.declare(edited(FEE, WITH_FEE, *renamed))
    outcome = project.run()

    assert project.query("select count(*) from clicks_facts") == [(3,)]
    assert [h.node for h in outcome.plan.frozen] == ["clicks_facts"]
    project.run(RunRequest(backfill="clicks"))
    assert project.rows("pages") == {("home", 2), ("help", 1)}
    project.assert_verified("clicks", "pages")
    assert not project.plan().frozen

    # A wider type freezes the dataset. One backfill writes everything downstream again, in the resulting
    # types.
    project.declare(edited(FEE, WITH_FEE, *renamed, WIDER))
    project.lines("orders/3.jsonl", order("5", "b", 7))
    outcome = project.run()

    assert {h.node for h in outcome.plan.frozen} == {"orders_facts", "orders"}
    assert [h.node for h in outcome.plan.held] == ["totals", "doubles"]
    project.run(RunRequest(backfill="orders"))
    assert project.query("select shop, cast(amount as int) from doubles order by shop") == [
        ("a", 2630),
        ("b", 134),
    ]
    project.assert_verified("orders", "totals", "doubles")
    assert project.run().results == ()

    # A job that changes the type of its column fails. The remedy settles it, also for the job's readers.
    as_text = ("sum(fee) as amount", "sum(fee) as amount, count(*) as orders")
    as_number = ("sum(fee) as amount", "sum(fee) as amount, cast(count(*) as int) as orders")
    project.declare(edited(FEE, WITH_FEE, *renamed, WIDER, as_text))
    project.run(RunRequest(backfill="totals", only_stale=True))
    project.declare(edited(FEE, WITH_FEE, *renamed, WIDER, as_number))
    project.lines("orders/4.jsonl", order("6", "b", 1))
    outcome = project.run(ok=False)

    assert [(r.node, r.slug) for r in outcome.results if r.error] == [("totals", "types-changed")]
    assert "`strandline backfill totals --all`" in outcome.results[-1].error
    project.run(RunRequest(backfill="totals"))
    assert project.rows("totals", "shop", "orders") == {("a", 3), ("b", 3)}
    project.assert_verified("orders", "totals", "doubles")

    # A column that the job no longer returns leaves the table with the next backfill.
    project.declare(edited(FEE, WITH_FEE, *renamed, WIDER))
    project.run(RunRequest(backfill="totals"))
    assert {len(row) for row in project.query("select * from totals")} == {2}
    project.assert_verified()
    assert project.run().results == ()
