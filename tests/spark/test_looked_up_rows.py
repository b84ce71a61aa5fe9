"""Rows of few keys are looked up through delta-rs: those that Spark finds by the same condition."""

from datetime import date, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from strandline.lake.location import Lake
from strandline.lake.near import ANYWHERE, Among, Near
from strandline.lake.reads import read_table
from strandline.lake.small import SmallTables
from strandline.lake.table import get_table
from strandline.lake.writes import Superseding, Ticket, overwrite, replace_superseded
from strandline.model.columns import PARTITIONED_BY, Role
from strandline.model.project import Settings
from strandline.model.thresholds import Thresholds
from strandline.spark.session import get_session

pytestmark = pytest.mark.spark

SCHEMA = (
    "account string, number bigint, date date, amount int,"
    " _key bigint, _deleted boolean, _role string, _head struct<state: string, replaces: bigint>"
)
TEXTS = ("plain", "it's", "back\\slash", 'dou"ble', "%_", "", " ", "Ünïcödé", "\U0001f4b6", "new\nline")
ACCOUNTS = (*TEXTS, None)
NUMBERS = (0, -7, 2**63 - 1, -(2**63) + 1)
FIRST, TENTH = date(2024, 1, 1), date(2024, 1, 11)
"""Rows are ten days apart."""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> tuple[Lake, SparkSession]:
    """A table with rows and heads of every account and number, of which some were replaced."""
    folder = tmp_path_factory.mktemp("looked_up")
    session = get_session(Settings(lake="", catalog="", spark_master="local[2]", spark_conf={}))
    lake = Lake(root=str(folder / "lake"))
    rows: list[tuple[object, ...]] = []
    for account in ACCOUNTS:
        for number in NUMBERS:
            rows.append((account, number, None, None, len(rows), True, "head", ("a state", None)))
            for day in range(0, 40, 10):
                on = FIRST + timedelta(days=day)
                rows.append((account, number, on, day, len(rows), False, "row", None))
    written = session.createDataFrame(rows, SCHEMA)
    overwrite(written, lake, _ticket(1), indexed=("date",), partitioned_by=PARTITIONED_BY)
    replaced = [
        (account, number, on, 1000 + amount, hashed, False, "row", (None, hashed))
        for account, number, on, amount, hashed, _, role, _ in rows
        if role == "row" and amount == 10
    ]
    superseding = Superseding(key=("account", "number"), dates=((TENTH, TENTH),))
    replace_superseded(session.createDataFrame(replaced, SCHEMA), lake, _ticket(2), superseding)
    return lake, session


def _ticket(token: int) -> Ticket:
    return Ticket(dataset="positions", token=token, metadata="{}")


NEAR = (
    *(Near(among=(Among(column="account", values=(text,)),)) for text in TEXTS),
    Near(among=(Among(column="number", values=NUMBERS[1:]),)),
    Near(among=(Among(column="number", values=(5,)),)),
    Near(
        dates=((None, TENTH), (TENTH + timedelta(days=10), TENTH + timedelta(days=11))),
        among=(Among(column="account", values=("it's", "")), Among(column="number", values=(-7,))),
    ),
    Near(dates=(), among=(Among(column="account", values=("plain",)),)),
)


def test_a_look_up_finds_what_spark_finds(lake: tuple[Lake, SparkSession]) -> None:
    """All conditions in one query of Spark, and each in one of delta-rs."""
    place, session = lake
    conditions = (f"coalesce({near.spell()}, false) AS c{n}" for n, near in enumerate(NEAR))
    spark = read_table(session, place, "positions", 1).selectExpr("_key", "amount", "_role", *conditions)
    rows = spark.collect()

    for role in (Role.ROW, Role.HEAD):
        for n, near in enumerate(NEAR):
            found = get_table(place.table("positions"), 1).read_role(role, near)
            wanted = [(row["_key"], row["amount"]) for row in rows if row["_role"] == role and row[f"c{n}"]]
            keys = zip(found.column("_key").to_pylist(), found.column("amount").to_pylist(), strict=True)
            assert sorted(keys, key=str) == sorted(wanted, key=str), near.ask()


def test_replaced_rows_are_found_once_as_they_are_now(
    lake: tuple[Lake, SparkSession], tmp_path: Path
) -> None:
    place, session = lake
    near = Near(among=(Among(column="account", values=("plain",)), Among(column="number", values=(0,))))
    small = SmallTables(place, str(tmp_path), Thresholds(small_table_bytes=0))

    found = small.find_near(session, "positions", 1, Role.ROW, near)

    assert found is not None
    assert sorted(row["amount"] for row in found.collect()) == [0, 20, 30, 1010]


@pytest.mark.parametrize(
    ("near", "sizes"),
    [
        (ANYWHERE, {}),
        (Near(among=(Among(column="account", values=("plain",)),)), {"looked_up_rows": 15}),
        (Near(among=(Among(column="account", values=("plain",)),)), {"looked_up_table_bytes": 1}),
        (Near(among=(Among(column="account", values=("plain",)),)), {"small_table_bytes": 1 << 30}),
    ],
    ids=["not few keys", "too many rows", "too large", "small"],
)
def test_what_is_left_to_others_is_not_looked_up(
    lake: tuple[Lake, SparkSession], tmp_path: Path, near: Near, sizes: dict[str, int]
) -> None:
    place, session = lake
    small = SmallTables(place, str(tmp_path), Thresholds(**{"small_table_bytes": 0, **sizes}))

    assert small.find_near(session, "positions", 1, Role.ROW, near) is None
