"""Tables of events as a trigger's task leaves them, written by delta-rs, for tests without Spark."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake

from strandline.model.commits import CommitMetadata, Operation
from strandline.model.events import make_event_id
from strandline.model.metadata import to_json
from strandline.publish.trigger.event_file import EVENT_SCHEMA

AT = datetime(2024, 1, 15, 10, 30, 45, 123456, UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fired:
    """An event to be written. Its place in the change log is that in which it is given."""

    key: str
    timestamp: int = 1
    n: int = 1
    match: bool = True
    quiet: bool = False
    data: str = '{"größe":1.50}'
    version: int | None = None
    """Of the dataset. By default that of the commit."""
    revision: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLog:
    """The events table of one trigger."""

    trigger: str
    uri: Path

    def append(self, *events: Fired, at: datetime = AT, shuffled: bool = False, foreign: bool = False) -> int:
        """One commit. Returns its version.

        `shuffled`: rows lie in the file in another order. `foreign`: the commit is not Strandline's.
        """
        version = self.version + 1
        rows = [self._row(event, version, position, at) for position, event in enumerate(events)]
        table = pa.Table.from_pylist(rows[::-1] if shuffled else rows, EVENT_SCHEMA)
        metadata = CommitMetadata.bare(
            run="run-1", node=self.trigger, token=version + 1, operation=Operation.APPEND, as_of=""
        )
        ours = CommitProperties(custom_metadata={"userMetadata": to_json(metadata)})
        write_deltalake(
            str(self.uri),
            table,
            mode="append",
            configuration={"delta.appendOnly": "true"},
            commit_properties=None if foreign else ours,
        )
        return self.version

    def compact(self) -> None:
        DeltaTable(str(self.uri)).optimize.compact()

    def vacuum(self) -> None:
        table = DeltaTable(str(self.uri))
        table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)

    @property
    def version(self) -> int:
        there = DeltaTable.is_deltatable(str(self.uri))
        return DeltaTable(str(self.uri)).version() if there else -1

    @property
    def id(self) -> str:
        return str(DeltaTable(str(self.uri)).metadata().id)

    def ids(self, events: Sequence[Fired]) -> list[str]:
        return [make_event_id(self.trigger, e.key, e.timestamp, e.n) for e in events]

    def _row(self, event: Fired, version: int, position: int, at: datetime) -> dict[str, object]:
        return {
            "event_id": make_event_id(self.trigger, event.key, event.timestamp, event.n),
            "event_type": "MATCH" if event.match else "UNMATCH",
            "key": event.key,
            "source_timestamp": event.timestamp,
            "n": event.n,
            "data": event.data,
            "version": version if event.version is None else event.version,
            "position": position,
            "revision": event.revision,
            "quiet": event.quiet,
            "recorded_at": at,
        }
