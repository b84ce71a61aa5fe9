"""Few values of a key are named in a condition, by which pages of files are skipped."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import DataType, DoubleType, LongType, StringType, StructField, StructType

from strandline.compute.timeline.layout import name_values
from strandline.lake.staging import Staged
from strandline.lake.writes import Among, Superseding


def stage_keys(folder: Path, kind: pa.DataType, *parts: list[object]) -> Staged:
    for number, values in enumerate(parts):
        pq.write_table(pa.table({"account": pa.array(values, kind)}), folder / f"{number}.parquet")
    (folder / "_SUCCESS").touch()
    return Staged(path=str(folder), schema=StructType([]), counts={})


def find(keys: Staged, kind: DataType) -> Among | None:
    return name_values(keys, StructType([StructField("account", kind)]), ("account", "security"))


def test_texts_and_whole_numbers_are_named_once_from_all_files(tmp_path: Path) -> None:
    texts = find(stage_keys(tmp_path, pa.string(), ["b", "a'"], ["b"]), StringType())
    assert texts == Among(column="account", literals=(r"'a\''", "'b'"))
    assert texts.spell("t.") == r"t.`account` IN ('a\'', 'b')"


def test_whole_numbers_are_named(tmp_path: Path) -> None:
    found = find(stage_keys(tmp_path, pa.int64(), [7, -7]), LongType())
    assert found is not None
    assert found.spell() == "`account` IN ((-7), 7)"


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
    assert find(stage_keys(tmp_path, kind, values), stored) is None


def test_twenty_values_are_named(tmp_path: Path) -> None:
    found = find(stage_keys(tmp_path, pa.int64(), list(range(20))), LongType())
    assert found is not None
    assert len(found.literals) == 20


def test_a_write_that_supersedes_looks_at_the_named_values_alone() -> None:
    among = Among(column="account", literals=("'a'",))
    condition = Superseding(key=("account",), among=among).spell()
    assert condition.endswith(" AND __there.`account` IN ('a')")
    assert "IN ('a')" not in Superseding(key=("account",)).spell()
