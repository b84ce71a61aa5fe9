"""The recorded events of some keys, which the fold goes on from."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from strandline.lake.table import get_table
from strandline.lake.work import Work
from strandline.model.events import EventType
from strandline.publish.trigger_fold import Recorded
from strandline.sql.literals import datafusion_literal

_COLUMNS = ("key", "source_timestamp", "event_type", "revision", "version", "position")
_AT_ONCE = 2_000
"""Keys that are named in one question."""
Place = tuple[int, int, int]


@dataclass(slots=True)
class History:
    """What the recorded events say about some keys."""

    revision: int
    """The events of this one set the state of a key."""
    last: dict[str, tuple[Place, EventType]] = field(default_factory=dict)
    last_of_any: dict[str, tuple[Place, EventType]] = field(default_factory=dict)
    counts: dict[tuple[str, int], int] = field(default_factory=dict)

    def add(self, event: Mapping[str, Any]) -> None:
        key, kind = event["key"], EventType(event["event_type"])
        place = (event["revision"], event["version"], event["position"])
        counted = (key, event["source_timestamp"])
        self.counts[counted] = self.counts.get(counted, 0) + 1
        if key not in self.last_of_any or self.last_of_any[key][0] < place:
            self.last_of_any[key] = place, kind
        if event["revision"] == self.revision and (key not in self.last or self.last[key][0] < place):
            self.last[key] = place, kind

    @property
    def recorded(self) -> Recorded:
        last = {key: kind for key, (_, kind) in self.last.items()}
        return Recorded(revision=self.revision, last=last, counts=self.counts)


def read_history(work: Work, keys: Collection[str], revision: int) -> History:
    """Only events of these keys are read."""
    history = History(revision)
    if work.own_version is not None and not work.task.overwrite:
        for events in _read(work, keys):
            for event in events:
                history.add(event)
    return history


def find_on(work: Work) -> frozenset[str]:
    """The keys whose last event of any revision is a MATCH."""
    own = work.read_own()
    if own is None:
        return frozenset()
    last = own.groupBy("key").agg(F.max_by("event_type", _place()).alias("last"))
    on = last.where(F.col("last") == str(EventType.MATCH))
    return frozenset(on.select("key").toArrow().column("key").to_pylist())


def find_last_data(work: Work, keys: Collection[str]) -> dict[str, tuple[int, str]]:
    """The time and the row of the last event of some keys."""
    own = work.read_own()
    if own is None or not keys:
        return {}
    last = own.where(F.col("key").isin(list(keys))).groupBy("key")
    rows = last.agg(F.max_by(F.struct("source_timestamp", "data"), _place()).alias("last")).collect()
    return {row["key"]: (row["last"]["source_timestamp"], row["last"]["data"]) for row in rows}


def count_positions(work: Work, version: int) -> int:
    """The position after all events of a version of the dataset."""
    own = work.read_own()
    if own is None:
        return 0
    last = own.where(F.col("version") == version).agg(F.max("position")).collect()[0][0]
    return 0 if last is None else int(last) + 1


def _place() -> Column:
    return F.struct("revision", "version", "position")


def _read(work: Work, keys: Collection[str]) -> Iterator[list[dict[str, Any]]]:
    assert work.own_version is not None
    table = get_table(work.lake.table(work.node.name), work.own_version)
    looked_up = table.bytes <= work.project.settings.thresholds.looked_up_table_bytes
    left = iter(keys)
    while some := list(islice(left, _AT_ONCE)):
        if looked_up:
            listed = ", ".join(datafusion_literal(key) or "NULL" for key in some)
            yield table.ask(f"SELECT {', '.join(_COLUMNS)} FROM t WHERE key IN ({listed})").to_pylist()
        else:
            rows = work.read(work.node.name, work.own_version).where(F.col("key").isin(some))
            yield rows.select(*_COLUMNS).toArrow().to_pylist()
