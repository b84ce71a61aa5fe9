"""Few rows that the compare step has handed on -> net changes of one commit, without Spark.

Gives what `netting` gives of the same rows: a job of Spark takes longer than everything else about few rows.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Context
from math import isfinite

from pyspark.sql.types import DoubleType, FloatType

from strandline.lake.plain_values import plain_rows
from strandline.lake.staging import Staged
from strandline.lake.work import OLD, SIDE
from strandline.model.columns import DELETED, METADATA_COLUMNS, SOURCE_TS, TimeUnit
from strandline.publish.changes import Change

from .netting import Netting

Row = Mapping[str, object]
_DIGITS = Context(prec=12, rounding=ROUND_HALF_UP)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class NetChange:
    """What a commit made of one row. One of `new` and `old` may be None."""

    version: int
    operation: Change
    source_timestamp: int | None
    fields: tuple[str, ...]
    new: Row | None
    old: Row | None


@dataclass(slots=True)
class _Sides:
    """The rows of one key."""

    new: list[Row] = field(default_factory=list)
    old: list[Row] = field(default_factory=list)
    came_times: list[int] = field(default_factory=list)
    """Also of rows that say that the key is deleted."""
    live_times: list[int] = field(default_factory=list)
    place_times: list[int] = field(default_factory=list)


def net_few(
    staged: Staged, netting: Netting, version: int, at: datetime | None
) -> tuple[NetChange, ...] | None:
    """None if Spark must tell: a key that is a double, or that several rows share."""
    names = staged.schema.fieldNames()
    doubles = {f.name for f in staged.schema if isinstance(f.dataType, DoubleType | FloatType)}
    if doubles & set(netting.key):
        return None
    there = [c for c in names if c not in METADATA_COLUMNS and not c.startswith("__")]
    columns = [c for c in netting.order if c in there] + [c for c in there if c not in netting.order]
    timed = SOURCE_TS in names
    needed = [*columns, SIDE, *(c for c in (DELETED, SOURCE_TS) if c in names)]
    rows = plain_rows(staged.fetch(needed))
    placed = timed and set(netting.place) != set(netting.key) and set(netting.place) <= set(columns)
    sides = _gather(rows, netting, columns, placed=placed)
    if any(len(one.new) > 1 or len(one.old) > 1 for one in sides.values()):
        return None
    return tuple(_tell(sides.values(), columns, version, _count_time(at, netting.unit)))


def _count_time(at: datetime | None, unit: TimeUnit) -> int | None:
    """The time of a commit in the unit of its dataset."""
    if at is None:
        return None
    micros = (at - _EPOCH) // timedelta(microseconds=1)
    match unit:
        case TimeUnit.MILLISECONDS:
            return micros // 1000
        case TimeUnit.MICROSECONDS:
            return micros
        case TimeUnit.NANOSECONDS:
            return micros * 1000


def _gather(
    rows: Sequence[Row], netting: Netting, columns: Sequence[str], *, placed: bool
) -> dict[Hashable, _Sides]:
    sides: dict[Hashable, _Sides] = {}
    place_times: dict[Hashable, list[int]] = {}
    for row in rows:
        time = row.get(SOURCE_TS)
        if placed and isinstance(time, int) and row[SIDE] != OLD:
            place_times.setdefault(_name(row, netting.place), []).append(time)
    for row in rows:
        came, dead, time = row[SIDE] != OLD, bool(row.get(DELETED)), row.get(SOURCE_TS)
        of_key = sides.setdefault(_name(row, netting.key), _Sides())
        if not dead:
            (of_key.new if came else of_key.old).append({name: row[name] for name in columns})
        if came and isinstance(time, int):
            of_key.came_times.append(time)
            of_key.live_times += [] if dead else [time]
        if placed and not came:
            of_key.place_times += place_times.get(_name(row, netting.place), [])
    return sides


def _tell(
    sides: Iterable[_Sides], columns: Sequence[str], version: int, commit_time: int | None
) -> Iterator[NetChange]:
    for one in sides:
        new, old = next(iter(one.new), None), next(iter(one.old), None)
        if new is None and old is None:
            continue
        fields = tuple(
            name
            for name in columns
            if new is None or old is None or _comparable(new[name]) != _comparable(old[name])
        )
        if not fields:
            continue
        times = one.live_times if new is not None else one.came_times or one.place_times
        operation = Change.INSERT if old is None else Change.DELETE if new is None else Change.UPDATE
        yield NetChange(
            version=version,
            operation=operation,
            source_timestamp=max(times, default=commit_time),
            fields=fields,
            new=new,
            old=old,
        )


def _name(row: Row, columns: Sequence[str]) -> Hashable:
    return tuple(_hashable(row[name]) for name in columns)


def _hashable(value: object) -> Hashable:
    return repr(value) if isinstance(value, dict | list) else value


def _comparable(value: object) -> object:
    """The value with doubles as text of 12 significant digits, rounded as Java does."""
    match value:
        case float() if isfinite(value):
            return str(_DIGITS.create_decimal(repr(value + 0.0)).normalize())
        case float():
            return repr(value)
        case dict():
            return {name: _comparable(inner) for name, inner in value.items()}
        case list():
            return [_comparable(inner) for inner in value]
        case _:
            return value
