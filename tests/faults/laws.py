"""The laws that can be checked from outside, and their oracle: plain Python over the lines that were sent.

`check_always` holds at any moment, whatever died; `check_rest` holds once all work has drained.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from strandline.catalog import read_invalidations, read_view
from strandline.lake.log import LogEntry, list_versions, read_entries
from strandline.lake.table import get_table
from strandline.model.catalog_records import NodeRecord
from strandline.model.columns import CONFIG, DELETED, POSITION
from strandline.model.commits import Operation
from strandline.model.plan import Cursor
from strandline.model.project import Job

from .oracle import accepted, canonical, latest
from .table_log import Row
from .world import World, give_up

_ITEM = ("id", "name", "colour", "price", "at", "op")
_RATE = ("name", "percent", "at")
_BLOCK = ("number", "hash", "parent", "weight")
_RECEIVED = (
    ("data", "events", "item", _ITEM, ("id", "at")),
    ("rates", "rates", "rate", _RATE, ("name",)),
    ("blocks", "headers", "block", _BLOCK, ("number", "hash", "weight")),
)
"""Folder, source, dataset, its columns and those that may not be NULL."""
APPENDED = tuple(
    name
    for _, source, dataset, _, _ in _RECEIVED
    for name in (source, f"{dataset}_facts", f"{dataset}_quarantine")
)
_STRETCH = 2
"""So many numbers are a partition of `stretches`."""

BARE = {Operation.FENCE, Operation.PURGE, Operation.INVALIDATE, Operation.COMPACT, Operation.CLEAN}
"""Commits that read nothing and compute nothing."""


class BrokenLawError(AssertionError):
    """A law that does not hold."""


def require(holds: bool, law: str, *shown: object) -> None:
    if not holds:
        raise BrokenLawError(f"{law}: {' '.join(map(repr, shown))}")


def check_always(world: World) -> None:
    """What a reader may rely on while processes die and come back."""
    for node in world.project.nodes:
        check_commits_of(node.name, _entries(world, node.name))
    _check_received(world, complete=False)
    _check_states(world)
    _check_frozen(world)
    _check_cursors(world)


def check_rest(world: World, *, rebuilt: bool = True) -> None:
    """Nothing waits, and everything is as if nothing had ever gone wrong.

    `rebuilt`: so is a catalog that is filled from the tables alone; making it takes longer than all the rest.
    """
    check_always(world)
    plan = world.plan()
    require(plan.tasks == (), "all work drains", plan.tasks)
    frozen = {held.node for held in plan.frozen}
    _check_received(world, complete=True)
    _check_results(world, frozen)
    _check_counts(world)
    _check_catalog(world, frozen)
    if rebuilt:
        _check_rebuild(world)


def sent(folder: Path) -> list[tuple[tuple[Any, ...], str]]:
    """Every line of a source's files, with its place."""
    lines = []
    for file in sorted(folder.glob("*.jsonl")):
        for place, text in enumerate(file.read_text().splitlines(), 1):
            lines.append(((f"{folder.name}/{file.name}", 0, place), text))
    return lines


def names_of(items: Iterable[Row], rates: Iterable[Row]) -> dict[tuple[Any, Any], int]:
    """Count times percent, before the factor."""
    percent = next((r["percent"] for r in rates if r["name"] == "*"), None)
    return (
        {}
        if percent is None
        else {key: n * percent for key, n in Counter((i["name"], i["colour"]) for i in items).items()}
    )


def check_commits_of(node: str, entries: list[LogEntry]) -> None:
    """L7, L12 and: every commit is ours, each later than the one before."""
    check_tokens_of(node, entries)
    foreign = [e.version for e in entries if e.metadata is None and e.data_change]
    require(not foreign, "L6 every commit says what it is", node, foreign)
    times = [e.committed_at for e in entries]
    require(times == sorted(t for t in times if t), "commit times grow", node, times)


def check_tokens_of(node: str, entries: list[LogEntry]) -> None:
    """L7, L12: a token is one commit and grows; a task id is one commit; what the commit says of its token is what the table took."""
    ours = [(e, e.metadata) for e in entries if e.metadata]
    fenced = [
        (e, m) for e, m in ours if m.operation is not Operation.COMPACT
    ]  # it takes no token: late, it changes nothing either
    tokens = [m.token for _, m in fenced]
    require(tokens == sorted(set(tokens)), "L7 tokens grow", node, tokens)
    require(all(e.tokens == {node: m.token} for e, m in fenced), "L7 one token a commit", node)
    require(len({m.task for _, m in ours}) == len(ours), "L12 task ids", node)


def _check_received(world: World, *, complete: bool) -> None:
    """L1, L10: each line once in the source's table, each fact once among the facts or the refused; at rest all of them."""
    for folder, table, dataset, columns, required in _RECEIVED:
        lines = dict(sent(world.folder / folder))
        facts = dict(accepted(lines.items(), columns, required))
        received = _by_place(world.rows(table), f"L1 {table}")
        require(
            {p: r["_payload"] for p, r in received.items()}.items() <= lines.items(),
            "L1 received as it came",
            table,
        )
        taken = _by_place(world.rows(f"{dataset}_facts"), f"L10 {dataset}_facts")
        require(
            all(p in facts and _only(r, columns) == facts[p] for p, r in taken.items()), "L10 facts", dataset
        )
        refused = _by_place(world.rows(f"{dataset}_quarantine"), f"L10 {dataset}_quarantine")
        require(refused.keys() <= lines.keys() - facts.keys(), "L10 quarantine", dataset, refused.keys())
        if complete:
            require(
                received.keys() == lines.keys(), "L1 all is received", table, lines.keys() - received.keys()
            )
            require(
                taken.keys() == facts.keys(), "L10 no fact is missing", dataset, facts.keys() - taken.keys()
            )
            require(refused.keys() == lines.keys() - facts.keys(), "L10 no refused line is missing", dataset)


def _check_states(world: World) -> None:
    """L2, L8: what a reader sees is what a full recompute gives over the input versions that the last commit names."""
    nodes = read_view(world.catalog).nodes
    for name in ("item", "rate"):
        if inputs := _inputs_of(world, name, nodes.get(name)):
            facts = [
                ((*_place(r),), _only(r, _ITEM if name == "item" else _RATE)) for r in inputs[f"{name}_facts"]
            ]
            key = "id" if name == "item" else "name"
            expected = latest(facts, key)
            require(_seen(world, name, key) == expected, f"L2 {name}", _seen(world, name, key), expected)
    if inputs := _inputs_of(world, "names", nodes.get("names")):
        expected_names = names_of(_live(inputs["item"]), _live(inputs["rate"]))
        found = {(r["name"], r["colour"]): (r["worth"], r[CONFIG]) for r in _live(world.rows("names"))}
        wanted = {
            key: (expected_names.get(key, 0) * world.factors[config], config)
            for key, (_, config) in found.items()
        }
        require(found.keys() == expected_names.keys() and found == wanted, "L2 names", found, expected_names)
        require(len(found) == len(_live(world.rows("names"))), "L2 names once", found)
    if inputs := _inputs_of(world, "colours", nodes.get("colours")):
        totals: Counter[Any] = Counter()
        for row in _live(inputs["names"]):
            totals[row["colour"]] += row["worth"]
        colours = {r["colour"]: r["worth"] for r in _live(world.rows("colours"))}
        require(colours == dict(totals), "L2 colours", colours, totals)
    told = [(r["name"], r["price"]) for r in world.rows("told")]
    require(len(told) == len(set(told)), "L5 a unique key is inserted once", told)
    if told:
        published = {(r["name"], r["price"]) for r in _rows_at(world, "told", _readable_from(world, "told"))}
        require(published <= set(told), "L2 what was published stays", told, published)
    if inputs := _inputs_of(world, "told", nodes.get("told")):
        gives = {(r["name"], r["price"]) for r in _live(inputs["item"])}
        require(gives <= set(told), "L2 told misses nothing", told, gives)
    if inputs := _inputs_of(world, "main", nodes.get("main")):
        branch, _ = canonical((_place(r), _only(r, _BLOCK)) for r in inputs["block_facts"])
        _check_branch(world, branch)
    if inputs := _inputs_of(world, "stretches", nodes.get("stretches")):
        _check_stretches(world, {r["number"]: _only(r, _BLOCK) for r in _live(inputs["main"])})


def _check_branch(world: World, branch: Mapping[int, Row]) -> None:
    """L2, L8: one block a number, and all of one branch."""
    rows = [_only(r, _BLOCK) for r in _live(world.rows("main"))]
    require(sorted(r["number"] for r in rows) == sorted(branch), "L8 one block a number", rows, branch)
    require(all(branch[r["number"]] == r for r in rows), "L2 main", rows, branch)


def _check_stretches(world: World, branch: Mapping[int, Row]) -> None:
    """L2: a partition that is there is there with all its rows; one that is final is there."""
    wanted: dict[int, dict[Any, int]] = {}
    for block in branch.values():
        wanted.setdefault(block["number"] // _STRETCH, {})[block["number"], block["hash"]] = block["weight"]
    found: dict[int, dict[Any, int]] = {}
    rows = _live(world.rows("stretches"))
    for row in rows:
        weight, rest = divmod(row["weight"], world.factors[row[CONFIG]])
        require(rest == 0, "L2 a row is of its configuration", row)
        found.setdefault(row["number"] // _STRETCH, {})[row["number"], row["hash"]] = weight
    require(len(rows) == sum(map(len, found.values())), "L2 stretches once", rows)
    for stretch in wanted.keys() | found.keys():
        if stretch in found or (stretch + 1) * _STRETCH <= max(branch, default=0):
            require(found.get(stretch) == wanted.get(stretch), "L2 stretches", stretch, found, wanted)


def _check_frozen(world: World) -> None:
    """What a change of the unique key has frozen is written anew as a whole, or not at all."""
    ours = [e.metadata for e in _entries(world, "told") if e.metadata and e.metadata.inputs]
    for before, after in pairwise(ours):
        same = world.uniques[before.config.hash] == world.uniques[after.config.hash]
        require(
            same or after.operation is Operation.OVERWRITE,
            "what is frozen is not written",
            after.task,
            after.operation,
        )


def _check_results(world: World, frozen: Collection[str]) -> None:
    """L2 from the lines themselves; L4 for what became empty; an append output invents nothing and, unless frozen, misses nothing."""
    items = accepted(sent(world.folder / "data"), _ITEM, ("id", "at"))
    rates = accepted(sent(world.folder / "rates"), _RATE, ("name",))
    expected = latest(items, "id")
    require(_seen(world, "item", "id") == expected, "L2 item", _seen(world, "item", "id"), expected)
    counts = names_of(expected.values(), latest(rates, "name").values())
    found = {(r["name"], r["colour"]): r["worth"] for r in _live(world.rows("names"))}
    factors = {(r["name"], r["colour"]): world.factors[r[CONFIG]] for r in _live(world.rows("names"))}
    require(found == {key: n * factors.get(key, 0) for key, n in counts.items()}, "L2 names", found, counts)
    told = {(r["name"], r["price"]) for r in world.rows("told")}
    if "told" not in frozen:
        require(
            {(r["name"], r["price"]) for r in expected.values()} <= told,
            "L2 told misses nothing",
            told,
            expected,
        )
    require(told <= {(f["name"], f["price"]) for _, f in items}, "L2 told invents nothing", told)
    branch, _ = canonical(accepted(sent(world.folder / "blocks"), _BLOCK, ("number", "hash", "weight")))
    _check_branch(world, branch)
    _check_stretches(world, branch)
    leftover = [
        n
        for n in ("names", "colours", "main")
        if any(r[DELETED] for r in world.rows(n)) and _purged(world, n)
    ]
    require(not leftover, "what was purged is gone", leftover)


def _check_counts(world: World) -> None:
    """L10: offered = accepted + duplicates + quarantined + passed over, and each is what was sent."""
    view = read_view(world.catalog)
    for folder, _, dataset, columns, required in _RECEIVED:
        lines = sent(world.folder / folder)
        facts = accepted(lines, columns, required)
        counts = view.nodes[f"{dataset}_facts"].counts
        wanted = (len(lines), len(facts), len(lines) - len(facts))
        require(
            (counts["offered"], counts["accepted"], counts["quarantined"]) == wanted,
            "L10 counts",
            dataset,
            counts,
            wanted,
        )
    _, waiting = canonical(accepted(sent(world.folder / "blocks"), _BLOCK, ("number", "hash", "weight")))
    require(
        view.nodes["main"].counts.get("waiting", 0) == waiting,
        "L10 blocks that wait",
        view.nodes["main"].counts,
        waiting,
    )
    rows = Counter(r["number"] // _STRETCH for r in _live(world.rows("stretches")))
    recorded = {
        int(name.split("-")[0]) // _STRETCH: p.row_count
        for name, p in view.nodes["stretches"].partitions.items()
        if p.row_count
    }
    require(recorded == dict(rows), "L6 rows of each partition", recorded, rows)


def _check_cursors(world: World) -> None:
    """L9, L6: no cursor is past its table, and none is past what the tables themselves say was read."""
    for name, record in read_view(world.catalog).nodes.items():
        for dataset, cursor in record.cursors.items():
            versions = list_versions(world.lake.table(dataset))
            require(bool(versions) and cursor.version <= versions[-1], "L9 cursor", name, dataset, cursor)


def _check_catalog(world: World, frozen: Collection[str]) -> None:
    """L6: the catalog agrees with the tables."""
    view = read_view(world.catalog)
    for node in world.project.nodes:
        ours = [e for e in _entries(world, node.name) if e.metadata]
        if not ours:
            continue
        record = view.nodes[node.name]
        missed = [e.metadata.operation for e in ours if e.metadata and e.version > record.table_version]
        require(
            set(missed) <= BARE,
            "L6 only what moves nothing may be unrecorded until the next task",
            node.name,
            missed,
        )
        require(record.table_id == get_table(world.lake.table(node.name)).id, "L6 table id", node.name)
        rows = world.rows(node.name)
        require(
            record.row_count == len(rows if node.name in APPENDED else _live(rows)),
            "L6 row count",
            node.name,
            record.row_count,
        )
    _, owed = read_invalidations(world.catalog, _jobs(world))
    require(
        all(row["processed_at"] or row["job"] in frozen for row in owed),
        "every invalidation is processed",
        owed,
    )


def _check_rebuild(world: World) -> None:
    """L6: the catalog equals one that is filled from the tables alone."""
    view = read_view(world.catalog)
    rebuilt = world.rebuilt()
    again = read_view(rebuilt)
    for node in world.project.nodes:
        if node.name in again.nodes:
            check_rebuilt(node.name, view.nodes[node.name], again.nodes[node.name])
    known = [row["id"] for row in read_invalidations(world.catalog, _jobs(world))[0]]
    said = read_invalidations(rebuilt, _jobs(world))[0]
    settled = [row["id"] for row in said if row["table_version"] <= view.nodes[row["dataset"]].table_version]
    require(known == settled, "L6 invalidations", known, settled)
    give_up(rebuilt)


def _jobs(world: World) -> list[str]:
    return [n.name for n in world.project.nodes if n.kind == Job.kind]


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
            _reaches(record.cursors.get(dataset), cursor), "L6 a rebuilt cursor is not later", name, dataset
        )
    files = {path: replace(f, modified_ns=0, size=0) for path, f in record.files.items()}
    require(
        {p: replace(f, modified_ns=0, size=0) for p, f in again.files.items()} == files,
        "L6 rebuilt files",
        name,
    )


def _reaches(cursor: Cursor | None, other: Cursor) -> bool:
    return cursor is not None and cursor.table_id == other.table_id and cursor.version >= other.version


def _inputs_of(world: World, name: str, record: NodeRecord | None) -> Mapping[str, list[Row]] | None:
    """The inputs at the versions that the last commit which computed something names, or later ones that the catalog says it equals.

    None where there is no such commit, where what it read was cleaned away and the catalog that knew better is gone, or was another table.
    """
    said = [e.metadata for e in _entries(world, name) if e.metadata and e.metadata.inputs]
    if not said:
        return None
    cursors = said[-1].inputs
    if record is not None and all(
        _reaches(record.cursors.get(dataset), cursor) for dataset, cursor in cursors.items()
    ):
        cursors = {dataset: record.cursors[dataset] for dataset in cursors}
    if any(cursor.version < _readable_from(world, dataset) for dataset, cursor in cursors.items()):
        return None
    if any(cursor.table_id != get_table(world.lake.table(dataset)).id for dataset, cursor in cursors.items()):
        return None
    return {dataset: _rows_at(world, dataset, cursor.version) for dataset, cursor in cursors.items()}


def _rows_at(world: World, name: str, version: int) -> list[Row]:
    try:
        return world.rows(name, version)
    except FileNotFoundError as error:
        raise BrokenLawError(
            f"L13 a version that the table says can be read can be read: {name} {version}"
        ) from error


def _readable_from(world: World, name: str) -> int:
    """From which version on the table says that it can be read."""
    return max((e.metadata.readable_from for e in _entries(world, name) if e.metadata), default=0)


def _purged(world: World, name: str) -> bool:
    ours = [e.metadata for e in _entries(world, name) if e.metadata]
    return bool(ours) and ours[-1].operation is Operation.PURGE


def _entries(world: World, name: str) -> list[LogEntry]:
    return list(read_entries(world.lake.table(name), -1))


def _by_place(rows: Iterable[Row], law: str) -> dict[tuple[Any, ...], Row]:
    found: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        require(_place(row) not in found, f"{law}: nothing twice", _place(row))
        found[_place(row)] = row
    return found


def _seen(world: World, name: str, key: str) -> dict[Any, Row]:
    """What a reader sees of a snapshot."""
    columns = _ITEM if name == "item" else _RATE
    rows = _live(world.rows(name))
    require(len(rows) == len({r[key] for r in rows}), f"L3 {name} once", rows)
    return {r[key]: _only(r, columns) for r in rows}


def _only(row: Row, columns: tuple[str, ...]) -> Row:
    return {c: row[c] for c in columns}


def _live(rows: Iterable[Row]) -> list[Row]:
    return [r for r in rows if not r.get(DELETED)]


def _place(row: Row) -> tuple[Any, ...]:
    return (row[POSITION]["name"], row[POSITION]["part"], row[POSITION]["place"])
