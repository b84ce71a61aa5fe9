"""Which files of a source contain something that was not received yet, from the listing alone."""

from strandline.model.files import FileRead, FileSeen
from strandline.model.node import Node
from strandline.model.plan import Cause, Strategy, Task
from strandline.model.scope import Rows

from .request import Observed

BYTES_A_ROW = 200
"""For an estimate before anything of a source was read."""


def plan_source(node: Node, observed: Observed) -> Task | None:
    """A task for the files that are new, changed, or end in a line that still waits for its newline."""
    record = observed.view.nodes.get(node.name)
    # A table that is gone contains nothing of what its files were read for: they are received again.
    read = record.files if record and node.name in observed.tables else {}
    listed = observed.listings.get(node.name, ())
    pending = [f for f in listed if is_pending(f, read.get(f.path))]
    table = observed.tables.get(node.name)
    if not pending and (table is not None or not node.traits.starts_empty):
        return None
    size = sum(
        f.size - (read[f.path].bytes if f.path in read and read[f.path].bytes < f.size else 0)
        for f in pending
    )
    known_bytes, known_rows = sum(r.bytes for r in read.values()), sum(r.rows for r in read.values())
    width = known_bytes / known_rows if known_rows else BYTES_A_ROW
    total = size + known_bytes if node.traits.inbox else sum(f.size for f in listed)
    return Task(
        node=node.name,
        kind=node.kind,
        cause=Cause.NEW_INPUT if table is not None else Cause.NEW_NODE,
        strategy=Strategy.APPEND,
        reason=_explain(node, len(pending), len(listed)),
        scope=Rows(count=len(pending), of="posts" if node.traits.inbox else "files", bytes=size),
        files=tuple(f.path for f in pending),
        estimated_rows=int(size / width),
        estimated_bytes=size,
        full_rows=int(total / width),
        full_bytes=total,
    )


def _explain(node: Node, pending: int, listed: int) -> str:
    if node.traits.inbox:
        return f"{pending} posts wait in the inbox" if listed else "nothing was posted yet: an empty table"
    if not listed:
        return f"no file matches {node.traits.pattern} yet: an empty table"
    return f"{pending} of {listed} files are new or have grown"


def is_pending(listed: FileSeen, read: FileRead | None) -> bool:
    return (
        read is None
        or bool(read.unfinished)
        or (listed.size, listed.modified_ns) != (read.size, read.modified_ns)
    )
