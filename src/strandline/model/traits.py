"""What the engine needs to know about a node of any kind. `declare` fills it in; all others read it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from .accumulation import Accumulation
from .columns import Role, TimeUnit
from .own_clock import OwnClock, WatchedBorder
from .project import Partitioning
from .timeline import BusinessDates


class Writing(StrEnum):
    """How a table is written."""

    RECEIVES = "receives"
    """Rows come from outside and are appended unchanged. The node has no inputs."""
    APPENDS = "appends"
    """Each new row of the input gives rows, which are appended."""
    INSERTS = "inserts"
    """Rows whose unique key is new are inserted. Published rows stay."""
    REPLACES = "replaces"
    """The rows of a scope are replaced by the rows computed for it now."""


class OnClock(StrEnum):
    """What must be computed again when `as_of` moves."""

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
    """Where the facts about a key are stored, for nodes that are decoded from a source."""

    name: str
    """The fact dataset, as a person types it."""
    key: tuple[str, ...]
    """The columns that identify a record or an event. Empty if nothing does."""
    order_by: tuple[str, ...]
    """The columns that rank the facts of a record set."""
    table: str
    quarantine: str
    snapshot: str
    """The table with the latest row per key. Empty for an event stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folding:
    """The timeline of which a node is an output, for verbs that tell about its keys."""

    name: str
    """The timeline, as a person types it."""
    key: tuple[str, ...]
    facts: str
    """The node whose live rows are folded."""
    date: str
    """The column of the facts that contains their date."""
    order_by: tuple[str, ...]
    fields: tuple[str, ...]
    history: str
    """The node with a row per key and date that has facts."""
    last: str
    """The node of its last output: the valuation, or the history if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A dataset beside an output: the rows of one role in its table. Only `query` reads it."""

    name: str
    role: Role
    columns: tuple[str, ...] = ()
    """Its columns that are columns of the table. Empty for all that users see."""
    details: tuple[str, ...] = ()
    """Its columns that are fields of `_head`. They come last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnOrigin:
    """How a change reaches one column of a node whose columns are declared one by one."""

    name: str
    part: str
    """The part of the configuration that defines it."""
    read_from: str
    """The dataset that it is computed from. Empty if it reads none."""
    why: str
    """How a change reaches it if it is computed again."""
    window: str = ""
    datasets: tuple[str, ...] = ()
    """The nodes whose rows it is computed from."""
    needs: tuple[str, ...] = ()
    """The columns that it is computed from."""
    dataset: str = ""
    """The node that maintains what it is computed from."""
    accumulation: Accumulation | None = None
    """Whether it can be added to instead. None if it reads nothing."""
    added: str = ""
    """How a change then reaches it."""
    borders: tuple[WatchedBorder, ...] = ()
    """The values that rows cross when `as_of` moves."""
    section: WatchedBorder | None = None
    """The older edge of its window: rows before it are not read. None if it reads all rows of an entity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """The defaults are those of a keyed job. A kind sets only what differs."""

    how: str
    """One sentence: how the node is kept up to date."""
    drawn_under: str = "jobs"
    """The heading of its column in the drawing of a status page."""
    drawn_from: int = 3
    """The leftmost column in which it is drawn: 0 for sources, 1 for facts, 2 for what is made of facts."""
    key: tuple[str, ...] = ()
    """The columns whose hash is `_key`."""
    key_is_named_by: str = ""
    """Why a changed input row always contains its key. Empty if that was declared or proved."""
    writing: Writing = Writing.REPLACES
    clock: OnClock = OnClock.NOTHING
    own_clock: OwnClock | None = None
    """Its `as_of` is that of the run, rounded down, and goes back only if a person says so."""
    business_dates: BusinessDates | None = None
    """The dates on which it is computed, each when it is due. Its clock does not go back."""
    answers_invalidations: bool = True
    """It can compute a scope that a filter names: that of an invalidation, or of `backfill --where`."""
    runs_code: bool = True
    """It runs users' code, which needs a Spark session of its own."""
    keeps_deleted: bool = False
    """`_deleted` rows stay in the table for ever."""
    may_lack_table: bool = False
    """It has no table while it has no rows."""
    recount: Recount = Recount.NEVER
    counts_offers: bool = False
    """Its counts account for every row that was offered (L10)."""
    whole: bool = False
    """Every change of an input recomputes everything."""
    refuses_widening: bool = False
    """A change that would widen a task to everything is an error."""
    partitioned: bool = False
    """Its table is partitioned by `_deleted` and `_role`: rows, heads and superseded rows lie apart."""
    partitioning: Partitioning | None = None
    range_column: str = ""
    """The column in which the values of a scope are close to each other."""
    together: tuple[str, ...] = ()
    """Columns of the key whose keys are always published in one commit."""
    parts: tuple[Part, ...] = ()
    """The datasets beside it."""
    scopes_are: str = "keys"
    """What the elements of a scope are, in words."""
    facts: Facts | None = None
    """Set for nodes that are decoded from a source, or folded from such a node."""
    folding: Folding | None = None
    """Set for both outputs of a timeline."""
    holds_refused: bool = False
    """It contains what its source offered and the declaration refused."""
    beside: str = ""
    """The node whose task it follows, to reuse what that task decoded."""
    declares_columns: bool = False
    """Parts of its configuration name single columns: a change in one affects only that column's readers."""
    origins: tuple[ColumnOrigin, ...] = ()
    """Its columns, if each has a definition of its own. See `definitions`."""
    row_parts: Mapping[str, str] = field(default_factory=dict)
    """By part of its configuration that says which rows exist: the node whose rows say so."""
    quiet_parts: tuple[str, ...] = ()
    """Parts of its configuration whose change leaves every published row as it is."""
    pattern: str = ""
    """The files that a source reads."""
    inbox: bool = False
    """What a source reads was posted, and waits in its inbox in the lake."""
    publishes: str = ""
    """The dataset whose changes it publishes. Set for change logs and triggers."""
    follows_declaration: bool = False
    """Its next task settles a change of its declaration: it is never stale, frozen or held."""
    time_unit: TimeUnit = TimeUnit.MILLISECONDS
    """The unit of the `_source_ts` of its rows, and of commit times where a row has none."""
    told_to: tuple[str, ...] | None = None
    """Its rows are events, and these endpoints are told about them. None: its rows are not events."""
    starts_empty: bool = False
    """A source whose table is created before its first file arrives."""

    @property
    def receives(self) -> bool:
        return self.writing is Writing.RECEIVES

    @property
    def computes(self) -> bool:
        """Code or a rule makes its columns and rows from its inputs, not a declaration of each column."""
        return not self.receives and self.facts is None

    @property
    def only_grows(self) -> bool:
        """Whether rows are only ever added. New rows are then read from the added files."""
        return self.writing is not Writing.REPLACES
