"""What readers of a node may not read yet: rows or columns that are not of its current configuration."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Self

from strandline.model.columns import METADATA_COLUMNS
from strandline.model.definitions import column_of
from strandline.model.node import EVERY_COLUMN

EVERYTHING = frozenset({EVERY_COLUMN})


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsettled:
    """Columns that have values of an older configuration in some rows."""

    columns: frozenset[str]
    """`*`: any of them, or which rows exist."""
    why: str
    command: str
    """The command that settles it."""
    waits: bool = False
    """Nothing is of an older configuration: columns are not there yet, and a run fills them."""

    def read_with(self, reads: Collection[str]) -> Self | None:
        """What of it concerns a reader of these columns. None if nothing does."""
        return self if _meet(reads, self.columns) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsettledColumns:
    """The same for a node whose columns have a definition each. A reader is told of those that it reads.

    Columns are named by their part of the configuration.
    """

    node: str
    stale: tuple[str, ...]
    """They have another definition."""
    waiting: tuple[str, ...]
    """They are not there, because an input was never received."""
    absent: tuple[str, ...]
    """They are not there, and a run fills them."""
    rows_differ: bool
    """What says which rows exist has changed."""

    @property
    def columns(self) -> frozenset[str]:
        columns = frozenset(map(column_of, (*self.stale, *self.waiting, *self.absent)))
        return columns | EVERYTHING if self.rows_differ else columns

    @property
    def why(self) -> str:
        told = []
        if self.stale:
            told.append(f"which is stale ({_list(self.stale)} changed)")
        if self.waiting:
            several = len(self.waiting) > 1
            waits = "wait for their inputs" if several else "waits for its input"
            told.append(f"in which {_list(self.waiting)} {waits}")
        return " and ".join(told) or "of which the configuration changed"

    @property
    def command(self) -> str:
        told = []
        if self.stale:
            told.append(f"`strandline backfill {self.node} --stale` settles it")
        if self.waiting:
            several = len(self.waiting) > 1
            told.append(f"the run that receives {'them fills them' if several else 'it fills it'}")
        return "; ".join(told) or "a run applies it"

    @property
    def waits(self) -> bool:
        return not self.stale

    def read_with(self, reads: Collection[str]) -> Self | None:
        def read(parts: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(part for part in parts if _meet(reads, {column_of(part)}))

        concerned = replace(
            self, stale=read(self.stale), waiting=read(self.waiting), absent=read(self.absent)
        )
        return concerned if concerned.columns else None


def _meet(reads: Collection[str], columns: Collection[str]) -> bool:
    """Whether a reader of some columns reads one of others. `*` among them stands for all."""
    if EVERY_COLUMN in columns or not set(columns).isdisjoint(reads):
        return True
    return EVERY_COLUMN in reads and not set(METADATA_COLUMNS).issuperset(columns)


def _list(parts: tuple[str, ...]) -> str:
    return ", ".join(f"`{part}`" for part in parts)
