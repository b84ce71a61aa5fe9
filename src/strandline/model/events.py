"""Events of triggers: their ids, and the body that tells a receiver about one.

An id is derived, so that the same change has the same id after every restart, replay and rebuild (L12).
"""

import hashlib
import json
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum

from .typed_values import as_utc

_DIGITS = 32


class EventType(StrEnum):
    MATCH = "MATCH"
    UNMATCH = "UNMATCH"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event of a trigger: its state for a key changed."""

    trigger: str
    event_type: EventType
    key: str
    """The text of the row's key (`key_text`)."""
    source_timestamp: int
    """When the change happened, in the unit of the dataset's source."""
    n: int
    """How many events of this trigger, key and timestamp were recorded up to this one."""
    data: str
    """The row as JSON. Of a row that was deleted or left a view, the last one."""
    version: int
    position: int
    """The change that caused it: the table's version, and the place in that version's changes."""
    revision: int
    quiet: bool
    """It sets the state of the key, and nobody is told."""

    @property
    def event_id(self) -> str:
        return make_event_id(self.trigger, self.key, self.source_timestamp, self.n)


EVENT_COLUMNS = tuple(field.name for field in fields(Event) if field.name != "trigger")
"""What the table of a trigger records of an event, besides its id and when it was recorded."""


def make_event_id(trigger: str, key: str, source_timestamp: int, n: int = 1) -> str:
    """The first 32 hex digits of a SHA-256 hash.

    Neither a trigger's name nor a key's text contains a `:`, so different events hash different texts.
    """
    counted = f":{n}" if n > 1 else ""
    text = f"{trigger}:{key}:{source_timestamp}{counted}"
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def make_body(event: Event, recorded_at: datetime) -> bytes:
    """The body of a webhook: the same bytes at every attempt and replay."""
    at = as_utc(recorded_at).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
    head = {
        "event_id": event.event_id,
        "event_type": str(event.event_type),
        "trigger_name": event.trigger,
        "timestamp": at,
        "source_timestamp": str(event.source_timestamp),
    }
    shown = json.dumps(head, ensure_ascii=False, separators=(",", ":"))
    # The row is inserted as it was recorded: reading it and writing it again might change its numbers.
    return f'{shown[:-1]},"data":{event.data}}}'.encode()
