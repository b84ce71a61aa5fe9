"""Texts of files with their positions, written to the staging folder for Spark."""

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from strandline.lake.location import open_folder

_ROWS_A_BLOCK = 200_000
_CHARACTERS_A_BLOCK = 1 << 26
_SCHEMA = pa.schema(
    [
        ("text", pa.string()),
        ("sound", pa.bool_()),
        ("name", pa.string()),
        ("part", pa.int64()),
        ("place", pa.int64()),
    ]
)
_SPARK_SCHEMA = "text string, sound boolean, name string, part bigint, place bigint"


class TextWriter:
    """A Parquet file of texts. `sound` False marks a text that must not be split into fields."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        file_system, path = open_folder(uri)
        file_system.create_dir(path.rsplit("/", 1)[0], recursive=True)
        self._writer = pq.ParquetWriter(path, _SCHEMA, filesystem=file_system)
        self._texts: list[str] = []
        self._sound: list[bool] = []
        self._names: list[str] = []
        self._parts: list[int] = []
        self._places: list[int] = []
        self._characters = 0

    def add(self, name: str, part: int, place: int, text: str, *, sound: bool = True) -> None:
        """A text and its position."""
        self._texts.append(text)
        self._sound.append(sound)
        self._names.append(name)
        self._parts.append(part)
        self._places.append(place)
        self._characters += len(text)
        if len(self._texts) == _ROWS_A_BLOCK or self._characters > _CHARACTERS_A_BLOCK:
            self._flush()

    def read(self, session: SparkSession) -> DataFrame:
        """All of them: `text`, `sound`, `name`, `part`, `place`."""
        self._flush()
        self._writer.close()
        return session.read.schema(_SPARK_SCHEMA).parquet(self._uri)

    def _flush(self) -> None:
        if not self._texts:
            return
        columns = [self._texts, self._sound, self._names, self._parts, self._places]
        self._writer.write_batch(
            pa.record_batch(
                [pa.array(c, f.type) for c, f in zip(columns, _SCHEMA, strict=True)], schema=_SCHEMA
            )
        )
        self._texts, self._sound, self._names, self._parts, self._places = [], [], [], [], []
        self._characters = 0
