"""Jobs in runs: which keys a change touches, what is written, and equality with a full recompute.

Laws L2, L4 and L5.
"""

from collections.abc import Callable, Sequence

import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import Column
from pyspark.sql import functions as F

from strandline.app.planning import RunRequest
from strandline.app.run import RunOutcome
from tests.harness import TestProject, at, result_of
from tests.spark.counts import assert_conserved

pytestmark = pytest.mark.spark

Make = Callable[[str], TestProject]

CHAINED = """
    project: balances
    sources:
      events: {files: "data/*.jsonl"}
      rates: {files: "rates/*.jsonl"}
    datasets:
      property:
        from: events
        where: "property is not null"
        columns: {id: property, owner: owner, area: {path: area, type: int}, v: {path: v, type: int}, op: op}
        record_set: {key: [id], order_by: [v], deleted: "op = 'D'"}
      demand:
        from: events
        where: "demand is not null and detail is null"
        columns: {id: demand, consumer: consumer, v: {path: v, type: int}}
        record_set: {key: [id], order_by: [v]}
      detail:
        from: events
        where: "detail is not null"
        columns: {id: detail, demand: demand, amount: {path: amount, type: int}, v: {path: v, type: int}}
        record_set: {key: [id], order_by: [v]}
      rate:
        from: rates
        columns: {name: rate, factor: {path: factor, type: int}, v: {path: v, type: int}}
        record_set: {key: [name], order_by: [v]}
    jobs:
      - name: owners
        input_datasets: [property]
        output_dataset: owners
        incremental: {mode: keyed, key: [owner]}
        sql: select owner, count(*) as n, sum(area) as area from property group by owner
      - name: balance
        input_datasets: [property, demand, detail, rate]
        output_dataset: balance
        incremental:
          mode: keyed
          key: [owner]
          inputs:
            property: {by: [owner]}
            demand: {via: property, on: {consumer: id}}
            detail: {via: demand, on: {demand: id}}
            rate: whole
        sql: |
          select p.owner, sum(d.amount * r.factor) as total
          from property p join demand m on m.consumer = p.id
          join detail d on d.demand = m.id join rate r on r.name = 'tax'
          group by p.owner
"""


def prop(id: str, owner: str | None, area: int, v: int = 1, **more: object) -> dict[str, object]:
    return {"property": id, "owner": owner, "area": area, "v": v, **more}


def demand(id: str, consumer: str, v: int = 1) -> dict[str, object]:
    return {"demand": id, "consumer": consumer, "v": v}


def detail(id: str, of: str, amount: int, v: int = 1) -> dict[str, object]:
    return {"detail": id, "demand": of, "amount": amount, "v": v}


def tiny_hash(columns: Sequence[Column]) -> Column:
    """Every third key collides."""
    return F.pmod(F.xxhash64(*(part for column in columns for part in (column, column.isNull()))), F.lit(3))


def version_of(project: TestProject, dataset: str) -> int:
    return DeltaTable(str(project.folder / ".strandline/lake" / dataset)).version()


def stored(project: TestProject, dataset: str, condition: str) -> int:
    """Rows of the table itself, deleted ones included."""
    table = DeltaTable(str(project.folder / ".strandline/lake" / dataset))
    counted = (
        QueryBuilder()
        .register("t", table)
        .execute(f"select count(*) as n from t where {condition}")
        .read_all()
    )
    return int(counted["n"][0].as_py())


def move_a_key(project: TestProject) -> RunOutcome:
    """The first run, and one in which a row moves from one key to another, whose last row it was."""
    project.lines(
        "data/1.jsonl",
        *(
            prop("p1", "A", 1),
            prop("p2", "A", 2),
            prop("p3", "B", 3),
            prop("p4", None, 4),
            prop("p5", "C", 5),
        ),
        *(demand("m1", "p1"), demand("m2", "p3"), demand("m5", "p5")),
        *(detail("d1", "m1", 10), detail("d2", "m2", 20), detail("d3", "unknown", 5), detail("d5", "m5", 7)),
    )
    project.lines("rates/1.jsonl", {"rate": "tax", "factor": 1, "v": 1})
    project.run()

    assert project.rows("owners") == {("A", 2, 3), ("B", 1, 3), (None, 1, 4), ("C", 1, 5)}
    assert project.rows("balance") == {("A", 10), ("B", 20), ("C", 7)}

    project.lines("data/2.jsonl", prop("p3", "A", 3, v=2))
    moved = project.run()

    # Both keys were recomputed, and the one that is now empty has vanished.
    assert project.rows("owners") == {("A", 3, 6), (None, 1, 4), ("C", 1, 5)}
    assert project.rows("balance") == {("A", 30), ("C", 7)}
    assert (result_of(moved, "owners").strategy, result_of(moved, "balance").strategy) == (
        "recompute",
        "recompute",
    )
    assert stored(project, "owners", "_deleted") == stored(project, "balance", "_deleted") == 0, (
        "vanished keys are purged"
    )
    assert project.run().results == (), "and a purge makes nobody behind"
    return moved


def test_a_move_between_keys_writes_no_other_key(make_project: Make) -> None:
    project = make_project(CHAINED)

    moved = move_a_key(project)

    assert result_of(moved, "owners").rows_written == 1, "C and NULL were not written again"
    project.assert_verified("owners", "balance")


def test_keys_on_both_sides_of_a_move_are_repaired_through_any_chain(
    make_project: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every third key has the hash of another one, which is the harder case."""
    monkeypatch.setattr("strandline.compute.keys.key_hash", tiny_hash)
    project = make_project(CHAINED)
    move_a_key(project)

    # A detail's parent moves, the parent of an orphan arrives, then a detail and its new parent move
    # together.
    project.lines("data/3.jsonl", demand("m1", "p4", v=2), demand("unknown", "p1"))
    project.run()
    assert project.rows("balance") == {("A", 25), (None, 10), ("C", 7)}
    project.assert_verified("owners", "balance")
    project.lines(
        "data/4.jsonl", detail("d2", "m1", 20, v=2), demand("m1", "p2", v=3), prop("p5", "C", 5, v=9, op="D")
    )
    project.run()
    assert project.rows("balance") == {("A", 35)}
    assert project.rows("owners") == {("A", 3, 6), (None, 1, 4)}

    # A change that does not change a result writes nothing.
    before = version_of(project, "owners"), version_of(project, "balance")
    project.lines("data/5.jsonl", prop("p1", "A", 1, v=7), prop("p1", "A", 1, v=0))
    same = project.run()
    assert {str(result_of(same, name).status) for name in ("owners", "balance")} == {"unchanged"}
    assert (version_of(project, "owners"), version_of(project, "balance")) == before

    # An input that is read whole widens the task to everything, and the plan says why.
    project.lines("rates/2.jsonl", {"rate": "tax", "factor": 2, "v": 2})
    widened = project.run()
    assert result_of(widened, "balance").strategy == "full"
    assert "`rate` is read whole" in result_of(widened, "balance").reason
    assert project.rows("balance") == {("A", 70)}
    assert_conserved(project, "property", "demand", "detail", "rate")
    project.assert_verified()


MANY = """
    project: kinds
    sources:
      events: {files: "data/*.jsonl"}
      labels: {files: "labels/*.jsonl"}
    datasets:
      item:
        from: events
        columns:
          {id: id, g: g, code: code, price: {path: price, type: double}, at: {path: at, type: timestamp_ms}}
        record_set: {key: [id], order_by: [at]}
      label:
        from: labels
        columns: {g: g, name: name, v: {path: v, type: int}}
        record_set: {key: [g], order_by: [v]}
      codes: {key: [code]}
    jobs:
      - name: labelled
        input_datasets: [item]
        lookup_datasets: [label]
        output_dataset: labelled
        incremental: {mode: keyed, key: [g]}
        sql: >-
          select i.g, max(l.name) as name, count(*) as n from item i left join label l on l.g = i.g
          group by i.g
      - name: totals
        input_datasets: [item]
        output_dataset: totals
        incremental: {mode: full}
        sql: select count(*) as n, sum(price) as total from item
      - name: sums
        input_datasets: [item]
        output_dataset: sums
        incremental: {mode: keyed, key: [g], inputs: {item: {by: [g]}}}
        config: {times: 3}
        python: jobs/sums.py:sums
      - name: ages
        input_datasets: [item]
        output_dataset: ages
        incremental: {mode: keyed, key: [id]}
        sql: select id, datediff(:as_of, at) as days from item
      - name: times
        input_datasets: [item]
        output_dataset: times
        incremental: {mode: keyed, key: [id]}
        sql: with kept as (select *, _source_ts as ts from item) select * from kept
      - name: codes
        input_datasets: [item]
        output_dataset: codes
        incremental: {mode: keyed, key: [g]}
        sql: select g, code from item
"""
SUMS = """
from pyspark.sql import functions as F

def sums(inputs, context):
    return inputs["item"].groupBy("g").agg((F.sum("price") * context.config["times"]).alias("total"))
"""


def item(id: str, g: str, price: float, at: int, code: str | None = None) -> dict[str, object]:
    return {"id": id, "g": g, "price": price, "at": at, "code": code or id}


def test_every_kind_of_job_keeps_its_own_rule_about_what_makes_it_run(make_project: Make) -> None:
    project = make_project(MANY)
    project.write("jobs/sums.py", SUMS)
    project.declare(MANY)
    day = 86_400_000
    project.lines(
        "data/1.jsonl", item("a", "x", 0.1, day), item("b", "x", 0.2, day), item("c", "y", 1.0, 2 * day)
    )
    project.lines("labels/1.jsonl", {"g": "x", "name": "X", "v": 1}, {"g": "y", "name": "Y", "v": 1})

    project.run(at("1970-01-11T00:00:00+00:00"))

    assert project.rows("labelled") == {("x", "X", 2), ("y", "Y", 1)}
    assert {(g, round(float(str(t)), 9)) for g, t in project.rows("sums")} == {("x", 0.9), ("y", 3.0)}
    assert project.rows("ages") == {("a", 9), ("b", 9), ("c", 8)}
    assert project.rows("times", "id", "ts") == {("a", day), ("b", day), ("c", 2 * day)}
    (columns,) = {len(row) for row in project.rows("times")}
    assert columns == 6, "`*` holds no metadata column"
    assert project.run(at("1970-01-11T00:00:00+00:00")).results == ()

    # The clock moves: only the job that asks for it runs.
    clock = project.run(at("1970-01-12T00:00:00+00:00"))
    assert [(r.node, str(r.cause), str(r.strategy)) for r in clock.results] == [("ages", "clock", "full")]
    assert project.rows("ages") == {("a", 10), ("b", 10), ("c", 9)}

    # A changed lookup touches nothing and makes the written rows stale. New work uses it.
    project.lines("labels/2.jsonl", {"g": "x", "name": "X2", "v": 2}, {"g": "y", "name": "Y2", "v": 2})
    looked = project.run(at("1970-01-12T00:00:00+00:00"))
    assert "labelled" not in {r.node for r in looked.results}
    assert {h.node for h in project.plan(at("1970-01-12T00:00:00+00:00")).stale} == {"labelled"}
    project.lines("data/2.jsonl", item("d", "y", 5.0, 3 * day))
    project.run(at("1970-01-12T00:00:00+00:00"))
    assert project.rows("labelled") == {("x", "X", 2), ("y", "Y2", 2)}
    (verified,) = project.verify("labelled").datasets
    assert (verified.result, verified.stale_rows) == ("stale", 2), (
        "the row of the older labels, and the one that the newer would give"
    )
    project.run(RunRequest(backfill="labelled", only_stale=True, as_of=at("1970-01-12T00:00:00+00:00").as_of))
    assert project.rows("labelled") == {("x", "X2", 2), ("y", "Y2", 2)}

    # Doubles are equal if they agree to 12 digits: a sum that changes in its 15th digit is not written again.
    before = {name: version_of(project, name) for name in ("totals", "sums")}
    project.lines("data/3.jsonl", item("d", "y", 5.00000000000001, 4 * day))
    close = project.run(at("1970-01-12T00:00:00+00:00"))
    assert {str(result_of(close, name).status) for name in before} == {"unchanged"}
    assert {name: version_of(project, name) for name in before} == before
    assert "mode `full`" in result_of(close, "totals").reason
    project.assert_verified()

    # Rows that newer code recomputes with the same result are no longer stale.
    project.declare(MANY.replace("datediff(:as_of, at)", "datediff(:as_of, at) + 0"))
    assert {h.node for h in project.plan(at("1970-01-12T00:00:00+00:00")).stale} == {"ages"}
    project.run(at("1970-01-12T01:00:00+00:00"))
    assert project.plan(at("1970-01-12T01:00:00+00:00")).stale == ()

    # A key declared as unique is checked against the whole output, also where the other row is in another
    # scope.
    project.lines("data/4.jsonl", item("e", "z", 1.0, day, code="a"))
    twice = project.run(at("1970-01-12T01:00:00+00:00"), ok=False)
    assert (str(result_of(twice, "codes").status), result_of(twice, "codes").slug) == (
        "failed",
        "key-not-unique",
    )
    assert project.rows("codes", "code") == {("a",), ("b",), ("c",), ("d",)}, "what was published stays"
    assert {str(r.status) for r in twice.results if r.node != "codes"} <= {"done", "unchanged"}
