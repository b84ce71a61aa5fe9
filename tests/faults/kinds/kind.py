"""What the fault suite has to know of a kind of node.

`KINDS` has one `Kind` for each. World, story, schedules and laws loop over them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from textwrap import indent
from typing import TYPE_CHECKING, Any

from hypothesis.strategies import SearchStrategy

from strandline.app.maintain import MaintainOutcome
from strandline.app.run import RunOutcome
from strandline.lake.work import Prepared
from tests.faults.plain_work import Work

if TYPE_CHECKING:
    from tests.faults.evidence import Evidence
    from tests.faults.world import World

Switches = Mapping[str, Any]
Act = Callable[["World", str], RunOutcome | MaintainOutcome | None]
"""What a process does until it ends, or is killed at the failpoints that are asked for."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stream:
    """Lines of JSON in a folder's files, their source and the fact dataset that they are decoded into."""

    folder: str
    source: str
    dataset: str
    columns: Mapping[str, str]
    """By name: the type."""
    required: tuple[str, ...]
    """Columns that may not be NULL in a fact."""
    declared: str
    """What else the dataset declares."""
    key: tuple[str, ...] = ()
    """The key of its records. Empty for an event stream."""
    posted: bool = False
    """Each file is posted, with its number as the key, to an HTTP source."""

    @property
    def project(self) -> Mapping[str, str]:
        columns = ", ".join(
            f"{name}: {name}" if type_ == "string" else f"{name}: {{path: {name}, type: {type_}}}"
            for name, type_ in self.columns.items()
        )
        files = f'{{files: "{self.folder}/*.jsonl"}}'
        dataset = f"from: {self.source}\ncolumns: {{{columns}}}\n{self.declared}"
        return {
            "sources": f"{self.source}: {'{http: {}}' if self.posted else files}",
            "datasets": f"{self.dataset}:\n{indent(dataset, '  ')}",
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step of the story: `before` is what the world does, `act` what a process does about it."""

    name: str
    before: Callable[["World"], None] = lambda _: None
    act: Act = lambda world, fail: world.run(fail=fail)
    only_long: bool = False
    """Left out of the short story, which is told on Spark."""
    told_with: str = ""
    """The earlier step of the short story that this one is told with. One process deals with both."""
    exit_code: int = 0
    """What the process ends with if nothing happens to it."""
    leaves_work: bool = False
    """The process leaves work to the next one, because it was told to."""
    many_keys: bool = False
    """On Spark, as if many keys changed. They are then described by their rows and not named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """Something that a schedule may choose. `do` gets the world and a value drawn from each of `drawn`."""

    do: Callable[..., object]
    drawn: Mapping[str, SearchStrategy[Any]] = field(default_factory=dict)


def _declare_nothing(switches: Switches) -> Mapping[str, str]:
    return {}


def _do_nothing(world: "World") -> None:
    """Most kinds need no data of their own: they read what other kinds bring."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Every kind has a `name`, a `prepare` and a `check`.

    The other fields are what the kind adds to the world that all kinds share.
    """

    name: str
    """As the engine names it."""
    prepare: Callable[[Work], Prepared]
    """The plain worker: what a task will write, in plain Python over rows."""
    check: Callable[["Evidence"], None]
    """The oracle: what readers see of this kind's datasets is what plain Python expects.

    It shares nothing with the engine.
    """

    streams: tuple[Stream, ...] = ()
    """What arrives from outside for this kind. Each brings a source, facts and a quarantine."""
    switches: Switches = field(default_factory=dict)
    """What users may change in this kind's piece of the project, as it is at first."""
    project: Callable[[Switches], Mapping[str, str]] = _declare_nothing
    """By section of the project file: this kind's piece of it."""
    files: Mapping[str, str] = field(default_factory=dict)
    """By name: the text of files beside the project file."""
    begin: Callable[["World"], None] = _do_nothing
    """Sends what is there before the first run."""
    ground: Callable[["World"], None] = _do_nothing
    """Sends what schedules find there as well."""

    story: tuple[Step, ...] = ()
    after_cleaning: tuple[Step, ...] = ()
    """Steps of the story after `maintain`."""
    happenings: tuple[Happening, ...] = ()
    """What may happen to this kind in a schedule, as `do(world, **drawn)`."""
    requests: tuple[Happening, ...] = ()
    """What people may ask for, as `do(world, fail, **drawn)`. It may be refused."""
    news: tuple[Callable[["World"], None], ...] = ()
    """What may arrive while a process stands still."""
    backfills: tuple[str, ...] = ()
    """Names that people may ask to backfill."""
    selections: tuple[str, ...] = ()
    """Parts of the project that another dispatcher may run."""


def without_data(kind: Kind) -> Kind:
    """What a kind needs where it only works on the data that other kinds bring."""
    return Kind(name=kind.name, prepare=kind.prepare, check=kind.check)
