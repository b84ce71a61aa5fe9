"""`maintain`: compact and clean tables.

Nothing is removed that a cursor, a reader or `--known-at` within `settings.keep` still needs.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from strandline.catalog import audit, count_forgettable, forget_deliveries
from strandline.dispatch.desk import Desk
from strandline.dispatch.maintain import Keeping, keep_since, maintain, measure, preview
from strandline.dispatch.outside import as_known
from strandline.dispatch.run import Heartbeat
from strandline.ingest.inbox import clean
from strandline.ingest.inbox import count_forgettable as count_old_posts
from strandline.model.errors import StrandlineError
from strandline.model.maintained import Maintained
from strandline.model.node import Node
from strandline.model.plan import Plan
from strandline.plan.selection import get_nodes

from .clock import now
from .planning import RunRequest
from .run import make_desk, no_session, open_lake, run_name
from .staging import clear_abandoned, find_abandoned
from .workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintainRequest:
    """What `maintain` asks for."""

    name: str | None = None
    """None: every table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintainOutcome:
    tables: tuple[Maintained, ...]
    forgotten: int = 0
    """Deliveries that ended long ago and were removed, or would be."""

    @property
    def exit_code(self) -> int:
        return 1 if any(t.error for t in self.tables) else 0


def preview_tables(workspace: Workspace, name: str | None) -> MaintainOutcome:
    """What `maintain_tables` would do. Changes nothing and starts no Spark."""
    desk, nodes, keeping = _open_desk(workspace, name)
    old = {n.name: count_old_posts(workspace.lake.inbox(n.name), desk.as_of) for n in nodes if n.traits.inbox}
    return MaintainOutcome(
        tables=tuple(_with_posts(preview(desk, node, keeping), old.get(node.name, 0)) for node in nodes),
        forgotten=0 if name else count_forgettable(workspace.catalog, workspace.project.settings.keep),
    )


def _open_desk(workspace: Workspace, name: str | None) -> tuple[Desk, list[Node], Keeping]:
    """The tables that NAME means, or all, and a desk at which nothing is written yet."""
    observed, at = workspace.observe(), now()
    names = get_nodes(workspace.project, name) if name else tuple(observed.tables)
    nodes = [n for n in workspace.project.nodes if n.name in names and n.name in observed.tables]
    desk = make_desk(workspace, observed, Plan(as_of=at, tasks=()), run_name(at), no_session, RunRequest())
    return desk, nodes, keep_since(at, workspace.project.settings.keep)


def maintain_tables(
    workspace: Workspace, name: str | None, report: Callable[[Maintained], None]
) -> MaintainOutcome:
    """Maintain what NAME means, or every table.

    Spark is started, and the lake taken, only if there is something to do.
    """
    desk, nodes, keeping = _open_desk(workspace, name)
    looked = {n.name: measure(desk, n, keeping) for n in nodes}
    if any(to_do for _, to_do in looked.values()) or find_abandoned(workspace):
        desk = replace(desk, session=open_lake(workspace, desk.as_of))
        clear_abandoned(workspace)
        audit(workspace.catalog, "maintain", {"name": name or "", "keep": keeping.text})
    done = []
    with Heartbeat(desk):
        for node in nodes:
            before, to_do = looked[node.name]
            maintained = _maintain_one(desk, node, keeping, before) if to_do else before
            old = clean(workspace.lake.inbox(node.name), desk.as_of) if node.traits.inbox else 0
            done.append(_with_posts(maintained, old))
            report(done[-1])
    forgotten = 0 if name else forget_deliveries(workspace.catalog, workspace.project.settings.keep)
    return MaintainOutcome(tables=tuple(done), forgotten=forgotten)


def _with_posts(maintained: Maintained, old: int) -> Maintained:
    """The result of a source, with the posts that were received more than a week ago and are removed."""
    if not old:
        return maintained
    note = f"{old} posts that were received more than a week ago"
    return replace(maintained, removed_files=maintained.removed_files + old, notes=(*maintained.notes, note))


def _maintain_one(desk: Desk, node: Node, keeping: Keeping, before: Maintained) -> Maintained:
    """Maintain a table. If that fails, the reason is its result, and the others go on."""
    try:
        return maintain(desk, node, keeping)
    except StrandlineError as error:
        return replace(before, error=str(error))
    except Exception as error:  # noqa: BLE001 - whatever Spark or the disk raises is this table's result
        return replace(before, error=str(as_known(error)))
