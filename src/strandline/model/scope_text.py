"""The text of a scope in plans, results, pages and messages. It is made only here."""

from collections.abc import Iterable

from .condition_text import describe as describe_filter
from .conditions import EVERY_ROW, AllOf
from .scope import (
    COUNTED_NAMES,
    ClockMove,
    Described,
    Everything,
    Increment,
    Keys,
    KeysFrom,
    Left,
    Origin,
    Partitions,
    Range,
    Rows,
    Scope,
    find_filter,
    is_empty,
)

_SHOWN_NAMES = 5
"""At most this many of the partitions that someone named are shown."""


def describe(scope: Scope) -> str:
    """A scope as people read it."""
    match scope:
        case Everything(because=because):
            return f"everything: {because}" if because else "everything"
        case Rows(count=int(count), bytes=int(size)):
            return f"{count:,} {scope.of}, {size:,} bytes"
        case Rows(refused=True):
            return "the quarantined positions"
        case Rows(count=int(count)) | Keys(count=int(count)):
            return _counted(count, scope.of)
        case Rows() | Keys():
            return _describe_named(scope.of, scope.where, scope.origins)
        case KeysFrom():
            return _describe_keys_from(scope)
        case Partitions():
            return _describe_partitions(scope)
        case Range():
            return _describe_range(scope)
        case Described(text=text):
            return text


def describe_origins(origins: Iterable[Origin]) -> str:
    return "; ".join(_describe_origin(origin) for origin in origins)


def _counted(count: int, of: str) -> str:
    """`12 keys`, `1 value of block_number`, `1 entity`, `nothing`."""
    if count == 1:
        noun, blank, rest = of.partition(" ")
        one = f"{noun.removesuffix('ies')}y" if noun.endswith("ies") else noun.removesuffix("s")
        return f"1 {one}{blank}{rest}"
    return f"{count:,} {of}" if count else "nothing"


def _describe_named(of: str, where: AllOf | None, origins: tuple[Origin, ...]) -> str:
    named = [describe_filter(where)] if where else []
    following = [f"the {of} in {describe_origins(origins)}"] if origins else []
    return " and ".join([*named, *following]) or "nothing"


def _describe_keys_from(scope: KeysFrom) -> str:
    if is_empty(scope):
        return "nothing"
    if scope.count is not None:
        keys = _counted(scope.count, scope.of)
    else:
        keys = _describe_named(scope.of, None, scope.origins) if scope.origins else f"all {scope.of}"
    return f"{keys} from {scope.from_on.isoformat()} on"


def _describe_partitions(scope: Partitions) -> str:
    if scope.count is not None:
        shown = _cut(scope.names, scope.count, COUNTED_NAMES)
        built = f"{scope.count:,} partition{'' if scope.count == 1 else 's'}" + (
            f" ({shown})" if shown else ""
        )
        return built + (f"; {scope.waiting:,} not final yet" if scope.waiting else "")
    if not scope.names:
        return _describe_named("partitions", scope.where, scope.origins)
    names = _cut(scope.names, len(scope.names), _SHOWN_NAMES)
    return f"{names} and {_describe_named('partitions', None, scope.origins)}" if scope.origins else names


def _cut(names: tuple[str, ...], count: int, most: int) -> str:
    more = f" and {count - most:,} more" if count > most else ""
    return ", ".join(names[:most]) + more


def _describe_range(scope: Range) -> str:
    if scope.count is None:
        return describe_filter(find_filter(scope) or EVERY_ROW)
    counted = _counted(scope.count, scope.of)
    return f"{counted}, {scope.low} to {scope.high}" if scope.count else counted


def _describe_origin(origin: Origin) -> str:
    match origin:
        case ClockMove(before=before, now=now):
            return f"what changes as as_of moves from {before} to {now}"
        case Left(left=left):
            return f"{left}, left by an earlier batch"
        case Increment(dataset=dataset):
            parts = [*_describe_versions(origin), *_describe_coming(origin)]
            return " and ".join(parts) or f"all of `{dataset}`"


def _describe_versions(increment: Increment) -> list[str]:
    first, last = increment.first, increment.last
    if first is None:
        return []
    span = f"version {first}" if first == last else f"versions {first} to {last}"
    text = f"{span} of `{increment.dataset}`, about {increment.rows:,} rows"
    if not increment.invalidations:
        return [text]
    noun = "invalidation" if increment.invalidations == 1 else "invalidations"
    return [f"{text}, {increment.invalidations} {noun} ({', '.join(increment.reasons)})"]


def _describe_coming(increment: Increment) -> list[str]:
    return [f"what this run writes to `{increment.dataset}`"] if increment.coming else []
