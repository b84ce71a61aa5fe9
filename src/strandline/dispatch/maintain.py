"""Compact and clean one table by the commit protocol. What is still needed is never removed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from strandline.catalog import find_delivery_cursor, read_view
from strandline.lake.compaction import Compaction, Step, find_compactions
from strandline.lake.files import StoredFile, TableFiles, find_dead, list_stored, read_files, remove_files
from strandline.lake.log import LogEntry, read_entries
from strandline.model.commits import Operation
from strandline.model.errors import FencedError
from strandline.model.maintained import Maintained
from strandline.model.node import Node

from .desk import Desk
from .failpoints import reach
from .holding import Held, Written, holding
from .horizon import Horizon, find_horizon, read_announced
from .statistics import find_narrow, find_wanted, keep_statistics


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """How far back everything is kept."""

    since: datetime
    text: str


def keep_since(now: datetime, keep: timedelta) -> Keeping:
    hours = int(keep.total_seconds() // 3600)
    return Keeping(since=now - keep, text=f"{hours // 24} days" if hours % 24 == 0 else f"{hours} hours")


def measure(desk: Desk, node: Node, keeping: Keeping) -> tuple[Maintained, bool]:
    """A table as it is, and whether there is anything to do for it. Starts no Spark and changes nothing."""
    look = _look(desk, node, keeping)
    to_do = find_wanted(desk, node) or find_compactions(look.files.live, find_narrow(desk, node)) or look.dead
    return look.report(node), bool(to_do)


def preview(desk: Desk, node: Node, keeping: Keeping) -> Maintained:
    """What `maintain` would do for a table as it is now. Starts no Spark and changes nothing.

    The notes name what it would write again.
    """
    look = _look(desk, node, keeping)
    return replace(
        look.report(node),
        removed_files=len(look.dead),
        freed_bytes=sum(f.bytes for f in look.dead),
        notes=tuple(c.text for c in find_compactions(look.files.live, find_narrow(desk, node))),
        table_version=desk.pins.get(node.name).version,
    )


def maintain(desk: Desk, node: Node, keeping: Keeping) -> Maintained:
    """Compact, then clean. A table that someone else wrote to is left alone: the next run deals with it."""
    before = _look(desk, node, keeping)
    notes = (*keep_statistics(desk, node), *_compact(desk, node))
    removed = _clean(desk, node, keeping)
    after = _look(desk, node, keeping)
    return replace(
        after.report(node),
        files_before=len(before.files.live),
        bytes_before=before.bytes,
        removed_files=len(removed),
        freed_bytes=sum(f.bytes for f in removed),
        notes=notes,
        table_version=desk.pins.get(node.name).version,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """A table's files, in the log and in its folder."""

    files: TableFiles
    stored: tuple[StoredFile, ...]
    dead: tuple[StoredFile, ...]
    horizon: Horizon
    announced: int

    @property
    def bytes(self) -> int:
        return sum(f.bytes for f in self.stored)

    def report(self, node: Node) -> Maintained:
        live = {path for f in self.files.live for path in (f.path, f.vector)}
        kept = [f for f in self.stored if f.path not in live and f not in self.dead]
        because = (
            self.horizon.because
            if self.files.complete
            else "its log does not reach back to its first version"
        )
        return Maintained(
            dataset=node.name,
            files_before=len(self.files.live),
            files_after=len(self.files.live),
            bytes_before=self.bytes,
            bytes_after=self.bytes,
            kept_files=len(kept),
            kept_bytes=sum(f.bytes for f in kept),
            kept_because=because if kept else "",
        )


def _look(desk: Desk, node: Node, keeping: Keeping) -> _Look:
    uri = desk.lake.table(node.name)
    entries = list(read_entries(uri, -1))
    horizon = _horizon(desk, node, keeping, entries)
    files, stored = read_files(uri, horizon.version), list_stored(uri)
    dead = find_dead(files, stored, keeping.since) if files.complete else ()
    return _Look(files=files, stored=stored, dead=dead, horizon=horizon, announced=read_announced(entries))


def _horizon(desk: Desk, node: Node, keeping: Keeping, entries: Sequence[LogEntry]) -> Horizon:
    """The horizon by the cursors of the readers: each needs the table from its cursor on."""
    view, own = read_view(desk.catalog), desk.pins.get(node.name)
    cursors = {}
    for reader in desk.project.readers_of(node.name):
        record = view.nodes.get(reader.name)
        if (record is None or not record.table_id) and desk.pins.find(reader.name):
            # its table says how far, and the next run or `rebuild-catalog` reads it there
            return Horizon(
                version=0, because=f"the catalog does not know how far `{reader.name}` has read it"
            )
        cursor = record.cursors.get(node.name) if record else None
        if cursor is not None and cursor.table_id == own.table_id:
            cursors[reader.name] = cursor.version
    if node.traits.told_to is not None:
        owed = find_delivery_cursor(desk.catalog, node.name)
        cursors["deliveries"] = owed[1] if owed and owed[0] == own.table_id else 0
    return find_horizon(entries, cursors, keeping.since, keeping.text)


def _compact(desk: Desk, node: Node) -> tuple[str, ...]:
    notes: tuple[str, ...] = ()
    for step in Step:
        live = read_files(desk.lake.table(node.name), -1).live
        for wanted in (c for c in find_compactions(live, find_narrow(desk, node)) if c.step is step):
            notes = (*notes, *_compact_once(desk, node, wanted))
    return notes


def _compact_once(desk: Desk, node: Node, compaction: Compaction) -> tuple[str, ...]:
    commit_compaction = desk.workers().commit_compaction
    with holding(desk, node) as held:
        reach("before-compact", node.name)
        try:
            written = held.write(lambda: commit_compaction(desk, node, held.lease, compaction))
        except FencedError:
            return held.notes  # Delta commits nothing where it finds nothing to do
        reach("after-compact", node.name)
        held.record(written, held.rows)
    return (*held.notes, *written.notes)


def _clean(desk: Desk, node: Node, keeping: Keeping) -> tuple[StoredFile, ...]:
    """Commit from which version on files are kept, then remove the others.

    Whoever dies in between has removed nothing that no commit speaks of (L13).
    """
    if not _look(desk, node, keeping).dead:
        return ()
    with holding(desk, node) as held:
        reach("before-vacuum", node.name)
        look = _look(desk, node, keeping)
        written = None
        if look.horizon.version > look.announced and any(f.path in look.files.named for f in look.dead):
            written = _announce(held, look.horizon.version)
        remove_files(desk.lake.table(node.name), look.dead)
        if written is not None:
            held.record(written, held.rows)
        reach("after-vacuum", node.name)
    return look.dead


def _announce(held: Held, readable_from: int) -> Written:
    desk, commit = held.desk, held.desk.workers().commit_nothing
    return held.write(
        lambda: commit(desk, held.node, held.lease, Operation.CLEAN, readable_from=readable_from)
    )
