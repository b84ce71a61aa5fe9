"""Arrival order, batch splits and repetitions do not change the result (L2, L3, L10), for random histories.

A run takes seconds, so one example plays many small histories at once in the same few runs. The first key
column `w` separates them.
"""

import os
import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.compute.keys import typed_key
from strandline.compute.snapshot.worker import fold
from strandline.model.columns import DELETED, KEY, POSITION
from strandline.model.errors import Place
from strandline.model.project import FactDataset, Guard, RecordSet, Settings
from strandline.spark.session import get_session
from tests.harness import PATHS, TestProject
from tests.spark.counts import assert_conserved

pytestmark = pytest.mark.spark

BATCHES = 4
YAML = """
    project: histories
    sources:
      events: {files: "data/*.jsonl"}
      together: {files: "together/*.jsonl"}
    datasets:
      item:
        from: events
        columns: &columns
          {w: {path: w, type: int}, id: id, g: g, x: {path: x, type: int}, ts: {path: ts, type: int}, op: op}
        record_set: &ranked {key: [w, id], order_by: [ts], deleted: "op = 'D'"}
        guard: {max_deleted: 100%}
      once:
        from: together
        columns: *columns
        record_set: *ranked
    jobs:
      - name: groups
        input_datasets: [item]
        output_dataset: groups
        incremental: {mode: keyed, key: [w, g]}
        sql: select w, g, count(*) as n, sum(x) as total from item group by w, g
"""


class Fact(NamedTuple):
    id: str | None
    g: str | None
    x: int
    ts: int | None
    op: str
    batch: int
    again: int | None
    """A batch that contains one fact once more."""


facts = st.builds(
    Fact,
    id=st.sampled_from(["a", "b", "c", "d", "e", None]),
    g=st.sampled_from(["p", "q", None]),
    x=st.integers(0, 2),
    ts=st.one_of(st.none(), st.integers(0, 3)),
    op=st.sampled_from(["U", "U", "D"]),
    batch=st.integers(0, BATCHES - 1),
    again=st.one_of(st.none(), st.none(), st.integers(0, BATCHES - 1)),
)
worlds = st.lists(st.lists(facts, min_size=1, max_size=10), min_size=25, max_size=40)


def message(w: int, fact: Fact) -> dict[str, object]:
    return {"w": w, "id": fact.id, "g": fact.g, "x": fact.x, "ts": fact.ts, "op": fact.op}


def possible(histories: list[list[Fact]]) -> dict[tuple[int, str], set[Fact]]:
    """The plain oracle: by key, the facts of the highest rank. If there is one, it is the winner."""
    best: dict[tuple[int, str], set[Fact]] = {}
    of_key: dict[tuple[int, str], list[Fact]] = defaultdict(list)
    for w, history in enumerate(histories):
        for fact in history:
            if fact.id is not None:
                of_key[w, fact.id].append(fact)
    for key, facts in of_key.items():
        top = max(-1 if f.ts is None else f.ts for f in facts)
        best[key] = {f for f in facts if (-1 if f.ts is None else f.ts) == top}
    return best


def assert_possible(snapshot: Iterable[tuple[object, ...]], histories: list[list[Fact]]) -> None:
    live = {(row[0], row[1]): row[2:] for row in snapshot}
    best = possible(histories)
    assert set(live) <= set(best)
    for key, winners in best.items():
        allowed = {None if f.op == "D" else (f.g, f.x, f.ts, f.op) for f in winners}
        assert live.get(key) in allowed, f"{key}: {live.get(key)} is none of {allowed}"


@settings(
    max_examples=3,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(histories=worlds, seed=st.integers(0, 1 << 30))
def test_any_split_order_and_repetition_gives_the_same_as_one_batch(
    tmp_path_factory: pytest.TempPathFactory, histories: list[list[Fact]], seed: int
) -> None:
    project = TestProject.create(tmp_path_factory.mktemp("histories"), YAML)
    chance = random.Random(seed)
    batches: list[list[dict[str, object]]] = [[] for _ in range(BATCHES)]
    for w, history in enumerate(histories):
        for fact in history:
            batches[fact.batch].append(message(w, fact))
            if fact.again is not None:
                batches[fact.again].append(message(w, fact))

    for number, batch in enumerate(batches):
        chance.shuffle(batch)
        project.lines(f"data/{chance.randrange(1000):03}-{number}.jsonl", *batch)
        if number == BATCHES - 1:
            everything = [m for b in batches for m in b]
            chance.shuffle(everything)
            project.lines("together/all.jsonl", *everything)
        with pytest.MonkeyPatch.context() as patch:
            # Each path that depends on sizes is used in turn, so each reads what another one wrote.
            patch.setenv("STRANDLINE_THRESHOLDS", chance.choice(list(PATHS.values())))
            project.run()

    snapshot = project.rows("item", "w", "id", "g", "x", "ts", "op")
    assert_possible(snapshot, histories)
    assert snapshot == project.rows("once", "w", "id", "g", "x", "ts", "op"), "also a tie has the same winner"
    groups: dict[tuple[object, object], list[int]] = defaultdict(list)
    for w, _, g, x, _, _ in snapshot:
        groups[w, g].append(int(str(x)))
    assert project.rows("groups", "w", "g", "n", "total") == {
        (*key, len(xs), sum(xs)) for key, xs in groups.items()
    }
    offered = sum(len(b) for b in batches)
    counts = assert_conserved(project, "item", "once")
    assert counts["item"] == counts["once"]
    assert counts["item"]["offered"] == offered
    assert counts["item"]["quarantined"] == sum(m["id"] is None for b in batches for m in b)
    assert project.run().results == ()
    project.assert_verified()


def register() -> FactDataset:
    place = Place(file="strandline.yaml", line=1)
    record_set = RecordSet(key=("__shuffle", "id"), order_by=("ts",))
    return FactDataset(
        name="item",
        place=place,
        source="events",
        columns=(),
        takes_other_columns=False,
        record_set=record_set,
        guard=Guard(),
    )


def test_the_winner_of_a_key_is_the_same_for_every_order_of_its_facts() -> None:
    """Many shuffles as groups of one DataFrame, each folded batch after batch.

    A current row stands for all facts before it.
    """
    chance = random.Random(7)
    pool = [(id, g, x, ts) for id in "abc" for g in ("p", None) for x in (1, 2) for ts in (None, 1, 1, 2)]
    rows = []
    for shuffle in range(60):
        order = [f for f in pool for _ in range(chance.choice((1, 1, 2)))]
        chance.shuffle(order)
        rows += [(shuffle, *f, False, (f"f{n % 3}", 0, n), chance.randrange(3)) for n, f in enumerate(order)]
    session = get_session(
        Settings(lake="", catalog="", spark_master=os.environ["STRANDLINE_SPARK_MASTER"], spark_conf={})
    )
    schema = (
        f"__shuffle int, id string, g string, x int, ts int, {DELETED} boolean, "
        f"{POSITION} struct<name:string,part:bigint,place:bigint>, __batch int"
    )
    everything = session.createDataFrame(rows, schema).withColumn(KEY, typed_key(("__shuffle", "id")))

    folded: DataFrame | None = None
    for number in range(3):
        batch = everything.where(F.col("__batch") == number).drop("__batch")
        folded = fold(batch if folded is None else folded.unionByName(batch), register())
    at_once = fold(everything.drop("__batch"), register())
    assert folded is not None
    winners = Counter(tuple(r) for r in folded.select("id", "g", "x", "ts").collect())
    whole = Counter(tuple(r) for r in at_once.select("id", "g", "x", "ts").collect())

    assert winners == whole
    assert set(winners.values()) == {60}, f"the winner depends on the order: {winners}"
    assert {(id, ts) for id, _, _, ts in winners} == {("a", 2), ("b", 2), ("c", 2)}
