"""Filters in Spark over files whose readers skip rows. tests/property compares all conditions."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from strandline.compute.filtering import condition_column
from strandline.model.conditions import AllOf, Comparison, Operator
from strandline.model.project import Settings
from strandline.spark.session import get_session

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("stored", [0.0, -0.0])
@pytest.mark.parametrize("operator", [Operator.EQ, Operator.GTE, Operator.LTE])
def test_a_zero_that_is_stored_is_found_whatever_its_sign(
    stored: float, operator: Operator, tmp_path: Path
) -> None:
    session = get_session(Settings(lake="", catalog="", spark_master="local[2]", spark_conf={}))
    pq.write_table(pa.table({"ratio": [stored, 5.0]}), tmp_path / "rows.parquet")  # with a dictionary
    rows = session.read.parquet(str(tmp_path / "rows.parquet")).where("ratio < 1")

    for value in (0.0, -0.0):
        filter = AllOf(parts=(Comparison(column="ratio", operator=operator, value=value),))
        assert rows.where(condition_column(filter)).count() == 1, value
