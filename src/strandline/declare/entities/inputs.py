"""What kind of dataset a variable reads: facts, a snapshot of facts, or anything else."""

from dataclasses import dataclass

from strandline.declare.loading import Loading
from strandline.model.columns import SOURCE_TS

_FACTS = "_facts"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputKind:
    """What an entity needs to know of a dataset besides its columns."""

    facts: str = ""
    """The node with all its facts. Empty for a dataset that is not decoded from a source."""
    is_record_set: bool = False
    """Its rows are records: the newest fact of each key."""

    @property
    def is_stream(self) -> bool:
        """Its rows are facts, and nothing takes one back."""
        return bool(self.facts) and not self.is_record_set


def find_kind(name: str, loading: Loading) -> InputKind:
    """The kind of a dataset, by its name in the project file."""
    facts = name if name.endswith(_FACTS) else f"{name}{_FACTS}"
    if loading.tables.get(facts) != facts or name not in loading.tables:
        return InputKind()
    return InputKind(facts=facts, is_record_set=loading.tables[name] != facts)


def find_order(kind: InputKind, loading: Loading) -> tuple[str, ...]:
    """The columns that rank the rows of facts or of a record set. Nodes exist if nothing is wrong."""
    if not kind.facts:
        return ()
    node = next(node for node in loading.nodes if node.name == kind.facts)
    assert node.traits.facts is not None
    return node.traits.facts.order_by or (SOURCE_TS,)
