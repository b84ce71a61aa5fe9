"""Results that are staged before they are committed.

The write then knows their size, and its metadata exact counts.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql.types import StructType

from strandline.model.errors import OutsideError

from .location import Lake, open_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """Rows in Parquet under the run's staging folder."""

    path: str
    schema: StructType
    counts: Mapping[str, int]

    def only(self, columns: list[str]) -> "Staged":
        """The same rows without columns that only served the computation."""
        return Staged(
            path=self.path, schema=StructType([self.schema[c] for c in columns]), counts=self.counts
        )

    def read(self, session: SparkSession) -> DataFrame:
        """Read the rows back with their known schema: nothing is inferred, and Spark knows the size."""
        return session.read.schema(self.schema).parquet(self.path)

    def scan(self, columns: list[str]) -> Iterator[pa.Table]:
        """Some columns of the rows, without Spark, a batch at a time."""
        file_system, path = open_folder(self.path)
        for info in file_system.get_file_info(pyarrow.fs.FileSelector(path)):
            if info.extension == "parquet":
                file = pq.ParquetFile(info.path, filesystem=file_system, page_checksum_verification=True)
                yield from (pa.table(batch) for batch in file.iter_batches(columns=columns))

    def fetch(self, columns: list[str]) -> pa.Table:
        """Some columns of few rows, without Spark."""
        file_system, path = open_folder(self.path)
        return pq.read_table(path, columns=columns, filesystem=file_system, page_checksum_verification=True)


def stage(rows: DataFrame, path: str, counts: Mapping[str, Column], keep: Column | None = None) -> Staged:
    """Stage rows in one Spark job that also counts them.

    `keep` selects which of the counted rows are written.
    """
    observation = Observation()
    counted = rows.observe(observation, *(column.alias(name) for name, column in counts.items()))
    selected = counted if keep is None else counted.where(keep)
    selected.write.mode("overwrite").parquet(path)
    return Staged(path=path, schema=rows.schema, counts=read_counts(observation, counts))


def read_counts(observation: Observation, names: Iterable[str]) -> dict[str, int]:
    """The counts, where a sum of nothing is 0.

    Counts that Spark does not report are an error, and never taken for no rows (L13).
    """
    counted = find_counts(observation)
    if counted is None:
        raise OutsideError(
            "Spark staged rows and lost their counts.", remedy="Run again.", slug="counts-lost"
        )
    return {name: int(counted[name] or 0) for name in names}


def find_counts(observation: Observation) -> dict[str, int | None] | None:
    """The counts. None if adaptive planning found the plan above the counter empty and dropped both.

    The counter's row then has no columns.
    """
    row = observation._jo.getRow() if observation._jo is not None else None
    if row is None or not row.length():
        return None
    counted: dict[str, int | None] = observation.get
    return counted


def list_staging(lake: Lake) -> list[str]:
    """The runs that have a staging folder now."""
    file_system, root = open_folder(lake.root)
    selector = pyarrow.fs.FileSelector(f"{root}/_staging", allow_not_found=True)
    return sorted(info.base_name for info in file_system.get_file_info(selector))


def clear_staging(lake: Lake, run: str) -> None:
    """Remove what a run staged."""
    file_system, root = open_folder(lake.root)
    folder = f"{root}/_staging/{run}"
    if file_system.get_file_info(folder).type == pyarrow.fs.FileType.Directory:
        file_system.delete_dir(folder)
