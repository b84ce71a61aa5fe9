"""Everything that the engine maintains is a node.

A node has inputs, one output dataset, and a relation that maps a change of an input to the output.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from .endpoints import Endpoint
from .kind import Definition, NodeKind
from .project import Calendar, Settings
from .publishing import RowKey
from .timeline import DATE
from .traits import Part, Traits


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRows:
    """Each new row of the input gives rows of the output, which are appended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class By:
    """The input contains the output's key. `columns` are the input's columns, in the order of the key."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Via:
    """The key is looked up in another input of the same node, at its old and its new version."""

    input: str
    on: tuple[tuple[str, str], ...]
    """(column here, column there)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """Read whole. A change widens the task to everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """Read whole. A change makes the published rows stale and touches nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """The node's worker finds the rows that look the input up. A change touches those rows and no others.

    `columns` are the input's columns by which it is looked up.
    """

    columns: tuple[str, ...]


Relation = NewRows | By | Via | Whole | Lookup | Matched


EVERY_COLUMN = "*"
"""In a set of columns that a node reads, or that changed: every column of the input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One dataset that a node reads.

    `name` is its name in the user's code, `dataset` the node that maintains it. They differ only for event
    streams: `trades` is the table `trades_facts`.
    """

    name: str
    dataset: str
    relation: Relation
    proved: bool = False
    """True if the relation was proved from the SQL, not declared."""
    reads: frozenset[str] = frozenset({EVERY_COLUMN})
    """Words that may name the columns that are read. `*` means every column that is not metadata."""
    ranged: tuple[str, ...] = ()
    """Columns by whose ranges it is read. Its table keeps their statistics, so that files can be skipped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConfig:
    """An explicit, versioned list of what a node's rows depend on.

    Each part is a short digest, so that a message can name what changed.
    """

    version: int = 1
    parts: Mapping[str, str]
    """The digest of each declared part. Defaults are left out."""
    freezing: frozenset[str] = frozenset()
    """The parts whose change freezes the node instead of making it stale."""
    hash: str
    """The hash of version and parts: 16 hex digits, stored in each derived row as `_config`.

    See `hashing`.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """`name` is the output dataset's name."""

    name: str
    inputs: tuple[Input, ...]
    definition: Definition
    config: NodeConfig
    traits: Traits
    columns: tuple[str, ...] = ()
    """Its columns in declared order. Empty if the declaration does not list all of them."""

    def in_order(self, columns: Iterable[str]) -> list[str]:
        """A table's columns as users see them: in declared order, then undeclared ones in the table's order.

        The table's order differs: a column that is inserted into a declaration is the last one of the table.
        """
        present = list(columns)
        return [c for c in self.columns if c in present] + [c for c in present if c not in self.columns]

    @property
    def kind(self) -> NodeKind:
        """It is stored in the catalog, printed by verbs, and the key of the table of workers.

        Code that needs to know how a node behaves reads its traits.
        """
        return self.definition.kind

    @property
    def key(self) -> tuple[str, ...]:
        """The columns whose hash is `_key`. Empty for tables without one."""
        return self.traits.key

    def get_input(self, name: str) -> Input:
        return next(i for i in self.inputs if i.name == name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A checked project. Its nodes are ordered, inputs before readers."""

    name: str
    folder: str
    calendar: Calendar
    settings: Settings
    nodes: tuple[Node, ...]
    names: Mapping[str, tuple[str, ...]]
    """By NAME on the command line: the nodes that it means. A fact dataset's name means three."""
    tables: Mapping[str, str]
    """By a dataset's name in SQL: the node that maintains it (`trades` -> `trades_facts`)."""
    declared: Mapping[str, int]
    """By what entries of the project file are called: their number, in the order of its sections."""
    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)
    """By name: where webhooks are sent."""
    row_keys: Mapping[str, RowKey] = field(default_factory=dict)
    """By a dataset's name in SQL: the columns that name its rows. Without those whose rows nothing names."""

    def get(self, name: str) -> Node:
        return self._by_name()[name]

    def find(self, name: str) -> Node | None:
        return self._by_name().get(name)

    @property
    def fact_datasets(self) -> tuple[str, ...]:
        """The names of the fact datasets as people type them, for messages."""
        return tuple(sorted({node.traits.facts.name for node in self.nodes if node.traits.facts}))

    @property
    def parts(self) -> dict[str, tuple[Node, Part]]:
        """By name: the datasets beside an output, with the node that maintains them."""
        return {part.name: (node, part) for node in self.nodes for part in node.traits.parts}

    @property
    def timelines(self) -> dict[str, Node]:
        """By name of a timeline: the node of its last output."""
        folded = ((node, node.traits.folding) for node in self.nodes)
        return {folding.name: node for node, folding in folded if folding and node.name == folding.last}

    @property
    def readable(self) -> dict[str, str]:
        """By a name that `query` knows: the node that maintains it."""
        return {**self.tables, **{name: node.name for name, (node, _) in self.parts.items()}}

    def readers_of(self, name: str) -> Iterator[Node]:
        return (node for node in self.nodes if any(i.dataset == name for i in node.inputs))

    def published_to(self, name: str) -> tuple[str, ...]:
        """The change logs and triggers that are declared on a dataset."""
        return tuple(node.name for node in self.nodes if node.traits.publishes == name)

    def indexed(self, name: str) -> tuple[str, ...]:
        """The columns by whose ranges a dataset is read. Their statistics allow files to be skipped."""
        node = self.get(name)
        columns = [node.traits.range_column] if node.traits.range_column else []
        columns += [DATE] if node.traits.partitioned else []
        for reader in self.readers_of(name):
            for read in reader.inputs:
                if reader.traits.range_column and read.dataset == name and isinstance(read.relation, By):
                    columns.append(read.relation.columns[-1])
                columns += read.ranged if read.dataset == name else ()
        return tuple(dict.fromkeys(columns))

    def windowed(self, name: str) -> tuple[str, ...]:
        """The columns that readers compare with values that move with `as_of`."""
        read = (i for reader in self.readers_of(name) for i in reader.inputs if i.dataset == name)
        return tuple(dict.fromkeys(column for i in read for column in i.ranged))

    def _by_name(self) -> dict[str, Node]:
        return {node.name: node for node in self.nodes}
