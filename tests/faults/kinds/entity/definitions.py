"""The definition that each column of a room has, as its commits say, and columns that are held."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from strandline.lake.log import LogEntry
from tests.faults.evidence import Evidence, require
from tests.faults.plain_work import live

from .data import ROOM

_KEPT = " kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class Definitions:
    """What the last commit says of each column."""

    evidence: Evidence
    by_column: Mapping[str, str]

    @property
    def held(self) -> set[str]:
        """The columns that miss what has arrived."""
        return {name for name, text in self.by_column.items() if text.endswith(_KEPT)}

    def least_of(self, column: str) -> int:
        """The bound in the definition that a column has."""
        return int(self.evidence.world.configured[self.by_column[column].removesuffix(_KEPT)]["least"])


def read_definitions(evidence: Evidence) -> Definitions:
    entry = evidence.last_computed(ROOM)
    assert entry is not None
    return Definitions(evidence=evidence, by_column=_columns_in(entry))


def _columns_in(entry: LogEntry) -> Mapping[str, str]:
    assert entry.metadata is not None
    word = "variable "
    parts = entry.metadata.config.parts.items()
    return {part.removeprefix(word): text for part, text in parts if part.startswith(word)}


def check_held(evidence: Evidence) -> None:
    """A column that is held stays as it was, commit by commit, and is NULL in whoever is new."""
    for entry in evidence.entries(ROOM):
        if entry.metadata is None or not entry.metadata.inputs:
            continue
        onto = entry.metadata.onto
        if onto < evidence.readable_from(ROOM):
            continue
        held = {name for name, text in _columns_in(entry).items() if text.endswith(_KEPT)}
        before = {row[ROOM]: row for row in live(evidence.rows(ROOM, onto))} if held else {}
        for row in live(evidence.rows(ROOM, entry.version)) if held else ():
            kept: Mapping[str, Any] = before.get(row[ROOM], {})
            differ = {name: row[name] for name in held if row.get(name) != kept.get(name)}
            require(not differ, "L2 a column that is held stays as it was", row, kept, differ)


def check_rest(evidence: Evidence, definitions: Definitions) -> None:
    """At rest a column has the definition that is declared, or it is held. No other column is there."""
    declared = evidence.world.project.get(ROOM).config.parts
    stale = {
        name
        for name, text in definitions.by_column.items()
        if text.removesuffix(_KEPT) != declared.get(f"variable {name}")
    }
    told = {part.removeprefix("variable ") for held in evidence.world.plan().stale for part in held.changed}
    require(stale == told, "L13 what is stale is told", stale, told)
    missing = {part for part in declared if part.startswith("variable ")} - {
        f"variable {name}" for name in definitions.by_column
    }
    require(not missing, "L2 every variable is there", missing)
