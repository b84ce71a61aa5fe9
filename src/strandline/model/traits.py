"""What the engine asks about a node, whatever its kind. `declare` fills it in; everyone else reads it."""

from dataclasses import dataclass
from enum import StrEnum

from .project import Partitioning


class Writing(StrEnum):
    """How a table is written."""

    RECEIVES = "receives"
    """Rows come from outside and are appended as they came. The node has no inputs."""
    APPENDS = "appends"
    """Each new row of the input gives rows, which are appended."""
    INSERTS = "inserts"
    """Rows whose unique key is new are inserted; what was published stays."""
    REPLACES = "replaces"
    """The rows of a scope are replaced by what the scope gives now."""


class OnClock(StrEnum):
    """What has to be computed again when `as_of` moves."""

    NOTHING = "nothing"
    EVERYTHING = "everything"
    SCOPE = "scope"


class Recount(StrEnum):
    """When the counts of a node start again from zero."""

    NEVER = "never"
    ON_OVERWRITE = "on_overwrite"
    WHEN_WHOLE = "when_whole"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Where the facts about a key are, for nodes that are decoded from a source."""

    name: str
    """The fact dataset, as a person types it."""
    key: tuple[str, ...]
    """The columns that tell one record, or one event, from another; empty where nothing does."""
    order_by: tuple[str, ...]
    """What ranks the facts of a record set."""
    table: str
    quarantine: str
    snapshot: str
    """The table with the latest row per key; empty for an event stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """The defaults are those of a keyed job. A kind says only what differs."""

    how: str
    """One sentence: how the node is kept up to date."""
    drawn_under: str = "jobs"
    """The heading of its column in the drawing of a status page."""
    drawn_from: int = 3
    """The leftmost column that it is drawn in: 0 for sources, 1 for facts, 2 for what is folded from facts."""
    key: tuple[str, ...] = ()
    """The columns that `_key` is a hash of."""
    key_is_named_by: str = ""
    """Why a changed input row names its key, where that is so by itself. Empty where it was declared or proved."""
    writing: Writing = Writing.REPLACES
    clock: OnClock = OnClock.NOTHING
    answers_invalidations: bool = True
    """It can compute the scopes that a filter names: that of an invalidation, or of `backfill --where`."""
    runs_code: bool = True
    """It runs users' code, which needs a Spark session of its own."""
    keeps_deleted: bool = False
    """`_deleted` rows stay in the table for good."""
    may_lack_table: bool = False
    """It has no table while it has no rows."""
    recount: Recount = Recount.NEVER
    counts_offers: bool = False
    """Its counts say what became of every row that was offered (L10)."""
    whole: bool = False
    """Every change of an input recomputes everything."""
    refuses_widening: bool = False
    """A change that would widen a task to everything is an error."""
    partitioning: Partitioning | None = None
    range_column: str = ""
    """The column in which its scopes lie beside each other."""
    scopes_are: str = "keys"
    """What a scope is a set of, in words."""
    facts: Facts | None = None
    """Set for nodes that are decoded from a source, or folded from what was."""
    holds_refused: bool = False
    """It holds what its source offered and the declaration refused."""
    beside: str = ""
    """The node whose task it follows, to reuse what that one decoded."""
    declares_columns: bool = False
    """Parts of its configuration name single columns, so that a change in one touches readers of that column alone."""
    quiet_parts: tuple[str, ...] = ()
    """Parts of its configuration whose change leaves every published row as it is."""
    pattern: str = ""
    """The files that a source reads."""
    starts_empty: bool = False
    """A source whose table is made before its first file comes."""

    @property
    def receives(self) -> bool:
        return self.writing is Writing.RECEIVES

    @property
    def computes(self) -> bool:
        """Its columns and rows follow from its inputs by code or a rule, not by a declaration of each column."""
        return not self.receives and self.facts is None

    @property
    def only_grows(self) -> bool:
        """Whether rows only ever come: what was added is then read from the files added."""
        return self.writing is not Writing.REPLACES
