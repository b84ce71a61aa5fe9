"""Few values of columns of the key are named in a condition, by which files and pages are skipped."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import DataType, DoubleType, LongType, StringType, StructField, StructType

from strandline.compute.timeline.layout import name_values
from strandline.lake.near import Among
from strandline.lake.staging import Staged
from strandline.lake.writes import Superseding

KEY = ("account", "security")


def stage_keys(folder: Path, kind: pa.DataType, *parts: list[object]) -> Staged:
    """Keys whose first column has these values, and whose second one has one value for all."""
    for number, values in enumerate(parts):
        rows = {"account": pa.array(values, kind), "security": pa.array(["S"] * len(values), pa.string())}
        pq.write_table(pa.table(rows), folder / f"{number}.parquet")
    (folder / "_SUCCESS").touch()
    return Staged(path=str(folder), schema=StructType([]), counts={})


def find(keys: Staged, kind: DataType) -> dict[str, Among]:
    stored = StructType([StructField("account", kind), StructField("security", StringType())])
    return {among.column: among for among in name_values(keys, stored, KEY)}


def test_texts_are_named_once_from_all_files(tmp_path: Path) -> None:
    found = find(stage_keys(tmp_path, pa.string(), ["b", "a'"], ["b"]), StringType())

    assert found["account"] == Among(column="account", values=("a'", "b"))
    assert found["security"] == Among(column="security", values=("S",))


def test_whole_numbers_are_named(tmp_path: Path) -> None:
    found = find(stage_keys(tmp_path, pa.int64(), [7, -7]), LongType())

    assert found["account"].values == (-7, 7)


@pytest.mark.parametrize(
    ("kind", "values", "stored"),
    [
        (pa.string(), ["a", None], StringType()),
        (pa.float64(), [0.0], DoubleType()),
        (pa.int64(), [5], StringType()),
        (pa.string(), ["5"], LongType()),
        (pa.string(), [], StringType()),
        (pa.string(), [str(n) for n in range(21)], StringType()),
    ],
    ids=["null", "double", "text in the table", "number in the table", "nothing", "many"],
)
def test_what_may_be_equal_in_another_spelling_is_not_named(
    tmp_path: Path, kind: pa.DataType, values: list[object], stored: DataType
) -> None:
    found = find(stage_keys(tmp_path, kind, values), stored)

    assert "account" not in found
    assert ("security" in found) == bool(values)


def test_twenty_values_are_named(tmp_path: Path) -> None:
    found = find(stage_keys(tmp_path, pa.int64(), list(range(20))), LongType())

    assert len(found["account"].values) == 20


def test_a_write_that_supersedes_looks_at_the_named_values_alone() -> None:
    among = (Among(column="account", values=("a",)), Among(column="security", values=(1, 2)))

    condition = Superseding(key=KEY, among=among).spell()

    assert condition.endswith(" AND __there.`account` IN ('a') AND __there.`security` IN (1, 2)")
    assert "IN ('a')" not in Superseding(key=KEY).spell()
