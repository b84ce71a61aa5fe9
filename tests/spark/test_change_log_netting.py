"""Few rows that were handed on are netted in plain Python. That gives what Spark gives of the same rows."""

import random
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from strandline.lake.staging import stage
from strandline.lake.work import GONE, NEW, OLD, SIDE
from strandline.model.columns import TimeUnit
from strandline.model.project import Settings
from strandline.publish.change_log.handed_on import net_few
from strandline.publish.change_log.netting import Netting, Sides, net_changes
from strandline.publish.change_log.rows import LogFile
from strandline.spark.session import get_session

pytestmark = pytest.mark.spark

SHAPE = (
    "parent string, child decimal(6,2), on_day date, seen timestamp, ratio double, part float, flag boolean,"
    " more struct<a: double, b: array<int>>, named map<string, double>, raw binary,"
    f" _deleted boolean, _source_ts bigint, _key bigint, {SIDE} string"
)
RATIOS = (None, 0.1, 0.1 + 1e-15, 0.30000000000000004, 0.3, -0.0, 0.0, float("nan"), float("inf"), 1e300)
TIES = (1.000000000005, 1.00000000001, 1.0, 123456.7890125, 123456.789013, 5e-324)
AT = datetime(2024, 1, 15, 10, 30, 45, 123000, UTC)


def make_row(chance: random.Random, key: tuple[Any, ...], side: str) -> tuple[Any, ...]:
    is_dead = side == GONE or chance.random() < 0.15
    values = (
        chance.choice((date(2024, 2, 29), date(1, 1, 1), None)),
        chance.choice((datetime(2024, 1, 1, 1, 1, 1, 123456, UTC), None)),
        chance.choice(RATIOS + TIES),
        chance.choice((None, 0.1, 0.5)),
        chance.choice((True, None)),
        chance.choice((None, (None, None), (0.1, [1, None]), (0.1 + 1e-16, [1, None]))),
        chance.choice((None, {"x": 0.1, "y": None}, {"y": None, "x": 0.1}, {})),
        chance.choice((b"\x00\xff", None)),
    )
    return (*key, *values, is_dead, chance.choice((None, 5, 7)), 1, side)


@pytest.mark.parametrize("unit", TimeUnit)
@pytest.mark.parametrize("place", [("parent",), ("parent", "child")])
def test_plain_python_nets_as_spark_does(unit: TimeUnit, place: tuple[str, ...], tmp_path: Path) -> None:
    chance = random.Random(f"{unit}{place}")
    session = get_session(Settings(lake="", catalog="", spark_master="local[2]", spark_conf={}))
    keys = [(parent, child) for parent in ("a:b", "é", None) for child in map(Decimal, range(-20, 20))]
    rows = []
    for key in keys:
        for side in chance.choice(((OLD,), (NEW,), (OLD, NEW), (OLD, NEW), (OLD, NEW), (OLD, GONE))):
            rows.append(make_row(chance, key, side))
    staged = stage(session.createDataFrame(rows, SHAPE), str(tmp_path / "staged"), {"n": F.count(F.lit(1))})
    netting = Netting(
        key=("parent", "child"), place=place, order=("ratio", "parent", "child", "flag"), unit=unit
    )
    handed = staged.read(session)
    sides = Sides(rows=handed, came=F.col(SIDE) != OLD, version=F.lit(4), at=F.lit(AT))
    by_spark = stage(net_changes((sides,), netting), str(tmp_path / "net"), {"n": F.count(F.lit(1))})
    files = {name: LogFile(str(tmp_path / name / "log.parquet"), AT) for name in ("spark", "few")}

    files["spark"].add_changes(by_spark, netting.key)
    few = net_few(staged, netting, 4, AT)
    assert few is not None
    files["few"].add_few(few, netting.key)

    for file in files.values():
        file.close()
    tables = {name: pq.read_table(tmp_path / name / "log.parquet").to_pylist() for name in files}
    assert tables["few"] == tables["spark"]
    assert {row["operation"] for row in tables["few"]} == {"INSERT", "UPDATE", "DELETE"}
    assert len({len(row["fields"]) for row in tables["few"]}) > 5


def test_rows_that_share_a_key_and_keys_with_a_double_are_left_to_spark(tmp_path: Path) -> None:
    chance = random.Random(1)
    session = get_session(Settings(lake="", catalog="", spark_master="local[2]", spark_conf={}))
    rows = [make_row(chance, ("a", Decimal(1)), side) for side in (OLD, OLD, NEW)]
    alive = [(*row[:-4], False, *row[-3:]) for row in rows]
    staged = stage(session.createDataFrame(alive, SHAPE), str(tmp_path / "staged"), {"n": F.count(F.lit(1))})

    for key in (("parent", "child"), ("parent", "ratio")):
        netting = Netting(key=key, place=key, order=(), unit=TimeUnit.MILLISECONDS)
        assert net_few(staged, netting, 4, AT) is None
