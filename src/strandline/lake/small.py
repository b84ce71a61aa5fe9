"""Small tables, read once a run through delta-rs and kept aside as plain Parquet.

Spark plans a Delta scan with jobs of its own over the table's log, half a second each whatever the table's size; a run over small
tables spends most of its time there. delta-rs reads the same rows, deletion vectors applied, in milliseconds. Large tables are left to
Spark.
"""

import json
from dataclasses import dataclass, field
from itertools import count
from threading import Lock

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from .location import Lake, open_folder
from .state import count_bytes, get_table

SMALL_BYTES = 8 << 20
"""Of Parquet; some 100,000 rows."""


@dataclass(slots=True)
class SmallTables:
    """The small tables of one run, by dataset and version."""

    lake: Lake
    folder: str
    _paths: dict[tuple[str, int], tuple[str, StructType] | None] = field(default_factory=dict)
    _locks: dict[tuple[str, int], Lock] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)
    _number: int = field(default_factory=count().__next__)
    """Two that share a folder must not write the same file: one of them may be reading it."""

    def find(self, session: SparkSession, dataset: str, version: int) -> DataFrame | None:
        """A table at a version, if it is small."""
        key = (dataset, version)
        with self._lock:
            own = self._locks.setdefault(key, Lock())
        with own:
            if key not in self._paths:
                self._paths[key] = self._keep(dataset, version)
            found = self._paths[key]
        if found is None:
            return None
        path, schema = found
        return session.read.schema(schema).parquet(path)

    def _keep(self, dataset: str, version: int) -> tuple[str, StructType] | None:
        table = get_table(self.lake.table(dataset), version)
        if count_bytes(table) > SMALL_BYTES:
            return None
        schema = spark_schema(table)
        found = pa.table(QueryBuilder().register("t", table).execute("select * from t").read_all())
        rows = found.select([f.name for f in schema])
        plain = rows.cast(pa.schema([(f.name, _plain(f.type)) for f in rows.schema]))
        path = f"{self.folder}/{dataset}_{version}_{self._number}.parquet"
        file_system, target = open_folder(path)
        file_system.create_dir(target.rsplit("/", 1)[0], recursive=True)
        pq.write_table(plain, target, filesystem=file_system)
        return path, schema


def spark_schema(table: DeltaTable) -> StructType:
    """A table's schema as Spark has it: Delta keeps it in Spark's own JSON."""
    return StructType.fromJson(json.loads(table.schema().to_json()))


def _plain(kind: pa.DataType) -> pa.DataType:
    """DataFusion's view types as the types Parquet files are written with."""
    if pa.types.is_struct(kind):
        return pa.struct([(f.name, _plain(f.type)) for f in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_plain(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    if str(kind) in ("string_view", "large_string"):
        return pa.string()
    if str(kind) in ("binary_view", "large_binary"):
        return pa.binary()
    return kind
