"""When a fact happened: the source's integer is kept as it was, in one unit for the whole dataset."""

import json
from datetime import UTC, datetime
from functools import reduce
from typing import Any

import pytest
from pyspark.sql import DataFrame

from strandline.compute.facts.decode import decode
from strandline.model.columns import SOURCE_AT, SOURCE_TS, find_type
from strandline.model.errors import Place
from strandline.model.project import Calendar, FactColumn, FactDataset, Guard, Settings, SourceTime
from strandline.spark.session import get_session

pytestmark = pytest.mark.spark

HERE = Place(file="strandline.yaml", line=1)
AT = datetime(2024, 1, 13, 5, 24, 16, 789_012, tzinfo=UTC)
NANOSECONDS = 1705123456789012345
LARGEST = 2**63 - 1


def dataset(type_: str, *, by_path: bool, default: object = None) -> FactDataset:
    kind = find_type(type_)
    assert kind is not None
    at = FactColumn(name="at", type=kind, path=("at",), default=default, place=HERE)
    return FactDataset(
        name="facts",
        place=HERE,
        source="events",
        columns=(at,),
        takes_other_columns=False,
        source_at=SourceTime(path=("at",), type=kind) if by_path else SourceTime(column="at"),
        guard=Guard(),
    )


CASES: list[tuple[str, object, object, tuple[datetime | None, int | None]]] = [
    ("timestamp_ms", 1705123456789, None, (AT.replace(microsecond=789_000), 1705123456789)),
    ("timestamp_ms", None, "2024-01-13T05:24:16.789012Z", (AT, 1705123456789)),
    ("timestamp_us", "1705123456789012", None, (AT, 1705123456789012)),
    ("timestamp_ns", NANOSECONDS, None, (AT, NANOSECONDS)),
    ("timestamp_ns", str(NANOSECONDS), None, (AT, NANOSECONDS)),
    ("timestamp_ns", None, "2024-01-13T05:24:16.789012Z", (AT, NANOSECONDS - 345)),
    ("timestamp_ns", -1, None, (datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), -1)),
    (
        "timestamp_ns",
        LARGEST,
        None,
        (datetime(2262, 4, 11, 23, 47, 16, 854_775, tzinfo=UTC), LARGEST),
    ),
    ("timestamp_ns", None, None, (None, None)),
    ("timestamp", "2024-01-13T05:24:16.789012345Z", None, (AT, 1705123456789012)),
    ("bigint", 42, None, (None, 42)),
    ("bigint", str(-LARGEST), None, (None, -LARGEST)),
    ("bigint", None, None, (None, None)),
]


def test_the_integer_of_the_source_is_kept_and_a_bigint_is_a_logical_clock() -> None:
    session = get_session(Settings(lake="", catalog="", spark_master="local[2]", spark_conf={}))
    decoded = []
    for type_, default in dict.fromkeys((case[0], case[2]) for case in CASES):
        received = session.createDataFrame(
            [
                (json.dumps({"at": case[1]}), place, AT)
                for place, case in enumerate(CASES)
                if (case[0], case[2]) == (type_, default)
            ],
            "_payload string, _source_position bigint, _ingested_at timestamp",
        )
        for by_path in (False, True) if type_ in ("timestamp_ns", "bigint") and not default else (False,):
            facts = decode(received, dataset(type_, by_path=by_path, default=default), Calendar())
            decoded.append(facts.select("_source_position", SOURCE_AT, SOURCE_TS))

    by_place: dict[int, set[Any]] = {}
    for place, at, ts in reduce(DataFrame.unionByName, decoded).collect():  # one job for all
        by_place.setdefault(place, set()).add((at.replace(tzinfo=UTC) if at else None, ts))

    assert by_place == {place: {expected} for place, (*_, expected) in enumerate(CASES)}
