"""Everything the engine maintains is a node: inputs, one output dataset, and how a change in an input maps to it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from .kind import Definition, NodeKind
from .project import Calendar, Settings
from .traits import Traits


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRows:
    """Each new row of the input gives rows of the output, which are appended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class By:
    """The input has the output's key: for each key column, in the key's order, the input's column."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Via:
    """The key is found through another input of the same node, at its old and its new version."""

    input: str
    on: tuple[tuple[str, str], ...]
    """(column here, column there)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """Read whole; a change widens the task to everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """Read whole; a change makes what is written stale and touches nothing."""


Relation = NewRows | By | Via | Whole | Lookup


EVERY_COLUMN = "*"
"""Among the columns that a node reads, or that changed: all that an input has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One dataset a node reads: `name` is what the user's code calls it, `dataset` the node that maintains it.

    They differ for event streams alone: `trades` is the table `trades_facts`.
    """

    name: str
    dataset: str
    relation: Relation
    proved: bool = False
    """True when the relation was proved from the SQL and not declared."""
    reads: frozenset[str] = frozenset({EVERY_COLUMN})
    """Words that may name the columns it reads; with `*` it reads every column that is not metadata."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConfig:
    """An explicit, versioned list of what a node's rows depend on, as short digests, so that a change can be named."""

    version: int = 1
    parts: Mapping[str, str]
    """What was declared -> digest of it. Defaults are left out."""
    freezing: frozenset[str] = frozenset()
    """The parts whose change freezes the node instead of making it stale."""
    hash: str
    """Over version and parts; 16 hex digits, carried by each derived row as `_config`. See `hashing`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """`name` is the output dataset's name."""

    name: str
    inputs: tuple[Input, ...]
    definition: Definition
    config: NodeConfig
    traits: Traits
    columns: tuple[str, ...] = ()
    """Its columns in the order they are declared; empty where the declaration does not say all of them."""

    def in_order(self, columns: Iterable[str]) -> list[str]:
        """A table's columns as users see them: in declared order, then those that no declaration names, in the table's.

        A column that is added to a declaration in the middle stands last in the table.
        """
        present = list(columns)
        return [c for c in self.columns if c in present] + [c for c in present if c not in self.columns]

    @property
    def kind(self) -> NodeKind:
        """Stored in the catalog, printed by verbs, and the key of the table of workers.

        Code that wants to know how a node behaves asks its traits.
        """
        return self.definition.kind

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that `_key` is a hash of; empty for tables without one."""
        return self.traits.key

    def get_input(self, name: str) -> Input:
        return next(i for i in self.inputs if i.name == name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A checked project: its nodes, inputs before readers."""

    name: str
    folder: str
    calendar: Calendar
    settings: Settings
    nodes: tuple[Node, ...]
    names: Mapping[str, tuple[str, ...]]
    """What NAME on the command line may be -> the nodes it means (a job's name, a fact dataset's three)."""
    tables: Mapping[str, str]
    """What SQL may call a dataset -> the node that maintains it (`trades` -> `trades_facts`)."""
    declared: Mapping[str, int]
    """What entries of the project file are called -> how many there are, in the order of its sections."""

    def get(self, name: str) -> Node:
        return self._by_name()[name]

    def find(self, name: str) -> Node | None:
        return self._by_name().get(name)

    @property
    def fact_datasets(self) -> tuple[str, ...]:
        """By the names that people give them, for messages."""
        return tuple(sorted({node.traits.facts.name for node in self.nodes if node.traits.facts}))

    def readers_of(self, name: str) -> Iterator[Node]:
        return (node for node in self.nodes if any(i.dataset == name for i in node.inputs))

    def indexed(self, name: str) -> tuple[str, ...]:
        """The columns of a dataset by whose ranges it is read: statistics of them let files be skipped."""
        node = self.get(name)
        columns = [node.traits.range_column] if node.traits.range_column else []
        for reader in self.readers_of(name):
            for given in reader.inputs:
                if reader.traits.range_column and given.dataset == name and isinstance(given.relation, By):
                    columns.append(given.relation.columns[-1])
        return tuple(dict.fromkeys(columns))

    def _by_name(self) -> dict[str, Node]:
        return {node.name: node for node in self.nodes}
