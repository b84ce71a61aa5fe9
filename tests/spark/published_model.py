"""A model of publishing in plain Python: what logs and triggers must say about states that were seen.

It shares nothing with the engine. A dataset is a dict from the key's text to its row. What a commit changed
is the difference of two such dicts.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

Row = dict[str, Any]
Rows = Mapping[str, Row]
Test = Callable[[Row], bool]


def key_of(values: Iterable[object]) -> str:
    """The key's text: values as in JSON, with `%`, `:` and `,` escaped, and NULL as `%00`."""
    return ",".join(_escape(value) for value in values)


def _escape(value: object) -> str:
    match value:
        case None:
            return "%00"
        case bool():
            text = "true" if value else "false"
        case Decimal():
            text = f"{value:f}"
        case datetime():
            text = value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        case date():
            text = value.isoformat()
        case _:
            text = str(value)
    return text.replace("%", "%25").replace(":", "%3A").replace(",", "%2C")


def show(value: object) -> object:
    """As JSON shows it."""
    if isinstance(value, Decimal | datetime | date):
        return _escape(value).replace("%3A", ":")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    operation: str
    key: str
    source_timestamp: int | None
    """None if only the engine knows it: the time of a commit."""
    row: Row | None
    old: Row | None
    told: frozenset[str]
    """The triggers that were declared when the commit was made."""

    @property
    def fields(self) -> list[str]:
        if self.row is None or self.old is None:
            return list(self.row or self.old or {})
        return [name for name in self.row if self.row[name] != self.old[name]]


def differences(
    before: Rows, after: Rows, times: Mapping[str, int] | None, told: frozenset[str]
) -> list[Change]:
    """The change of each key whose row differs, in the order of the keys' texts."""
    return [
        Change(
            operation="INSERT" if key not in before else "UPDATE" if key in after else "DELETE",
            key=key,
            source_timestamp=times.get(key) if times is not None else None,
            row=after.get(key),
            old=before.get(key),
            told=told,
        )
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    ]


@dataclass(kw_only=True)
class ModelTrigger:
    """Folds changes as they are handed to it. Its rule may be changed in between."""

    name: str
    fire: Test
    clear: Test | None
    is_on: dict[str, bool] = field(default_factory=dict)
    """By key: the state of this revision, as far as a change was seen."""
    events: list[tuple[str, str, Change]] = field(default_factory=list)
    """Type, key and change of every event that somebody is told about."""

    def change_rule(self, fire: Test, clear: Test | None) -> None:
        self.fire, self.clear = fire, clear
        self.is_on = {}

    def fold(self, changes: Iterable[Change]) -> None:
        for change in changes:
            fires = change.row is not None and self.fire(change.row)
            was_on = self.is_on.get(change.key, change.old is not None and self.fire(change.old))
            stays = (
                was_on and change.row is not None and self.clear is not None and not self.clear(change.row)
            )
            self.is_on[change.key] = fires or stays
            if self.is_on[change.key] != was_on and self.name in change.told:
                self.events.append(("MATCH" if fires else "UNMATCH", change.key, change))


def make_id(trigger: str, key: str, source_timestamp: int, n: int) -> str:
    text = f"{trigger}:{key}:{source_timestamp}" + (f":{n}" if n > 1 else "")
    return hashlib.sha256(text.encode()).hexdigest()[:32]
