"""Small tables, and few rows of medium-sized ones, read through delta-rs and staged as plain Parquet.

Spark plans a Delta scan with its own jobs over the table's log, which takes a second or more whatever it then
reads. A run over small tables spends most of its time there. delta-rs reads the same rows, with deletion
vectors applied, in milliseconds, and finds the rows of some keys among millions in about a second. Large
tables are left to Spark.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from threading import Lock

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import QueryBuilder, write_deltalake
from pyarrow.fs import FileSystem
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from strandline.model.columns import HEAD, KEY, Role
from strandline.model.thresholds import SHIPPED, Thresholds
from strandline.model.timeline import KeyStatus

from .location import Lake, for_delta_rs, open_folder, write_parquet
from .near import Near
from .table import Table, get_table

_Kept = tuple[str, StructType] | None
"""The file with what is kept of a table, and its schema. None if it is not small."""
_Keep = Callable[[str, int], _Kept]
"""Writes what is kept of a table at a version."""


@dataclass(slots=True)
class SmallTables:
    """The small tables of one run, and the heads in large ones, by dataset and version."""

    lake: Lake
    folder: str
    thresholds: Thresholds = SHIPPED
    _paths: dict[tuple[str, int, bool], _Kept] = field(default_factory=dict)
    _locks: dict[tuple[str, int, bool], Lock] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)
    _numbers: Iterator[int] = field(default_factory=count)
    """No file is written twice, because somebody may be reading it."""

    def find(self, session: SparkSession, dataset: str, version: int) -> DataFrame | None:
        """A table at a version, if it is small."""
        return _read(session, self.fetch(dataset, version))

    def fetch(self, dataset: str, version: int) -> _Kept:
        """Keep a table at a version, if it is small, for those who will read it."""
        return self._fetch(dataset, version, self._keep, heads=False)

    def find_heads(self, session: SparkSession, dataset: str, version: int) -> DataFrame | None:
        """The heads in an output of a timeline at a version, without their states, if they are small."""
        return _read(session, self.fetch_heads(dataset, version))

    def find_heads_of(
        self, session: SparkSession, dataset: str, version: int, hashes: pa.Array
    ) -> DataFrame | None:
        """Those heads that some keys have. None if the heads are not small.

        Every use of all heads would decode and join them anew.
        """
        kept = self.fetch_heads(dataset, version)
        if kept is None:
            return None
        path, schema = kept
        file_system, file = self._locate_kept(path)
        with self._lock:
            number = next(self._numbers)
        heads = pq.ParquetFile(file, filesystem=file_system).read()
        of_keys = f"{self.folder}/{dataset}_{number}_some_heads.parquet"
        write_parquet(heads.filter(pc.is_in(heads.column(KEY), value_set=hashes)), of_keys)
        return _read(session, (of_keys, schema))

    def list_failed(self, dataset: str, version: int) -> pa.Array | None:
        """The hashes of the heads that say that the key failed. None if the heads are not small."""
        kept = self.fetch_heads(dataset, version)
        if kept is None:
            return None
        file_system, file = self._locate_kept(kept[0])
        heads = pq.ParquetFile(file, filesystem=file_system).read([KEY, f"{HEAD}.status"])
        statuses = heads.column(HEAD).combine_chunks().field("status")
        return heads.column(KEY).filter(pc.equal(statuses, str(KeyStatus.FAILED))).combine_chunks()

    def _locate_kept(self, path: str) -> tuple[FileSystem, str]:
        """What is kept, for a reader that is not Spark."""
        file_system, root = open_folder(self.folder)
        name = path.removeprefix(f"{self.folder}/")
        return file_system, f"{root}/{name}" if root else name

    def fetch_heads(self, dataset: str, version: int) -> _Kept:
        """Keep the heads at a version, if they are small, for those who will read them."""
        return self._fetch(dataset, version, self._keep_heads, heads=True)

    def _fetch(self, dataset: str, version: int, keep: _Keep, *, heads: bool) -> _Kept:
        key = (dataset, version, heads)
        with self._lock:
            own = self._locks.setdefault(key, Lock())
        with own:
            if key not in self._paths:
                self._paths[key] = keep(dataset, version)
            return self._paths[key]

    def find_rows(
        self, session: SparkSession, dataset: str, version: int, column: str, values: Sequence[int]
    ) -> DataFrame | None:
        """The rows of a table at a version whose `column` is among `values`.

        None if the table is small (it is read once for all), or large.
        """
        table = self._find_middling(dataset, version)
        if table is None:
            return None
        with self._lock:
            number = next(self._numbers)
        keys_uri = for_delta_rs(f"{self.folder}/{dataset}_{number}_wanted")
        write_deltalake(keys_uri, pa.table({column: pa.array(values, pa.int64())}))
        keys = get_table(keys_uri)
        query = keys.register(table.register(QueryBuilder(), "t"), "wanted")
        matching = query.execute(
            f'SELECT t.* FROM t LEFT SEMI JOIN wanted ON t."{column}" = wanted."{column}"'
        )
        path, schema = self._write(table, pa.table(matching.read_all()), f"{dataset}_{number}_rows")
        return session.read.schema(schema).parquet(path)

    def find_where(
        self, session: SparkSession, dataset: str, version: int, column: str, condition: str
    ) -> DataFrame | None:
        """Rows that match a DataFusion condition over a column.

        None if the table is small (read it whole), large (leave it to Spark), or too many rows match.
        """
        table = self._find_middling(dataset, version)
        if table is None:
            return None
        most = self.thresholds.looked_up_rows
        matching = table.ask(f"SELECT * FROM t WHERE {condition} LIMIT {most + 1}")
        if matching.num_rows > most:
            return None
        with self._lock:
            number = next(self._numbers)
        path, schema = self._write(table, matching, f"{dataset}_{number}_by_{column}")
        return session.read.schema(schema).parquet(path)

    def find_near(
        self, session: SparkSession, dataset: str, version: int, role: Role, near: Near
    ) -> DataFrame | None:
        """The rows of one role in an output of a timeline that lie near few keys.

        None if they are not few, the table is small (read it whole), what has to be looked through is large
        (leave it to Spark), or too many rows match.
        """
        table = get_table(self.lake.table(dataset), version)
        thresholds = self.thresholds
        small = table.bytes <= thresholds.small_table_bytes
        if small or not near.among or table.count_bytes(role, near) > thresholds.looked_up_table_bytes:
            return None
        matching = table.read_role(role, near, thresholds.looked_up_rows + 1)
        if matching.num_rows > thresholds.looked_up_rows:
            return None
        with self._lock:
            number = next(self._numbers)
        return _read(session, self._write(table, matching, f"{dataset}_{number}_near"))

    def _find_middling(self, dataset: str, version: int) -> Table | None:
        """The table, if it is neither small nor large."""
        table = get_table(self.lake.table(dataset), version)
        between = self.thresholds.small_table_bytes < table.bytes <= self.thresholds.looked_up_table_bytes
        return table if between else None

    def _keep(self, dataset: str, version: int) -> _Kept:
        table = get_table(self.lake.table(dataset), version)
        if table.bytes > self.thresholds.small_table_bytes:
            return None
        with self._lock:
            number = next(self._numbers)
        rows = table.ask("SELECT * FROM t")
        return self._write(table, rows, f"{dataset}_{number}")

    def _keep_heads(self, dataset: str, version: int) -> _Kept:
        table = get_table(self.lake.table(dataset), version)
        if table.count_bytes(Role.HEAD) > self.thresholds.small_heads_bytes:
            return None
        with self._lock:
            number = next(self._numbers)
        rows = table.read_role(Role.HEAD)
        heads = rows.column(HEAD).combine_chunks()
        fields = {name: heads.field(name) for name in heads.type.names}
        fields["state"] = pa.nulls(len(heads), heads.type.field("state").type)
        stateless = pa.StructArray.from_arrays(list(fields.values()), fields=list(heads.type))
        rows = rows.set_column(rows.column_names.index(HEAD), HEAD, stateless)
        return self._write(table, rows, f"{dataset}_{number}_heads")

    def _write(self, table: Table, content: pa.Table, name: str) -> tuple[str, StructType]:
        schema = spark_schema(table)
        rows = content.select([f.name for f in schema])
        path = f"{self.folder}/{name}.parquet"
        write_parquet(rows.cast(pa.schema([(f.name, _plain(f.type)) for f in rows.schema])), path)
        return path, schema


def _read(session: SparkSession, kept: _Kept) -> DataFrame | None:
    if kept is None:
        return None
    path, schema = kept
    return session.read.schema(schema).parquet(path)


def spark_schema(table: Table) -> StructType:
    """A table's schema in Spark's types. Delta stores it in Spark's own JSON."""
    return StructType.fromJson(json.loads(table.schema_json))


def _plain(kind: pa.DataType) -> pa.DataType:
    """The types that Parquet files are written with, in place of DataFusion's view types."""
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
