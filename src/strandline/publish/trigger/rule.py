"""What a trigger watches, with the types that its dataset has, and what its commits count."""

from collections.abc import Iterable

from strandline.lake.log import LogEntry
from strandline.lake.table import get_table
from strandline.lake.work import Work
from strandline.model.columns import STRING, ColumnType
from strandline.model.condition_checks import check_condition
from strandline.model.conditions import Condition, find_columns
from strandline.model.errors import CallError, WorkError
from strandline.model.publishing import Trigger
from strandline.model.typed_values import find_stored_type
from strandline.publish.trigger_fold import TriggerRule

REVISIONS = "revisions"
"""The count of a commit that starts a new revision. Their sum is the revision."""
COMPARED = "compared"
"""The count of a commit that compared the state with the rows as they are."""


def trigger_of(work: Work) -> Trigger:
    assert isinstance(work.node.definition, Trigger)
    return work.node.definition


def make_rule(work: Work, trigger: Trigger, version: int) -> tuple[TriggerRule, dict[str, ColumnType]]:
    """The conditions with values of the types that the dataset has, and the types of their columns."""
    table = get_table(work.lake.table(trigger.dataset), version)
    columns = dict(table.columns)

    def check(condition: Condition, word: str) -> Condition:
        try:
            return check_condition(condition, columns)
        except CallError as error:
            raise WorkError(
                f"{trigger.place}: `{word}` of the trigger `{trigger.name}`: {error.what}",
                remedy=error.remedy,
                slug=error.slug,
            ) from error

    fire = check(trigger.fire, "fire")
    clear = check(trigger.clear, "clear") if trigger.clear is not None else None
    used = find_columns(fire) | (find_columns(clear) if clear is not None else frozenset())
    kinds = {name: find_stored_type(columns[name]) or STRING for name in used}
    return TriggerRule(name=trigger.name, fire=fire, clear=clear), kinds


def find_told(entries: Iterable[LogEntry], name: str) -> frozenset[int]:
    return frozenset(e.version for e in entries if e.metadata and name in e.metadata.published_to)
