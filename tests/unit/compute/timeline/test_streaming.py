"""Keys and facts as Arrow gives them: a key is folded whole, whatever its values are."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

from strandline.compute.timeline.streaming import (
    FACT,
    IS_FACT,
    KEY_HASH,
    KEY_VALUES,
    LAST_ON,
    ON,
    REASON,
    ROLE,
    ROW_ROLE,
    STATE,
    STATUS,
    Folder,
)
from strandline.model.columns import find_type
from strandline.model.errors import Place
from strandline.model.timeline import Field, FoldCode, Timeline

SHOW = """
def show(state, facts):
    return {"seen": " ".join([*([state["seen"]] if state else []), *(repr(f["v"]) for f in facts)])}
"""
TEXT = find_type("string")
assert TEXT is not None
TIMELINE = Timeline(
    name="shown",
    place=Place(file="strandline.yaml", line=1),
    output="shown_history",
    key=("k",),
    facts="facts",
    date="on",
    order_by=("on",),
    fold=FoldCode(file="folds.py", function="show", code=SHOW),
    fields=(Field(name="seen", type=TEXT),),
)
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


def fold(keys: pa.DataType, facts: pa.DataType, records: Sequence[tuple[Any, date, Any]]) -> list[Any]:
    """What is seen after each date: one text per row."""
    stream = pa.schema(
        [
            (KEY_HASH, pa.int64()),
            (KEY_VALUES, pa.struct([("k", keys)])),
            (IS_FACT, pa.bool_()),
            (ON, pa.date32()),
            (STATE, pa.string()),
            (FACT, pa.struct([("v", facts)])),
        ]
    )
    rows = [
        {KEY_HASH: 1, KEY_VALUES: {"k": key}, IS_FACT: True, ON: on, FACT: {"v": value}}
        for key, on, value in records
    ]
    texts = ("seen", STATE, ROLE, STATUS, REASON)
    results = pa.schema(
        [("k", keys), ("date", pa.date32()), (LAST_ON, pa.date32()), *((name, pa.string()) for name in texts)]
    )
    folder = Folder(TIMELINE, "", results.serialize().to_pybytes())
    batches = folder([pa.RecordBatch.from_pylist(rows, schema=stream)])
    found = [row for batch in batches for row in batch.to_pylist()]
    return [row["seen"] for row in found if row[ROLE] == ROW_ROLE]


NAN = float("nan")


@pytest.mark.parametrize(
    ("kind", "one", "same"),
    [
        (pa.float64(), NAN, NAN),
        (pa.float64(), 0.0, -0.0),
        (pa.list_(pa.float64()), [NAN, None], [NAN, None]),
        (pa.struct([("a", pa.list_(pa.float64()))]), {"a": [NAN]}, {"a": [NAN]}),
        (pa.list_(pa.float64()), [0.0], [-0.0]),
    ],
    ids=["NaN", "zero", "NaN in an array", "NaN in a struct", "zero in an array"],
)
def test_values_that_spark_takes_as_one_are_one_key(kind: pa.DataType, one: Any, same: Any) -> None:
    days = [date(2024, 1, 1), date(2024, 1, 2)]

    assert fold(kind, pa.int64(), [(one, days[0], 1), (same, days[1], 2)]) == ["1", "1 2"]


def test_instants_inside_a_fact_are_in_utc_too() -> None:
    instants = pa.timestamp("us", tz="America/St_Johns")

    found = fold(pa.int64(), pa.list_(pa.struct([("at", instants)])), [(1, date(2024, 1, 1), [{"at": NOON}])])

    assert found == [repr([{"at": NOON}])]
