"""Texts of files with their positions, written to the staging folder for Spark."""

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from strandline.lake.location import open_folder

from .survey import Piece

_ROWS_A_BLOCK = 200_000
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
        self._places: list[int] = []
        self._piece: Piece | None = None

    def add(self, piece: Piece, text: str, place: int, *, sound: bool = True) -> None:
        if self._piece is not piece or len(self._texts) == _ROWS_A_BLOCK:
            self._flush()
            self._piece = piece
        self._texts.append(text)
        self._sound.append(sound)
        self._places.append(place)

    def read(self, session: SparkSession) -> DataFrame:
        """All of them: `text`, `sound`, `name`, `part`, `place`."""
        self._flush()
        self._writer.close()
        return session.read.schema(_SPARK_SCHEMA).parquet(self._uri)

    def _flush(self) -> None:
        if self._piece is None or not self._texts:
            return
        count, read = len(self._texts), self._piece.read
        columns = [self._texts, self._sound, [read.path] * count, [read.revision] * count, self._places]
        self._writer.write_batch(
            pa.record_batch(
                [pa.array(c, f.type) for c, f in zip(columns, _SCHEMA, strict=True)], schema=_SCHEMA
            )
        )
        self._texts, self._sound, self._places = [], [], []
