"""What a job may not read yet: input rows of an older configuration, or of several.

A job that reads such rows would publish values that no configuration gives. It is held, with everything that
reads it, until a backfill has settled its input. A change in a column that a job does not read does not hold
it.
"""

from dataclasses import replace

from strandline.model.catalog_records import NodeRecord
from strandline.model.columns import SOURCE_AT, SOURCE_TS
from strandline.model.commits import TableState
from strandline.model.hashing import compare_configs
from strandline.model.node import Input, Node, NodeConfig
from strandline.model.plan import Cause, Held, Strategy, Task
from strandline.model.scope import find_partitions

from .draft import Draft, pending
from .request import Observed
from .unsettled import EVERYTHING, Unsettled, UnsettledColumns

_OF_A_COLUMN = ("column", "type", "cast")


def find_hold(node: Node, draft: Draft) -> Held | None:
    """Why a node cannot be computed yet. Snapshots follow their facts, and are as settled as those."""
    if not node.traits.computes or node.traits.follows_declaration:
        return None  # what is published shows its dataset as it is
    reasons: dict[str, str] = {}
    for input_ in node.inputs:
        if unsettled := _find_unsettled_of(input_, draft):
            reasons[input_.dataset] = f"it reads `{input_.name}`, {unsettled.why}; {unsettled.command}"
    return Held(node=node.name, reason="; ".join(reasons.values()), changed=()) if reasons else None


def find_unsettled(
    node: Node,
    record: NodeRecord | None,
    own: TableState | None,
    config: NodeConfig,
    held: Held | None,
    *,
    frozen: bool,
) -> Unsettled | None:
    """What readers must not mix: the columns in which some rows are of an older configuration."""
    if record is None or node.traits.receives:
        return None
    if unknown := _find_unrecorded(record, own, config):
        why = f"whose version {unknown} is of another configuration and not in the catalog yet"
        return Unsettled(columns=EVERYTHING, why=why, command="this run records it")
    if held is None:
        return None
    changed = held.changed
    if frozen:
        changed = tuple(
            sorted({part for written in record.configs for part in compare_configs(written.parts, config)[0]})
        )
    columns = (
        EVERYTHING
        if not changed
        else _columns_of(node, tuple(part for part in changed if not _fills_nothing(part, record, config)))
    )
    if not columns:
        return None
    parts = ", ".join(f"`{part}`" for part in changed) or "its configuration"
    why = f"which is {'frozen' if frozen else 'stale'} ({parts} changed)"
    command = f"`strandline backfill {_short_name(node)} {'--all' if frozen else '--stale'}` settles it"
    return Unsettled(columns=columns, why=why, command=command)


def of_held(held: Held, draft: Draft, node: Node) -> Unsettled:
    """A held node is behind its inputs by an unknown amount. What joins it with others waits with it."""
    above = (_find_unsettled_of(input_, draft) for input_ in node.inputs)
    commands = dict.fromkeys(unsettled.command for unsettled in above if unsettled)
    if waits_only(node, draft):
        why = "which waits itself"
        return Unsettled(columns=EVERYTHING, why=why, command=" and ".join(commands), waits=True)
    return Unsettled(columns=EVERYTHING, why="which is held itself", command=" and ".join(commands))


def waits_only(node: Node, draft: Draft) -> bool:
    """Whether a node that cannot be computed yet only waits for columns that a run fills."""
    above = (_find_unsettled_of(input_, draft) for input_ in node.inputs)
    return all(unsettled is None or unsettled.waits for unsettled in above)


def settles(node: Node, task: Task | None, observed: Observed, draft: Draft) -> bool:
    """Whether every row is of the current configuration once the task is done.

    A task that may find nothing to do settles nothing.
    """
    if task is None or task.strategy is not Strategy.FULL or task.refuses:
        return False
    if task.cause is not Cause.NEW_INPUT or task.overwrite:
        return True
    for input_ in (i for i in task.inputs if i.changes):
        table, upstream = observed.tables.get(input_.dataset), draft.tasks.get(input_.dataset)
        if input_.after is None or (upstream is not None and upstream.overwrite):
            return True
        if table is not None and pending(node, table, input_.after):
            return True
    return False


def without_partitions(stale: Held, task: Task | None) -> Held | None:
    """What stays stale of a node with partitions, some of which a task builds again."""
    if task is None or not stale.partitions:
        return stale
    rebuilt = find_partitions(task.scope)
    left = tuple(p for p in stale.partitions if p not in rebuilt)
    return replace(stale, partitions=left) if left else None


def _find_unsettled_of(input_: Input, draft: Draft) -> Unsettled | UnsettledColumns | None:
    """What of an input is not settled, and is read."""
    unsettled = draft.unsettled.get(input_.dataset)
    return unsettled.read_with(input_.reads) if unsettled else None


def _columns_of(node: Node, changed: tuple[str, ...]) -> frozenset[str]:
    columns: set[str] = set()
    for part in changed:
        word, _, name = part.partition(" ")
        if word in node.traits.quiet_parts:
            continue
        if node.traits.declares_columns and word in _OF_A_COLUMN:
            columns.add(name)
        elif node.traits.declares_columns and part == "source_at":
            columns |= {SOURCE_AT, SOURCE_TS}
        else:
            return EVERYTHING
    return frozenset(columns)


def _fills_nothing(part: str, record: NodeRecord, config: NodeConfig) -> bool:
    """Whether a default was added to a column in which a fact without a value is refused.

    No existing row has that default.
    """
    others = [written.parts[part] for written in record.configs if part in written.parts]
    return part.startswith("default ") and all(other == config.parts.get(part) for other in others)


def _find_unrecorded(record: NodeRecord, own: TableState | None, config: NodeConfig) -> int | None:
    """A commit by another configuration that is in the table but not in the catalog.

    Which rows are whose is known once it is recorded.
    """
    if own is None or own.table_id != record.table_id:
        return None
    for commit in own.commits_after(record.table_version):
        metadata = commit.metadata
        if metadata and not metadata.operation.is_bare and metadata.config.hash not in ("", config.hash):
            return commit.version
    return None


def _short_name(node: Node) -> str:
    """What a person types: a fact dataset's own name means its facts, quarantine and snapshot together."""
    return node.traits.facts.name if node.traits.facts else node.name
