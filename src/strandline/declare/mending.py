"""Mends an entry with wrong keys or values as far as possible, so that one mistake does not hide another.

A misspelt word is read as the nearest valid one. A value that cannot be understood is left out. Mistakes that
would only follow from that are not reported (`Section.follow_ups`).
"""

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import ErrorDetails

from strandline.model.report import find_nearest

from .allowed_keys import JsonObject, known_keys
from .section import Section
from .yaml_lines import DataPath


@dataclass(slots=True)
class Mending:
    """An entry of the project file while it is mended. The document itself does not change."""

    path: DataPath
    value: Any
    schema: JsonObject
    """The JSON Schema of the project file."""
    section: Section | None = None
    """None for the part of the file outside the sections."""
    lost: set[str] = field(default_factory=set)
    """Keys of the entry under which something was left out."""
    aliases: dict[DataPath, DataPath] = field(default_factory=dict)
    """By path as it is read: the path as it is written."""
    left_out: set[DataPath] = field(default_factory=set)
    beyond: bool = False
    """The entry cannot be mended further and is set aside."""

    @classmethod
    def of(cls, path: DataPath, value: object, schema: JsonObject, section: Section | None) -> "Mending":
        return cls(path=path, value=deepcopy(value), schema=schema, section=section)

    @property
    def follow_ups(self) -> frozenset[str]:
        """Slugs of mistakes that would only follow from values that were left out."""
        follow_ups = self.section.follow_ups if self.section else {}
        return frozenset(slug for key in self.lost for slug in follow_ups.get(key, ()))

    def rename_keys(self, wrong: Iterable[DataPath]) -> None:
        """Read unknown keys as the nearest known ones.

        A key is left out if it is near none, near one that exists already, or known but not beside others.
        """
        for place in wrong:
            mapping, key = self._at(place[:-1]), place[-1]
            nearest = find_nearest(str(key), known_keys(self.schema, (*self.path, *place[:-1])))
            value = mapping.pop(key)
            if nearest is not None and nearest != key and nearest not in mapping:
                mapping[nearest] = value
                self.aliases[(*self.path, *place[:-1], nearest)] = (*self.path, *place)

    def mend(self, place: DataPath, detail: ErrorDetails, words: Iterable[str]) -> None:
        """Replace a wrong value by the one that was probably meant, or leave it out.

        `words` are the allowed values, if they are a list of words.
        """
        offending = detail["input"]
        nearest = find_nearest(str(offending), words)
        if not place:
            self.beyond = True
        elif not self._has(place[:-1]):
            return  # the value that contains it was left out
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

    def _find_stand_in(self, place: DataPath) -> object | None:
        """A value for a missing name, source or key, so that the rest of the entry can be checked."""
        if self.section is None:
            return "unnamed" if place == ("project",) else None
        return self.section.stand_in(self.value, place)

    def _leave_out(self, place: DataPath) -> None:
        if self.section and (replacement := self.section.unreadable(place)) is not None:
            where, value = replacement
            self._at(where[:-1])[where[-1]] = value
            return
        self.lost.add(str(place[0]))
        self.left_out.add(place)
        around, step = self._at(place[:-1]), place[-1]
        if isinstance(around, dict):
            around.pop(step, None)
        elif isinstance(step, int) and step < len(around):
            del around[step]

    def _has(self, place: DataPath) -> bool:
        value = self.value
        for step in place:
            if not (
                step in value
                if isinstance(value, dict)
                else isinstance(step, int) and isinstance(value, list) and step < len(value)
            ):
                return False
            value = value[step]
        return isinstance(value, dict | list)

    def _at(self, place: DataPath) -> Any:
        value = self.value
        for step in place:
            value = value[step]
        return value
