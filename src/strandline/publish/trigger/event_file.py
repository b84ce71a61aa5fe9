"""New events as rows of the trigger's dataset, in one file."""

from collections.abc import Iterable
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq

from strandline.lake.location import open_folder
from strandline.model.events import Event

EVENT_SCHEMA = pa.schema(
    [
        ("event_id", pa.string()),
        ("event_type", pa.string()),
        ("key", pa.string()),
        ("source_timestamp", pa.int64()),
        ("n", pa.int64()),
        ("data", pa.string()),
        ("version", pa.int64()),
        ("position", pa.int64()),
        ("revision", pa.int64()),
        ("quiet", pa.bool_()),
        ("recorded_at", pa.timestamp("us", tz="UTC")),
    ]
)
SPARK_SCHEMA = (
    "event_id string, event_type string, key string, source_timestamp bigint, n bigint, data string,"
    " version bigint, position bigint, revision bigint, quiet boolean, recorded_at timestamp"
)


class EventFile:
    def __init__(self, uri: str, recorded_at: datetime) -> None:
        file_system, path = open_folder(uri)
        file_system.create_dir(path.rsplit("/", 1)[0], recursive=True)
        self._writer = pq.ParquetWriter(path, EVENT_SCHEMA, filesystem=file_system)
        self._recorded_at = recorded_at
        self.rows = 0
        self.told = 0
        """Events that receivers are told about."""

    def close(self) -> None:
        self._writer.close()

    def add(self, events: Iterable[Event]) -> None:
        rows = [
            {name: getattr(event, name) for name in EVENT_SCHEMA.names[:-1]}
            | {"event_type": str(event.event_type), "recorded_at": self._recorded_at}
            for event in events
        ]
        self._writer.write_table(pa.Table.from_pylist(rows, EVENT_SCHEMA))
        self.rows += len(rows)
        self.told += sum(not row["quiet"] for row in rows)
