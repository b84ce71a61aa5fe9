"""The laws that can be checked from outside and hold for all kinds alike. Those about rows are in `kinds`.

`check_always` holds at any moment, whatever died; `check_rest` holds once all work has drained.
"""

from dataclasses import replace

from strandline.catalog import DeliveryFilter, read_deliveries, read_invalidations, read_view
from strandline.dispatch.outbox import fill_outbox
from strandline.lake.log import LogEntry, list_versions
from strandline.model.catalog_records import NodeRecord
from strandline.model.columns import DELETED
from strandline.model.commits import Operation

from .evidence import Evidence, reaches, require
from .world import World, give_up

WITHOUT_TOKEN = {Operation.COMPACT, Operation.STATISTICS}
"""Commits that change no row and that Delta gives no token."""
BARE = {Operation.FENCE, Operation.PURGE, Operation.INVALIDATE, Operation.CLEAN, *WITHOUT_TOKEN}
"""Commits that read nothing and compute nothing."""


def check_always(world: World) -> None:
    """What a reader may rely on while processes die and come back."""
    _check(Evidence(world))


def check_rest(world: World, *, rebuilt: bool = True) -> None:
    """Nothing waits, and everything is as if nothing had ever gone wrong.

    `rebuilt`: so is a catalog that is filled from the tables alone; making it takes longer than all the rest.
    """
    plan = world.plan()
    require(plan.tasks == (), "all work drains", plan.tasks)
    evidence = Evidence(world, frozen={held.node for held in plan.frozen})
    _check(evidence)
    _check_purged(evidence)
    _check_catalog(evidence)
    if rebuilt:
        _check_rebuild(evidence)


def check_owed(world: World) -> None:
    """Where no catalog was lost: an event is owed once if its endpoints are told about it, and else never."""
    fill_outbox(world.project, world.catalog, world.lake, world.fate.now)
    found = read_deliveries(world.catalog, DeliveryFilter(), 10_000)
    for node in world.project.nodes:
        if node.traits.told_to is None:
            continue
        owed = sorted(record.id for _, record in found if record.trigger == node.name)
        told = [row["event_id"] for row in world.rows(node.name) if not row["quiet"]]
        expected = sorted(f"{event}-{endpoint}" for event in told for endpoint in node.traits.told_to)
        require(owed == expected, "L10 each told event is owed once", node.name, owed, expected)


def _check(evidence: Evidence) -> None:
    for node in evidence.world.project.nodes:
        check_commits_of(node.name, evidence.entries(node.name))
    for kind in evidence.world.kinds:
        kind.check(evidence)
    _check_cursors(evidence)


def check_commits_of(node: str, entries: list[LogEntry]) -> None:
    """L7, L12 and: every commit is ours, each later than the one before."""
    check_tokens_of(node, entries)
    foreign = [e.version for e in entries if e.metadata is None and e.data_change]
    require(not foreign, "L6 every commit says what it is", node, foreign)
    times = [e.committed_at for e in entries]
    require(times == sorted(t for t in times if t), "commit times grow", node, times)


def check_tokens_of(node: str, entries: list[LogEntry]) -> None:
    """L7, L12: tokens grow, and each is of one commit; so is each task id.

    A commit names the token that the table took with it.
    """
    ours = [(e, e.metadata) for e in entries if e.metadata]
    # What takes no token changes nothing, however late it comes.
    fenced = [(e, m) for e, m in ours if m.operation not in WITHOUT_TOKEN]
    tokens = [m.token for _, m in fenced]
    require(tokens == sorted(set(tokens)), "L7 tokens grow", node, tokens)
    require(all(e.tokens == {node: m.token} for e, m in fenced), "L7 one token a commit", node)
    require(len({m.task for _, m in ours}) == len(ours), "L12 task ids", node)


def _check_cursors(evidence: Evidence) -> None:
    """L9, L6: no cursor is past its table."""
    for name, record in evidence.nodes.items():
        for dataset, cursor in record.cursors.items():
            versions = list_versions(evidence.world.lake.table(dataset))
            require(bool(versions) and cursor.version <= versions[-1], "L9 cursor", name, dataset, cursor)


def _check_purged(evidence: Evidence) -> None:
    """L4: what became empty leaves nothing behind once it was purged."""
    for node in evidence.world.project.nodes:
        operations = [e.metadata.operation for e in evidence.entries(node.name) if e.metadata]
        if operations and operations[-1] is Operation.PURGE:
            buried = [row for row in evidence.rows(node.name) if row[DELETED]]
            require(not buried, "what was purged is gone", node.name, buried)


def _check_catalog(evidence: Evidence) -> None:
    """L6: the catalog agrees with the tables."""
    for node in evidence.world.project.nodes:
        ours = [(e.version, e.metadata.operation) for e in evidence.entries(node.name) if e.metadata]
        if not ours:
            continue
        record = evidence.nodes[node.name]
        missed = {operation for version, operation in ours if version > record.table_version}
        law = "L6 only what moves nothing may be unrecorded until the next task"
        require(missed <= BARE, law, node.name, missed)
        require(record.table_id == evidence.table_id(node.name), "L6 table id", node.name)
        rows = evidence.rows(node.name) if node.traits.only_grows else evidence.live(node.name)
        require(record.row_count == len(rows), "L6 row count", node.name, record.row_count)
    _, owed = read_invalidations(evidence.world.catalog, _list_answering(evidence.world))
    waiting = [row for row in owed if not row["processed_at"] and row["job"] not in evidence.frozen]
    require(not waiting, "every invalidation is processed", waiting)


def _check_rebuild(evidence: Evidence) -> None:
    """L6: the catalog equals one that is filled from the tables alone."""
    world = evidence.world
    rebuilt = world.rebuilt()
    again = read_view(rebuilt).nodes
    for node in world.project.nodes:
        if node.name in again:
            check_rebuilt(node.name, evidence.nodes[node.name], again[node.name])
    answering = _list_answering(world)
    known = [row["id"] for row in read_invalidations(world.catalog, answering)[0]]
    settled = [
        row["id"]
        for row in read_invalidations(rebuilt, answering)[0]
        if row["table_version"] <= evidence.nodes[row["dataset"]].table_version
    ]
    require(known == settled, "L6 invalidations", known, settled)
    give_up(rebuilt)


def _list_answering(world: World) -> list[str]:
    return [node.name for node in world.project.nodes if node.traits.answers_invalidations]


def check_rebuilt(name: str, record: NodeRecord, again: NodeRecord) -> None:
    same = ("table_id", "configs", "row_count", "counts")
    for part in same:
        require(
            getattr(record, part) == getattr(again, part),
            f"L6 rebuilt {part}",
            name,
            getattr(record, part),
            getattr(again, part),
        )
    # A world may be played in another folder than it was saved in.
    built, built_again = (
        {key: replace(p, location="") for key, p in r.partitions.items()} for r in (record, again)
    )
    require(built == built_again, "L6 rebuilt partitions", name, built, built_again)
    for dataset, cursor in again.cursors.items():
        require(
            reaches(record.cursors.get(dataset), cursor), "L6 a rebuilt cursor is not later", name, dataset
        )
    files = {path: replace(f, modified_ns=0, size=0) for path, f in record.files.items()}
    require(
        {p: replace(f, modified_ns=0, size=0) for p, f in again.files.items()} == files,
        "L6 rebuilt files",
        name,
    )
