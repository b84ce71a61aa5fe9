"""What `doctor` finds wrong with tables: damaged logs and files, and differences between catalog and tables.

Starts no Spark.
"""

from collections.abc import Iterator, Mapping

from strandline.catalog import list_leases, read_view
from strandline.lake.damage import Ailment, Damage, find_damage
from strandline.lake.state import read_token
from strandline.model.catalog_records import CatalogView, NodeRecord
from strandline.model.commits import TableState
from strandline.model.errors import OutsideError
from strandline.model.leases import LeaseState
from strandline.model.node import Node, Project
from strandline.model.plan import Cause, Plan, Status
from strandline.model.traits import Writing
from strandline.plan import Observed
from strandline.plan.gaps import find_unknown

from .finding import Finding, Result
from .planning import RunRequest, make_plan
from .workspace import Workspace


def examine_tables(workspace: Workspace, *, deep: bool) -> Iterator[Finding]:
    """Damage comes first: nothing else can be said about a table that does not open."""
    leases = {lease.dataset: lease for lease in list_leases(workspace.catalog)}
    yield from _find_unreturned(leases)
    damaged = list(find_damaged(workspace, deep=deep))
    yield from damaged
    try:
        plan, observed = make_plan(workspace, RunRequest())
    except OutsideError:
        if damaged:
            return  # it has been reported already, and better
        raise
    before = [*_find_disagreements(workspace, observed, leases), *_find_foreign(workspace.project, observed)]
    yield from before
    yield from _find_gaps(plan)
    for held in plan.frozen:
        yield Finding(check="frozen", result=Result.WRONG, what=f"`{held.node}` is frozen: {held.reason}.")
    for held in plan.stale:
        yield Finding(check="stale", result=Result.NOTE, what=f"`{held.node}` is stale: {held.reason}.")
    failed = list(_find_failed(plan, observed))
    yield from failed
    if not (damaged or before or failed or plan.frozen):
        yield Finding(
            check="tables", result=Result.OK, what=f"{len(observed.tables)} tables, as in the catalog"
        )


def _find_unreturned(leases: Mapping[str, LeaseState]) -> Iterator[Finding]:
    for lease in leases.values():
        if lease.returned:
            continue
        until = f"{lease.expires_at:%Y-%m-%d %H:%M:%S} UTC"
        if lease.held:
            what, remedy = (
                f"`{lease.dataset}` is held by {lease.holder}, until {until} unless it is renewed.",
                "",
            )
        else:
            what = f"{lease.holder} never gave `{lease.dataset}` back; its lease ran out at {until}."
            remedy = "The next run that writes it fences that writer off and takes over what it committed."
        yield Finding(check="lease", result=Result.NOTE, what=what, remedy=remedy)


def find_damaged(workspace: Workspace, *, deep: bool) -> Iterator[Finding]:
    """Logs and files that are missing or not as they were written."""
    view = read_view(workspace.catalog)
    for node in workspace.project.nodes:
        uri = workspace.lake.table(node.name)
        for damage in find_damage(uri, _oldest_cursor(workspace.project, view, node), deep=deep):
            late = damage.ailment is Ailment.HISTORY
            remedy = (
                _remedy_for_readers(workspace.project, view, node) if late else _remedy(node, damage, uri)
            )
            yield Finding(
                check=str(damage.ailment),
                result=Result.WRONG,
                what=f"`{node.name}`: {damage.what}.",
                remedy=remedy,
            )


def _oldest_cursor(project: Project, view: CatalogView, node: Node) -> int | None:
    return min((version for _, version in _cursors(project, view, node)), default=None)


def _cursors(project: Project, view: CatalogView, node: Node) -> list[tuple[str, int]]:
    """Each node that reads the table, and how far it has read."""
    records = ((n.name, view.nodes.get(n.name)) for n in project.readers_of(node.name))
    return [
        (name, record.cursors[node.name].version)
        for name, record in records
        if record and node.name in record.cursors
    ]


def _remedy(node: Node, damage: Damage, uri: str) -> str:
    """How to repair a damaged table.

    What was computed can be computed again, and sources often still have what they sent.
    """
    if damage.ailment is Ailment.CHECKPOINT:
        return (
            f"Remove `{uri}/_delta_log/_last_checkpoint`: the log is read from its entries,"
            " and the next checkpoint is written by itself."
        )
    restore = "Restore the file from a copy."
    away = f"Without one, move `{uri}` away and run"
    if node.traits.receives:
        return f"{restore} {away}: every file that still exists is received again."
    if node.traits.writing is Writing.INSERTS:
        return (
            f"{restore} {away}: it is computed again, without published rows that its inputs no longer give."
        )
    return f"{restore} {away}: it is computed again from its inputs."


def _remedy_for_readers(project: Project, view: CatalogView, node: Node) -> str:
    calls = ", ".join(f"`strandline backfill {name} --all`" for name, _ in _cursors(project, view, node))
    return f"Restore it from a copy, or recompute what continues from there: {calls}."


def _find_disagreements(
    workspace: Workspace, observed: Observed, leases: Mapping[str, LeaseState]
) -> Iterator[Finding]:
    """Differences because the catalog or a table was lost or restored."""
    lost, behind = [], []
    for node in workspace.project.nodes:
        table, record = observed.tables.get(node.name), observed.view.nodes.get(node.name)
        if table is None:
            if record is not None and record.table_id:
                yield _gone(node)
            continue
        ours = [
            c
            for c in table.commits_after(
                record.table_version if record and record.table_id == table.table_id else -1
            )
            if c.metadata
        ]
        if record is None or not record.table_id:
            lost += [node.name] if ours else []
        elif record.table_id != table.table_id:
            yield _recreated(node)
        elif record.table_version > table.version:
            yield _went_back(node, record, table)
        elif ours and _is_older(workspace, node, leases):
            behind.append(node.name)
        elif ours:
            what = (
                f"`{node.name}` has {len(ours)} commits of ours that are not in the catalog:"
                " a run did not end."
            )
            yield Finding(check="unsettled", result=Result.NOTE, what=what, remedy="The next run settles it.")
    if lost:
        what = (
            f"The catalog contains nothing about {_names(lost)}, which Strandline wrote:"
            " it was lost, or is another one."
        )
        remedy = (
            "Run `strandline rebuild-catalog`; `settings.catalog` says which it is."
            " A run would take them over too, one by one."
        )
        yield Finding(check="catalog-lost", result=Result.WRONG, what=what, remedy=remedy)
    if behind:
        what = f"The catalog is older than {_names(behind)}: it was restored from an earlier copy."
        remedy = (
            "Run `strandline rebuild-catalog`."
            " A run would settle it too, table by table; nothing is lost or doubled."
        )
        yield Finding(check="catalog-behind", result=Result.WRONG, what=what, remedy=remedy)


def _is_older(workspace: Workspace, node: Node, leases: Mapping[str, LeaseState]) -> bool:
    """Whether the table has a larger token than the catalog.

    A token is taken from the catalog before anything is committed with it, so such a catalog is older.
    """
    lease = leases.get(node.name)
    return read_token(workspace.lake, node.name) > (lease.token if lease else 0)


def _gone(node: Node) -> Finding:
    remedy = "Restore it from a copy if that is a mistake; the next run creates it again" + (
        " from the files that still exist." if node.traits.receives else " from its inputs."
    )
    return Finding(
        check="table-gone", result=Result.WRONG, what=f"The table of `{node.name}` is gone.", remedy=remedy
    )


def _recreated(node: Node) -> Finding:
    what = f"`{node.name}` is not the table in the catalog: someone deleted and recreated it."
    if node.traits.receives:
        remedy = (
            "Restore the old one from a copy, or move the table away and run:"
            " every file that still exists is received again."
        )
    else:
        remedy = "The next run computes it again from its inputs."
    return Finding(check="recreated", result=Result.WRONG, what=what, remedy=remedy)


def _went_back(node: Node, record: NodeRecord, table: TableState) -> Finding:
    what = (
        f"The catalog is ahead of `{node.name}`: it has version {record.table_version},"
        f" and the table ends with {table.version}."
    )
    if node.traits.receives:
        remedy = (
            "Restore the newer table, or run `strandline rebuild-catalog` and run:"
            " what the table lacks is received again."
        )
    else:
        remedy = "Restore the newer table, or run: it is computed again from its inputs."
    return Finding(check="catalog-ahead", result=Result.WRONG, what=what, remedy=remedy)


def _find_foreign(project: Project, observed: Observed) -> Iterator[Finding]:
    for node in project.nodes:
        foreign = find_unknown(observed.view.nodes.get(node.name), observed.tables.get(node.name))
        if not foreign:
            continue
        versions = ", ".join(f"{c.version} ({c.operation})" for c in foreign)
        remedy = (
            f"What was received must not be changed: restore the table to version {foreign[0].version - 1}. "
            f"Rows that were only added are accepted by `strandline doctor --adopt {node.name}`."
            if not node.inputs
            else "The next run rebuilds it from its inputs;"
            f" `strandline doctor --adopt {node.name}` accepts it as it is."
        )
        what = f"`{node.name}` has commits that are not Strandline's: version {versions}."
        yield Finding(check="foreign", result=Result.WRONG, what=what, remedy=remedy)


def _find_gaps(plan: Plan) -> Iterator[Finding]:
    for task in plan.tasks:
        if task.cause is Cause.GAP:
            what = f"`{task.node}` cannot continue from where it was: {task.reason}."
            yield Finding(check="gap", result=Result.NOTE, what=what, remedy="The next run rebuilds it.")


def _find_failed(plan: Plan, observed: Observed) -> Iterator[Finding]:
    behind = {task.node for task in plan.tasks}
    for record in observed.view.nodes.values():
        if record.dataset in behind and record.last_status in (Status.FAILED, Status.GUARDED):
            yield Finding(
                check=record.last_status, result=Result.WRONG, what=f"`{record.dataset}`: {record.last_error}"
            )


def _names(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
