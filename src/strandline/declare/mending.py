"""An entry with wrong keys or values, mended as far as that can be guessed, so that one mistake hides no other.

A misspelt word is read as the nearest right one. A value that cannot be understood is left out, and what would only follow from that is
not reported (`FOLLOW_UPS`).
"""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import ErrorDetails

from strandline.model.report import find_nearest

from .allowed_keys import known_keys
from .yaml_lines import DataPath

_KINDS = ("record-set-without-ordering", "record-set-without-key", "ordering-without-key", "two-kinds")
_OF_RECORD_SETS = ("guard-without-record-set", "complete-without-record-set")
_CHILDREN = ("children-without-explode", "children-without-parent", "children-ranked-by-item")
_APPENDING = ("append-without-cursor", "append-without-key", "unused-key")
_RELATIONS = ("input-relation-unknown", "partition-needs-by", "by-is-not-the-key", "order-not-total")
_MODES = ("keyed-without-key", "cursor-without-column", "partition-without-column", "key-not-in-output")

FOLLOW_UPS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "sources": {"format": ("unknown-format",)},
    "datasets": {
        "columns": ("missing-key", "unknown-column", "item-without-explode", *_CHILDREN),
        "explode": ("item-without-explode", "parent-without-nesting", *_CHILDREN),
        "record_set": (*_KINDS, *_OF_RECORD_SETS, *_CHILDREN),
        "event_stream": (*_KINDS, *_OF_RECORD_SETS),
        "contract": (*_KINDS, *_OF_RECORD_SETS),
    },
    "jobs": {
        "incremental": (*_APPENDING, *_RELATIONS, *_MODES),
        "partition": (*_APPENDING, *_RELATIONS, *_MODES, "partition-size"),
        "update_strategy": _APPENDING,
        "sql": ("job-without-code", "sql-and-python"),
        "python": ("job-without-code", "sql-and-python"),
        "input_datasets": ("missing-key", "undeclared-input", "unknown-dataset", *_RELATIONS),
        "lookup_datasets": ("undeclared-input", *_RELATIONS),
        "config": ("unknown-parameter", "parameter-not-a-value", "final-after"),
    },
}
"""By section and key of an entry: the mistakes that may only follow from the key's value not being understood."""

UNKNOWN_INPUT = (*_RELATIONS, "key-not-in-output")
"""The same where the columns of an input are not known."""


def follow_ups(section: str, lost: Iterable[str]) -> frozenset[str]:
    """The slugs that say nothing new of an entry in which the values of some keys were not understood."""
    return frozenset(slug for key in lost for slug in FOLLOW_UPS.get(section, {}).get(key, ()))


@dataclass(slots=True)
class Mending:
    """An entry of the project file while it is mended. The document itself stays as it was written."""

    path: DataPath
    value: Any
    lost: set[str] = field(default_factory=set)
    """Keys of the entry under which something was left out."""
    aliases: dict[DataPath, DataPath] = field(default_factory=dict)
    """By path as it is read: the path as it is written."""
    left_out: set[DataPath] = field(default_factory=set)
    beyond: bool = False
    """Nothing more can be guessed: the entry is set aside."""

    @classmethod
    def of(cls, path: DataPath, value: object) -> "Mending":
        return cls(path=path, value=deepcopy(value))

    def rename_keys(self, wrong: Iterable[DataPath]) -> None:
        """Read unknown keys as the nearest known ones; leave out those that are near none, or near one that is there."""
        for place in wrong:
            mapping, key = self._at(place[:-1]), place[-1]
            nearest = find_nearest(str(key), known_keys((*self.path, *place[:-1])))
            value = mapping.pop(key)
            if nearest is not None and nearest not in mapping:
                mapping[nearest] = value
                self.aliases[(*self.path, *place[:-1], nearest)] = (*self.path, *place)

    def mend(self, place: DataPath, detail: ErrorDetails, words: Iterable[str]) -> None:
        """Put what was meant in place of a wrong value, or leave it out. `words`: what it may be, where that is a list of words."""
        offending = detail["input"]
        nearest = find_nearest(str(offending), words)
        if not place:
            self.beyond = True
        elif not self._has(place[:-1]):
            return  # what is around it was left out
        elif nearest is not None:
            self._at(place[:-1])[place[-1]] = nearest
        elif detail["type"] == "list_type" and isinstance(offending, str):
            self._at(place[:-1])[place[-1]] = [offending]
        elif detail["type"] == "missing":
            self._do_without(place)
        else:
            self._leave_out(place)

    def is_known_to_lack(self, place: DataPath) -> bool:
        """Whether a key is missing only because its value was left out."""
        return place in self.left_out

    def _do_without(self, place: DataPath) -> None:
        stand_in = self._find_stand_in(place)
        if stand_in is not None:
            self._at(place[:-1])[place[-1]] = stand_in
        elif len(place) > 1:
            self._leave_out(place[:-1])
        else:
            self.beyond = True

    def _find_stand_in(self, place: DataPath) -> str | list[str] | None:
        """What an entry may be called, taken from or keyed by, while the rest of it is checked."""
        match (*self.path[:1], *place):
            case ("jobs", "name"):
                return self._text("output_dataset")
            case ("jobs", "output_dataset"):
                return self._text("name")
            case ("datasets", "from"):
                return ""
            case ("datasets", "record_set", "key") if (
                isinstance(self.value.get("columns"), dict) and self.value["columns"]
            ):
                return [str(next(iter(self.value["columns"])))]
            case ("project",):
                return "unnamed"
            case _:
                return None

    def _text(self, key: str) -> str | None:
        value = self.value.get(key)
        return value if isinstance(value, str) else None

    def _leave_out(self, place: DataPath) -> None:
        if self.path[:1] == ("datasets",) and place[:1] == ("columns",) and len(place) > 1:
            self.value["columns"][place[1]] = {"sql": "NULL"}  # a column of no known type
            return
        self.lost.add(str(place[0]))
        self.left_out.add(place)
        around, step = self._at(place[:-1]), place[-1]
        if isinstance(around, dict):
            around.pop(step, None)
        elif isinstance(step, int) and step < len(around):
            del around[step]

    def _has(self, place: DataPath) -> bool:
        found = self.value
        for step in place:
            if not (
                step in found
                if isinstance(found, dict)
                else isinstance(step, int) and isinstance(found, list) and step < len(found)
            ):
                return False
            found = found[step]
        return isinstance(found, dict | list)

    def _at(self, place: DataPath) -> Any:
        found = self.value
        for step in place:
            found = found[step]
        return found
