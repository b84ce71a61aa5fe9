"""Every type in every role of a job: the published rows equal those of plain Python, or `check` refuses.

One dataset has a column of every type. For each type there are jobs that use it as key, cursor, partition,
unique key, through another input, and as a compared value. Rows then change their values, vanish and appear,
on every path that depends on sizes.
"""

import os
import random
from collections import defaultdict
from collections.abc import Callable, Iterable

import pytest

from tests.harness import PATHS, TestProject
from tests.types.catalogue import KINDS as CATALOGUE
from tests.types.catalogue import Kind
from tests.types.changing_rows import Rows, change_rows, declare_typed

pytestmark = pytest.mark.spark

EVERYTHING = os.environ.get("STRANDLINE_TYPES") == "all"
TAKEN = PATHS if EVERYTHING else {"looked_up": PATHS["looked_up"]}
"""`make test` uses the path on which a slightly wrong literal matches nothing.

`make test-types` uses all paths.
"""
KINDS = (
    CATALOGUE
    if EVERYTHING
    else tuple(k for k in CATALOGUE if k.name in ("binary", "digits", "double", "timestamp", "pair", "maps"))
)
"""Likewise `make test` uses the types with the most ways to go wrong, `make test-types` all."""
ROUNDS = 3 if EVERYTHING else 2
PARTITIONED = ("tinyint", "smallint", "int", "bigint", "date", "timestamp", "zoneless")
REFUSED: dict[tuple[str, str], str] = {
    **{
        ("partition", k.name): "partition-type"
        for k in KINDS
        if k.name not in ("tinyint", "smallint", "int", "bigint", "date", "timestamp", "zoneless")
    },
    **{(role, kind): "key-type" for role in ("keyed", "cursor", "append") for kind in ("map", "maps")},
    **{("through", kind): "blocked: it waits for a job that was refused" for kind in ("map", "maps")},
}
"""Roles and types that are refused, with the slug."""


def _values(kind: Kind) -> str:
    return (
        f"element_at(array({', '.join(sql for sql, _ in kind.values)}), "
        f"cast(pmod(pick + {len(kind.name)}, {len(kind.values)}) + 1 as int))"
    )


def _job(name: str, inputs: str, incremental: str, sql: str, more: str = "") -> str:
    return f"""
  - name: {name}
    input_datasets: [{inputs}]
    output_dataset: {name}
    incremental: {incremental}
    {more}
    sql: >-
      {sql}"""


def _jobs(kind: Kind) -> Iterable[tuple[str, str]]:
    v = f"v_{kind.name}"
    grouped = f"select {v}, sort_array(collect_list(id)) as ids, sum(seq) as total from typed group by {v}"
    yield "keyed", _job(f"keyed_{kind.name}", "typed", f"{{mode: keyed, key: [{v}]}}", grouped)
    yield "cursor", _job(f"cursor_{kind.name}", "typed", f"{{mode: cursor, cursor_column: {v}}}", grouped)
    yield (
        "value",
        _job(f"value_{kind.name}", "typed", "{mode: keyed, key: [id]}", f"select id, {v} as v from typed"),
    )
    size = "unit: day" if kind.name in ("date", "timestamp", "zoneless") else "size: 100"
    yield (
        "partition",
        _job(
            f"partition_{kind.name}",
            "typed",
            "{mode: partition}",
            f"select {v}, id, seq from typed",
            f"partition: {{column: {v}, {size}}}",
        ),
    )
    yield (
        "append",
        _job(
            f"append_{kind.name}",
            "typed",
            f"{{mode: cursor, cursor_column: seq, unique_key: [{v}]}}",
            f"select seq, {v} from typed",
            "update_strategy: append",
        ),
    )
    yield (
        "through",
        _job(
            f"through_{kind.name}",
            f"typed, keyed_{kind.name}",
            f"{{mode: keyed, key: [g], inputs: {{typed: {{by: [g]}}, keyed_{kind.name}: "
            f"{{via: typed, on: [{v}]}}}}}}",
            f"select t.g, sum(k.total) as total from typed t join keyed_{kind.name} k on t.{v} <=> k.{v} "
            "group by t.g",
        ),
    )


def _project() -> str:
    columns = (f"{_values(kind)} as v_{kind.name}" for kind in KINDS)
    return declare_typed(columns) + "".join(text for kind in KINDS for _, text in _jobs(kind))


def _identity(kind: Kind, pick: int) -> str:
    return kind.values[(pick + len(kind.name)) % len(kind.values)][1]


def _expected_groups(kind: Kind, rows: Rows) -> set[tuple[tuple[str, ...], int]]:
    ids: dict[str, list[str]] = defaultdict(list)
    total: dict[str, int] = defaultdict(int)
    for id_, (_, pick, seq) in rows.items():
        ids[_identity(kind, pick)].append(id_)
        total[_identity(kind, pick)] += seq
    return {(tuple(sorted(ids[value])), total[value]) for value in ids}


def _expected_through(kind: Kind, rows: Rows) -> set[tuple[str, int]]:
    total: dict[str, int] = defaultdict(int)
    for _, pick, seq in rows.values():
        total[_identity(kind, pick)] += seq
    total_by_group: dict[str, int] = defaultdict(int)
    for g, pick, _ in rows.values():
        total_by_group[g] += total[_identity(kind, pick)]
    return set(total_by_group.items())


def _check(project: TestProject, kind: Kind, rows: Rows, ever: set[str]) -> None:
    refused = {role for role, _ in _jobs(kind) if (role, kind.name) in REFUSED}
    for role in ("keyed", "cursor"):
        if role not in refused:
            published = {
                (tuple(ids), total)
                for ids, total in project.query(f"select ids, total from {role}_{kind.name}")
            }
            assert published == _expected_groups(kind, rows), f"{role} {kind.name}"
    if "partition" not in refused:
        partitioned = {(id_, seq) for id_, seq in project.query(f"select id, seq from partition_{kind.name}")}
        assert partitioned == {(id_, seq) for id_, (_, _, seq) in rows.items()}, f"partition {kind.name}"
    if "append" not in refused:
        ((count,),) = project.query(f"select count(*) from append_{kind.name}")
        assert count == len(ever), f"append {kind.name}"
    if "through" not in refused:
        assert set(project.query(f"select g, total from through_{kind.name}")) == _expected_through(
            kind, rows
        ), f"through {kind.name}"
    by_identity: dict[str, set[str]] = defaultdict(set)
    for id_, v in project.query(f"select id, v from value_{kind.name}"):
        by_identity[_identity(kind, rows[str(id_)][1])].add(repr(v))
    texts = [frozenset(values) for values in by_identity.values()]
    assert sum(map(len, by_identity.values())) >= len(by_identity)
    if kind.name not in (
        "double",
        "float",
        "map",
        "maps",
        "pair",
    ):  # -0.0, NaN and the order of a map print in more than one way
        assert all(len(t) == 1 for t in texts), (
            f"value {kind.name}: one value is published as several: {by_identity}"
        )
        assert len(set(texts)) == len(texts), (
            f"value {kind.name}: two values are published as one: {by_identity}"
        )
    assert len(project.query(f"select id from value_{kind.name}")) == len(rows)


@pytest.mark.parametrize("path", TAKEN)
def test_every_type_in_every_role_of_a_job_is_right_or_refused(
    make_project: Callable[[str], TestProject], monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    project = make_project(_project())
    chance = random.Random(f"types {path}")
    rows: Rows = {}
    ever: dict[str, set[str]] = {kind.name: set() for kind in KINDS}
    for turn in range(ROUNDS):
        project.lines(f"data/{turn}.jsonl", *change_rows(rows, chance, turn))
        monkeypatch.setenv("STRANDLINE_THRESHOLDS", PATHS[path])
        outcome = project.run(ok=False)
        for kind in KINDS:
            ever[kind.name] |= {_identity(kind, pick) for _, pick, _ in rows.values()}

        bad = {
            r.node: r.error for r in outcome.results if str(r.status) not in ("done", "unchanged", "blocked")
        }
        expected = {f"{role}_{name}": slug for (role, name), slug in REFUSED.items()}
        unexpected = {node: error for node, error in bad.items() if f"[{expected.get(node)}]" not in error}
        assert not unexpected, unexpected
        for kind in KINDS:
            _check(project, kind, rows, ever[kind.name])

    monkeypatch.delenv("STRANDLINE_THRESHOLDS")
    built = [
        n
        for kind in KINDS
        for role, _ in _jobs(kind)
        if (role, kind.name) not in REFUSED
        for n in [f"{role}_{kind.name}"]
    ]
    project.assert_verified(*built)
