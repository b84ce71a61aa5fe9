"""Every type of a source as record key, as order, as key of `history`, and as hash or group of a chain.

The expected rows come from plain Python.
"""

import math
import random
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from strandline.app.history import read_history
from strandline.app.workspace import open_workspace
from strandline.model.json_values import json_value
from tests.harness import PATHS, TestProject
from tests.types.test_every_type import EVERYTHING, TAKEN

pytestmark = pytest.mark.spark

ALL: dict[str, tuple[pa.DataType, list[Any]]] = {
    "boolean": (pa.bool_(), [True, False]),
    "bigint": (pa.int64(), [-(2**63), -1, 0, 2**53 + 1, 2**63 - 1]),
    "digits": (pa.decimal128(38, 0), [Decimal("9" * 38), Decimal("-" + "9" * 38), Decimal(0)]),
    "money": (
        pa.decimal128(38, 18),
        [Decimal("9" * 20 + "." + "9" * 18), Decimal("-0.000000000000000001"), Decimal("1.1")],
    ),
    "double": (pa.float64(), [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.5, 5e-324]),
    "string": (
        pa.string(),
        ["", " ", "a", "A", "it's", "back\\slash", "é", "e\u0301", "😀", "\uffff", "null", "x" * 5000],
    ),
    "binary": (pa.binary(), [b"", b"\0", b"\x01\xff", b"'", b"ab"]),
    "date": (
        pa.date32(),
        [date(1, 1, 1), date(999, 12, 31), date(1582, 10, 4), date(1582, 10, 15), date(9999, 12, 31)],
    ),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        [
            datetime(1, 1, 1, tzinfo=UTC),
            datetime(1582, 10, 4, 23, 59, 59, 999999, tzinfo=UTC),
            datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
            datetime(2024, 1, 1, 0, 0, 0, 123456, tzinfo=UTC),
            datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        ],
    ),
}
TYPES = ALL if EVERYTHING else {name: ALL[name] for name in ("binary", "double", "timestamp", "money")}


def _project() -> str:
    datasets = "".join(
        f"""
  by_{name}: {{from: events, record_set: {{key: [v_{name}], order_by: [seq]}}}}
  at_{name}: {{from: events, record_set: {{key: [k], order_by: [v_{name}]}}}}"""
        for name in TYPES
    )
    return f"""
project: types_of_sources
sources: {{events: {{files: "data/*.parquet"}}}}
datasets:{datasets}
"""


Fact = tuple[str, int, dict[str, Any]]
"""`k`, `seq`, and a value of each type."""


def _write(project: TestProject, name: str, facts: list[Fact]) -> None:
    columns = {"k": pa.array([f[0] for f in facts]), "seq": pa.array([f[1] for f in facts], pa.int64())}
    columns |= {f"v_{t}": pa.array([f[2][t] for f in facts], kind) for t, (kind, _) in TYPES.items()}
    path = project.folder / "data" / name
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), path)


def _identity(value: Any) -> Any:
    """Equal for values that are one key: NaN is one, and so are both zeros."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


def _order(value: Any) -> tuple[Any, ...]:
    """NULL first, NaN last, and one zero."""
    if value is None:
        return (0,)
    return (2,) if _identity(value) == "NaN" else (1, _identity(value))


@pytest.mark.parametrize("path", TAKEN)
def test_every_type_is_a_key_an_order_and_found_in_history(
    make_project: Callable[[str], TestProject], monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setenv("STRANDLINE_THRESHOLDS", PATHS[path])
    project = make_project(_project())
    chance = random.Random(path)
    facts: list[Fact] = []
    for turn in range(2):
        batch = [
            (
                chance.choice("pqrst"),
                len(facts) + n,
                # The very first fact is refused for every type, so that each quarantine has a table.
                {
                    t: chance.choice([*values, None]) if facts or n else None
                    for t, (_, values) in TYPES.items()
                },
            )
            for n in range(40)
        ]
        chance.shuffle(batch)
        _write(project, f"{turn}.parquet", batch)
        facts += batch
        project.run()

        for name in TYPES:
            newest: dict[Any, int] = {}
            for _, seq, values in sorted(facts, key=lambda f: f[1]):
                if values[name] is not None:
                    newest[_identity(values[name])] = seq
            assert {seq for (seq,) in project.query(f"select seq from by_{name}")} == set(newest.values()), (
                f"key {name}"
            )
            assert project.query(f"select count(*) from by_{name}_quarantine") == [
                (sum(f[2][name] is None for f in facts),)
            ]
            highest = {k: max(_order(f[2][name]) for f in facts if f[0] == k) for k in {f[0] for f in facts}}
            published = {str(k): _order(v) for k, v in project.query(f"select k, v_{name} from at_{name}")}
            assert published == highest, f"order {name}"

    project.assert_verified()
    with open_workspace(project.folder) as workspace:
        for name, (_, samples) in TYPES.items():
            for value in samples:
                known = sorted(
                    f[1]
                    for f in facts
                    if f[2][name] is not None and _identity(f[2][name]) == _identity(value)
                )
                history = read_history(workspace, f"by_{name}", [str(json_value(value))])
                assert sorted(f.row["seq"] for f in history.facts) == known, f"history {name} {value!r}"
                assert sum(f.won for f in history.facts) == (1 if known else 0)


HASHES: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "string": (pa.string(), lambda n: f"it's {n}"),
    "binary": (pa.binary(), lambda n: bytes([n, 255])),
    "bigint": (pa.int64(), lambda n: -(2**62) - n),
    "digits": (pa.decimal128(38, 0), lambda n: Decimal("9" * 36 + f"{n:02}")),
}
GROUPS: dict[str, tuple[pa.DataType, Any, Any]] = {
    "string": (pa.string(), "it's", ""),
    "binary": (pa.binary(), b"\x01\xff", b"'"),
    "boolean": (pa.bool_(), True, False),
    "bigint": (pa.int64(), -(2**63), 2**63 - 1),
    "digits": (pa.decimal128(38, 0), Decimal("9" * 38), Decimal(0)),
    "date": (pa.date32(), date(1, 1, 1), date(9999, 12, 31)),
    "nothing": (pa.string(), None, "x"),
}
BRANCHES = ([(1, 1, 0), (2, 2, 1), (3, 3, 2), (9, 9, 8)], [(3, 13, 2), (4, 14, 13)])
"""Two batches of (number, hash, parent).

The first has three blocks and one that waits, the second a longer branch from the second block.
"""


def _chains() -> tuple[
    str, dict[str, tuple[pa.DataType, Callable[[int], Any], pa.DataType | None, tuple[Any, ...]]]
]:
    hashes = HASHES if EVERYTHING else {"binary": HASHES["binary"]}
    groups = GROUPS if EVERYTHING else {name: GROUPS[name] for name in ("digits", "nothing")}
    cases: dict[str, tuple[pa.DataType, Callable[[int], Any], pa.DataType | None, tuple[Any, ...]]] = {
        f"hash_{name}": (kind, make, None, (None,)) for name, (kind, make) in hashes.items()
    }
    cases |= {
        f"group_{name}": (*HASHES["string"], kind, (one, other))
        for name, (kind, one, other) in groups.items()
    }
    text = "project: chains_of_types\nsources:"
    text += "".join(f'\n  s_{name}: {{files: "{name}/*.parquet"}}' for name in cases) + "\ndatasets:"
    text += "".join(f"\n  d_{name}: {{from: s_{name}}}" for name in cases) + "\nchains:"
    for name, case in cases.items():
        grouped = ", group_by: [g]" if case[2] is not None else ""
        text += f"\n  c_{name}: {{from: d_{name}, number: n, hash: h, parent: p, head: longest{grouped}}}"
    return text + "\n", cases


@pytest.mark.parametrize("path", TAKEN)
def test_chains_follow_hashes_and_groups_of_every_type(
    make_project: Callable[[str], TestProject], monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setenv("STRANDLINE_THRESHOLDS", PATHS[path])
    text, cases = _chains()
    project = make_project(text)
    for turn, expected in ((0, {(1, 1), (2, 2), (3, 3)}), (1, {(1, 1), (2, 2), (3, 13), (4, 14)})):
        for name, (kind, make, group_kind, groups) in cases.items():
            blocks = [(n, h, p, g) for g in groups for n, h, p in BRANCHES[turn]]
            columns = {
                "n": pa.array([b[0] for b in blocks], pa.int64()),
                "h": pa.array([make(b[1]) for b in blocks], kind),
                "p": pa.array([make(b[2]) for b in blocks], kind),
                **({"g": pa.array([b[3] for b in blocks], group_kind)} if group_kind is not None else {}),
            }
            (project.folder / name).mkdir(exist_ok=True)
            pq.write_table(pa.table(columns), project.folder / name / f"{turn}.parquet")
        project.run()

        for name, (_, make, group_kind, groups) in cases.items():
            rows = project.query(f"select n, h{', g' if group_kind is not None else ''} from c_{name}")
            wanted = {
                (n, make(h), *((g,) if group_kind is not None else ())) for g in groups for n, h in expected
            }
            assert len(rows) == len(wanted), name
            assert set(rows) == wanted, name
    project.assert_verified()
