"""What a kind of node is: a class of definitions.

The set of kinds is open, so there is no list of them here.
"""

from typing import ClassVar, NewType, Protocol

NodeKind = NewType("NodeKind", str)
"""The word for a kind, in the catalog and in what verbs print. Each definition class has its own."""


class Definition(Protocol):
    """What a node was declared to be.

    Each kind has a frozen dataclass of its own, which only the modules of that kind name.
    """

    kind: ClassVar[NodeKind]
