"""Why increments cannot bring a node up to date: a gap in what it read or wrote, or a rewritten table."""

from dataclasses import dataclass

from strandline.model.catalog_records import NodeRecord
from strandline.model.commits import CommitSummary, Operation, TableState, find_foreign
from strandline.model.node import Node, NodeConfig
from strandline.model.plan import Cause, PlannedInput, Task
from strandline.model.traits import Writing

from .draft import Draft
from .request import Observed


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Why no increment can be read or written."""

    reason: str
    rewrite: bool
    """Whether the table is replaced together with its schema."""
    in_input: bool = False
    """Only what was read has the gap."""


def find_gap(node: Node, record: NodeRecord, own: TableState | None, observed: Observed) -> Gap | None:
    if own is not None and record.table_id and record.table_id != own.table_id:
        return Gap(reason="its table was deleted and recreated by someone else", rewrite=True)
    if own is not None and own.version < record.table_version:
        return Gap(
            reason=f"its table went back from version {record.table_version} to {own.version}", rewrite=True
        )
    if foreign := find_unknown(record, own):
        text = ", ".join(f"{c.version} ({c.operation})" for c in foreign)
        return Gap(
            reason=f"its table has commits that are not Strandline's: version {text}",
            rewrite=node.traits.writing is Writing.APPENDS,
        )
    if reason := _find_input_gap(node, record, observed):
        return Gap(reason=reason, rewrite=node.traits.writing is Writing.APPENDS, in_input=True)
    return None


def find_unknown(record: NodeRecord | None, own: TableState | None) -> tuple[CommitSummary, ...]:
    """What someone else wrote to a known table, past what the catalog contains of it."""
    if own is None or (record and record.table_id not in ("", own.table_id)):
        return ()
    return find_foreign(own.commits_after(record.table_version if record else -1))


def _find_input_gap(node: Node, record: NodeRecord, observed: Observed) -> str | None:
    for input_ in node.inputs:
        cursor, table = record.cursors.get(input_.dataset), observed.tables.get(input_.dataset)
        if cursor is None:
            continue
        if table is None:
            return f"the table of `{input_.dataset}` is gone; this run recreates it"
        if cursor.table_id != table.table_id:
            return f"`{input_.dataset}` is not the table it was read from before"
        if cursor.version > table.version:
            return f"`{input_.dataset}` went back from version {cursor.version} to {table.version}"
        if cursor.version < table.readable_from:
            kept = f"the files of `{input_.dataset}` are kept from version {table.readable_from} on"
            return f"{kept}, and it was read up to {cursor.version}"
        if cursor.version + 1 < table.earliest and cursor.version < table.version:
            return (
                f"the log of `{input_.dataset}` reaches back to version {table.earliest} only,"
                f" and it was read up to {cursor.version}"
            )
    return None


def is_rewritten(input_: PlannedInput, observed: Observed, draft: Draft) -> bool:
    """Whether the unread versions of an input rewrite the whole table.

    No increment can be read across that.
    """
    task = draft.tasks.get(input_.dataset)
    if task is not None and task.overwrite:
        return True
    table = observed.tables.get(input_.dataset)
    if table is None or input_.after is None:
        return False
    return any(
        c.metadata is not None and c.metadata.operation is Operation.OVERWRITE
        for c in table.commits_after(input_.after.version)
    )


def is_reshaped(input_: PlannedInput, observed: Observed, draft: Draft) -> bool:
    """Whether columns or types of an input changed in its unread versions, or may change in this run."""
    if input_.dataset in draft.reshaped:
        return True
    table = observed.tables.get(input_.dataset)
    commits = (
        table.commits_after(input_.after.version) if table is not None and input_.after is not None else ()
    )
    return any(c.metadata is not None and c.metadata.reshaped for c in commits)


def may_reshape(node: Node, task: Task, record: NodeRecord | None, config: NodeConfig, draft: Draft) -> bool:
    """Whether a task may give the output other columns or types. An added column changes neither."""
    if not task.overwrite and not task.reshapes:
        return False
    if any(input_.dataset in draft.reshaped for input_ in task.inputs) or (
        task.reshapes and task.cause is not Cause.PERSON
    ):
        return True
    changed = (
        {part for c in record.configs for part in c.parts if c.parts[part] != config.parts.get(part)}
        if record
        else set()
    )
    if node.traits.computes:
        return bool(changed & _CODE)
    words = ((word, name) for word, _, name in (part.partition(" ") for part in changed))
    return any(
        word in ("type", "cast") or (word == "column" and not _is_typed(name, config)) for word, name in words
    )


_CODE = {
    "sql",
    "python",
    "function",
    "config",
    "inputs",
    "lookups",
    "columns",
    "modules",
    "key",
    "fields",
    "references",
}
"""Parts of what users write that may give the result other columns.

Which ones is known only when it is computed.
"""


def _is_typed(column: str, config: NodeConfig) -> bool:
    return f"type {column}" in config.parts or f"cast {column}" in config.parts
