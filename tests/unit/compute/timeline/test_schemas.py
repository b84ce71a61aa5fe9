"""Every type that a field may have, and a key from a job, has a type in Arrow."""

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from strandline.compute.timeline.folded import serialize_schema


@pytest.mark.parametrize(
    ("kind", "arrow"),
    [
        (TimestampType(), pa.timestamp("us", tz="UTC")),
        (ArrayType(TimestampType()), pa.list_(pa.timestamp("us", tz="UTC"))),
        (TimestampNTZType(), pa.timestamp("us")),
        (DecimalType(38, 10), pa.decimal128(38, 10)),
    ],
)
def test_a_column_has_its_type_in_arrow(kind: DataType, arrow: pa.DataType) -> None:
    text = serialize_schema(StructType([StructField("seen_at", kind)]))

    assert pa.ipc.read_schema(pa.py_buffer(text)).field("seen_at").type == arrow
