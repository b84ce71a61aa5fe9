"""A table keeps statistics of the columns by whose ranges it is read, also of those that came after it."""

from strandline.lake.ranges import find_stored_names
from strandline.lake.statistics import can_be_ranged, find_kept
from strandline.lake.table import open_table
from strandline.model.node import Node
from strandline.model.report import listed

from .desk import Desk
from .holding import holding


def find_wanted(desk: Desk, node: Node) -> tuple[str, ...]:
    """The columns of which the table has to keep statistics. Empty if it does, or does not exist."""
    wanted = desk.project.indexed(node.name)
    table = open_table(desk.lake.table(node.name)) if wanted else None
    if table is None:
        return ()
    columns = [(name, type_) for name, type_ in table.columns if name not in table.partitioned_by]
    return find_kept(table.properties, columns, wanted)


def find_narrow(desk: Desk, node: Node) -> tuple[str, ...]:
    """The columns in which the files of the table are kept narrow."""
    wanted = desk.project.windowed(node.name)
    table = open_table(desk.lake.table(node.name)) if wanted else None
    if table is None:
        return ()
    stored = find_stored_names(table)
    types = {name: type_ for name, type_ in table.columns if stored[name] == name}
    return tuple(c for c in wanted if can_be_ranged(types.get(c)) and c not in table.partitioned_by)


def keep_statistics(desk: Desk, node: Node) -> tuple[str, ...]:
    """Bring the property of the table up to date, by a commit of its own that changes no row.

    Returns a note if there was something to do. Files that exist get statistics when they are written again.
    """
    if not (columns := find_wanted(desk, node)):
        return ()
    commit_statistics = desk.workers().commit_statistics
    with holding(desk, node) as held:
        written = held.write(lambda: commit_statistics(desk, node, held.lease, columns))
        held.record(written, held.rows)
    note = f"new files of `{node.name}` have statistics of {listed(columns)}"
    return (*held.notes, note, *written.notes)
