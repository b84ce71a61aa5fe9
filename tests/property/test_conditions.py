"""A condition is the same in Python, in Spark and in DataFusion: true, false or unknown, for every row."""

import json
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from strandline.compute.filtering import any_of, condition_column
from strandline.model.condition_checks import check_condition
from strandline.model.condition_json import condition_to_json, parse_condition
from strandline.model.condition_truth import evaluate
from strandline.model.conditions import Condition
from strandline.model.project import Settings
from strandline.spark.session import get_session
from strandline.sql.datafusion_conditions import datafusion_condition
from tests.property.random_conditions import TYPES, Row, draw_condition, draw_rows

COLUMNS = {name: kind for name, (kind, _) in TYPES.items()}
Truths = list[list[bool | None]]


def arrow(rows: list[Row]) -> pa.Table:
    schema = pa.schema([("place", pa.int64()), *((name, kind) for name, (_, kind) in TYPES.items())])
    return pa.Table.from_pylist([{"place": i} | row for i, row in enumerate(rows)], schema=schema)


def in_python(conditions: list[Condition], rows: list[Row]) -> Truths:
    return [[evaluate(condition, row) for condition in conditions] for row in rows]


def in_datafusion(conditions: list[Condition], rows: list[Row], folder: Path) -> Truths:
    write_deltalake(folder, arrow(rows))
    session = QueryBuilder().register("t", DeltaTable(folder))
    truths: Truths = [[] for _ in rows]
    for start in range(0, len(conditions), 50):
        part = conditions[start : start + 50]
        selected = ", ".join(f"{datafusion_condition(c)} AS c{i}" for i, c in enumerate(part))
        answer = pa.table(session.execute(f"SELECT {selected} FROM t ORDER BY place").read_all())
        for place, row in enumerate(answer.to_pylist()):
            truths[place] += [row[f"c{i}"] for i in range(len(part))]
    return truths


def differences(expected: Truths, actual: Truths, conditions: list[Condition], rows: list[Row]) -> list[str]:
    return [
        f"{condition_to_json(condition)} of {row}: {there[i]}, not {here[i]}"
        for here, there, row in zip(expected, actual, rows, strict=True)
        for i, condition in enumerate(conditions)
        if here[i] is not there[i]
    ]


@pytest.mark.parametrize("seed", range(8))
def test_python_and_datafusion_agree(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    rows, conditions = draw_rows(random, 60), [draw_condition(random) for _ in range(150)]

    truths = in_python(conditions, rows)

    assert differences(truths, in_datafusion(conditions, rows, tmp_path / "t"), conditions, rows) == []
    assert {True, False, None} == {truth for row in truths for truth in row}


@pytest.mark.parametrize("seed", range(300))
def test_a_condition_reads_back_from_its_json_and_means_the_same(seed: int) -> None:
    random = Random(seed)
    rows, condition = draw_rows(random, 30), draw_condition(random)

    written = json.dumps(condition_to_json(condition), allow_nan=False)
    read = parse_condition(json.loads(written), COLUMNS)

    assert in_python([read], rows) == in_python([condition], rows)
    assert check_condition(read, COLUMNS) is not None


@pytest.mark.spark
def test_python_and_spark_agree(tmp_path: Path) -> None:
    session = get_session(Settings(lake="", catalog="", spark_master="local[2]", spark_conf={}))
    random = Random(17)
    rows, conditions = draw_rows(random, 60), [draw_condition(random) for _ in range(240)]
    write_deltalake(tmp_path / "t", arrow(rows))
    stored = session.read.parquet(*map(str, (tmp_path / "t").glob("*.parquet")))
    truths: Truths = [[] for _ in rows]

    for start in range(0, len(conditions), 60):
        part = conditions[start : start + 60]
        selected = [condition_column(c).alias(f"c{i}") for i, c in enumerate(part)]
        for row in stored.select("place", *selected).collect():
            truths[row["place"]] += [row[f"c{i}"] for i in range(len(part))]

    assert differences(in_python(conditions, rows), truths, conditions, rows) == []
    # As a filter, which readers of files may use to skip rows.
    for some in (conditions[:20], conditions[20:21], []):
        kept = {row["place"] for row in stored.where(any_of(some)).select("place").collect()}
        wanted = {i for i, row in enumerate(rows) if any(evaluate(c, row) is True for c in some)}
        assert kept == wanted
