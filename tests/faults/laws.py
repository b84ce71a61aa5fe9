"""The laws that can be checked from outside, and their oracle: plain Python over the lines that were sent.

`check_always` holds at any moment, whatever died; `check_rest` holds once all work has drained.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from strandline.catalog import read_invalidations, read_view
from strandline.lake.log import LogEntry, list_versions, read_entries
from strandline.lake.state import get_table
from strandline.model.columns import CONFIG, DELETED, POSITION
from strandline.model.node import NodeKind
from strandline.model.plan import Cursor
from strandline.model.records import NodeRecord, Operation

from .hashing import hash_row
from .table_log import Row
from .world import World, give_up

Fact = tuple[tuple[Any, ...], Row]
"""A fact with its place: file and line."""
_ITEM = ("id", "name", "colour", "price", "at", "op")
_RATE = ("name", "percent", "at")
APPENDED = ("events", "rates", "item_facts", "item_quarantine", "rate_facts", "rate_quarantine")

BARE = {Operation.FENCE, Operation.PURGE, Operation.INVALIDATE}
"""Commits that read nothing and compute nothing."""


class BrokenLawError(AssertionError):
    """A law that does not hold."""


def require(holds: bool, law: str, *shown: object) -> None:
    if not holds:
        raise BrokenLawError(f"{law}: {' '.join(map(repr, shown))}")


def check_always(world: World) -> None:
    """What a reader may rely on while processes die and come back."""
    for node in world.project.nodes:
        _check_commits(node.name, _entries(world, node.name))
    _check_received(world, complete=False)
    _check_states(world)
    _check_cursors(world)


def check_rest(world: World) -> None:
    """Nothing waits, and everything is as if nothing had ever gone wrong."""
    check_always(world)
    tasks = world.plan().tasks
    require(tasks == (), "all work drains", tasks)
    _check_received(world, complete=True)
    _check_results(world)
    _check_counts(world)
    _check_catalog(world)


def sent(folder: Path) -> list[tuple[tuple[Any, ...], str]]:
    """Every line of a source's files, with its place."""
    lines = []
    for file in sorted(folder.glob("*.jsonl")):
        for place, text in enumerate(file.read_text().splitlines(), 1):
            lines.append(((f"{folder.name}/{file.name}", 0, place), text))
    return lines


def accepted(lines: Iterable[tuple[tuple[Any, ...], str]], columns: tuple[str, ...], required: tuple[str, ...]) -> list[Fact]:
    """The lines that are facts: they parse, nothing required is NULL, numbers are numbers."""
    facts = []
    for place, text in lines:
        try:
            message = json.loads(text)
        except ValueError:
            continue
        fact = {c: message.get(c) for c in columns}
        numbers = [fact[c] for c in ("price", "at", "percent") if fact.get(c) is not None]
        if all(fact[c] is not None for c in required) and all(isinstance(n, int) for n in numbers):
            facts.append((place, fact))
    return facts


def latest(facts: Iterable[Fact], key: str) -> dict[Any, Row]:
    """L3: the largest by `at`, then by a hash of the row, then by place. Whole rows; a deleting one hides its key."""

    def rank(fact: Fact) -> tuple[Any, ...]:
        place, row = fact
        return (row["at"], hash_row(row), place)

    best: dict[Any, Fact] = {}
    for fact in facts:
        of_key = fact[1][key]
        best[of_key] = fact if of_key not in best else max(best[of_key], fact, key=rank)
    return {of_key: row for of_key, (_, row) in best.items() if row.get("op") != "D"}


def names_of(items: Iterable[Row], rates: Iterable[Row]) -> dict[tuple[Any, Any], int]:
    """Count times percent, before the factor."""
    percent = next((r["percent"] for r in rates if r["name"] == "*"), None)
    return {} if percent is None else {key: n * percent for key, n in Counter((i["name"], i["colour"]) for i in items).items()}


def _check_commits(node: str, entries: list[LogEntry]) -> None:
    """L7, L12: a token is one commit and grows; a task id is one commit; what the commit says of its token is what the table took."""
    ours = [(e, e.metadata) for e in entries if e.metadata]
    tokens = [m.token for _, m in ours]
    require(tokens == sorted(set(tokens)), "L7 tokens grow", node, tokens)
    require(all(e.tokens == {node: m.token} for e, m in ours), "L7 one token a commit", node)
    require(len({m.task for _, m in ours}) == len(ours), "L12 task ids", node)
    foreign = [e.version for e in entries if e.metadata is None and e.data_change]
    require(not foreign, "L6 every commit says what it is", node, foreign)
    times = [e.committed_at for e in entries]
    require(times == sorted(t for t in times if t), "commit times grow", node, times)


def _check_received(world: World, *, complete: bool) -> None:
    """L1, L10: each line once in the source's table, each fact once among the facts or the refused; at rest all of them."""
    for source, dataset, columns, required in (("data", "item", _ITEM, ("id", "at")), ("rates", "rate", _RATE, ("name",))):
        lines = dict(sent(world.folder / source))
        facts = dict(accepted(lines.items(), columns, required))
        table = "events" if source == "data" else "rates"
        received = _by_place(world.rows(table), f"L1 {table}")
        require({p: r["_payload"] for p, r in received.items()}.items() <= lines.items(), "L1 received as it came", table)
        taken = _by_place(world.rows(f"{dataset}_facts"), f"L10 {dataset}_facts")
        require(all(p in facts and _only(r, columns) == facts[p] for p, r in taken.items()), "L10 facts", dataset)
        refused = _by_place(world.rows(f"{dataset}_quarantine"), f"L10 {dataset}_quarantine")
        require(refused.keys() <= lines.keys() - facts.keys(), "L10 quarantine", dataset, refused.keys())
        if complete:
            require(received.keys() == lines.keys(), "L1 all is received", table, lines.keys() - received.keys())
            require(taken.keys() == facts.keys(), "L10 no fact is missing", dataset, facts.keys() - taken.keys())
            require(refused.keys() == lines.keys() - facts.keys(), "L10 no refused line is missing", dataset)


def _check_states(world: World) -> None:
    """L2, L8: what a reader sees is what a full recompute gives over the input versions that the last commit names."""
    for name in ("item", "rate"):
        if inputs := _inputs_of(world, name):
            facts = [((*_place(r),), _only(r, _ITEM if name == "item" else _RATE)) for r in inputs[f"{name}_facts"]]
            key = "id" if name == "item" else "name"
            expected = latest(facts, key)
            require(_seen(world, name, key) == expected, f"L2 {name}", _seen(world, name, key), expected)
    if inputs := _inputs_of(world, "names"):
        expected_names = names_of(_live(inputs["item"]), _live(inputs["rate"]))
        found = {(r["name"], r["colour"]): (r["worth"], r[CONFIG]) for r in _live(world.rows("names"))}
        wanted = {key: (expected_names.get(key, 0) * world.factors[config], config) for key, (_, config) in found.items()}
        require(found.keys() == expected_names.keys() and found == wanted, "L2 names", found, expected_names)
        require(len(found) == len(_live(world.rows("names"))), "L2 names once", found)
    if inputs := _inputs_of(world, "colours"):
        totals: Counter[Any] = Counter()
        for row in _live(inputs["names"]):
            totals[row["colour"]] += row["worth"]
        colours = {r["colour"]: r["worth"] for r in _live(world.rows("colours"))}
        require(colours == dict(totals), "L2 colours", colours, totals)
    told = [(r["name"], r["price"]) for r in world.rows("told")]
    require(len(told) == len(set(told)), "L5 a unique key is inserted once", told)


def _check_results(world: World) -> None:
    """L2 from the lines themselves; L4 for what became empty; an append output misses nothing and invents nothing."""
    items = accepted(sent(world.folder / "data"), _ITEM, ("id", "at"))
    rates = accepted(sent(world.folder / "rates"), _RATE, ("name",))
    expected = latest(items, "id")
    require(_seen(world, "item", "id") == expected, "L2 item", _seen(world, "item", "id"), expected)
    counts = names_of(expected.values(), latest(rates, "name").values())
    found = {(r["name"], r["colour"]): r["worth"] for r in _live(world.rows("names"))}
    factors = {(r["name"], r["colour"]): world.factors[r[CONFIG]] for r in _live(world.rows("names"))}
    require(found == {key: n * factors.get(key, 0) for key, n in counts.items()}, "L2 names", found, counts)
    told = {(r["name"], r["price"]) for r in world.rows("told")}
    require({(r["name"], r["price"]) for r in expected.values()} <= told, "L2 told misses nothing", told, expected)
    require(told <= {(f["name"], f["price"]) for _, f in items}, "L2 told invents nothing", told)
    leftover = [n for n in ("names", "colours") if any(r[DELETED] for r in world.rows(n)) and _purged(world, n)]
    require(not leftover, "what was purged is gone", leftover)


def _check_counts(world: World) -> None:
    """L10: offered = accepted + duplicates + quarantined + passed over, and each is what was sent."""
    view = read_view(world.catalog)
    for source, dataset, columns, required in (("data", "item", _ITEM, ("id", "at")), ("rates", "rate", _RATE, ("name",))):
        lines = sent(world.folder / source)
        facts = accepted(lines, columns, required)
        counts = view.nodes[f"{dataset}_facts"].counts
        wanted = (len(lines), len(facts), len(lines) - len(facts))
        require((counts["offered"], counts["accepted"], counts["quarantined"]) == wanted, "L10 counts", dataset, counts, wanted)


def _check_cursors(world: World) -> None:
    """L9, L6: no cursor is past its table, and none is past what the tables themselves say was read."""
    for name, record in read_view(world.catalog).nodes.items():
        for dataset, cursor in record.cursors.items():
            versions = list_versions(world.lake.table(dataset))
            require(bool(versions) and cursor.version <= versions[-1], "L9 cursor", name, dataset, cursor)


def _check_catalog(world: World) -> None:
    """L6: the catalog agrees with the tables, and equals one that is filled from them alone."""
    view = read_view(world.catalog)
    rebuilt = world.rebuilt()
    again = read_view(rebuilt)
    for node in world.project.nodes:
        record, ours = view.nodes[node.name], [e for e in _entries(world, node.name) if e.metadata]
        if not ours:
            continue
        missed = [e.metadata.operation for e in ours if e.metadata and e.version > record.table_version]
        require(set(missed) <= BARE, "L6 only what moves nothing may be unrecorded until the next task", node.name, missed)
        require(record.table_id == str(get_table(world.lake.table(node.name)).metadata().id), "L6 table id", node.name)
        rows = world.rows(node.name)
        require(record.row_count == len(rows if node.name in APPENDED else _live(rows)), "L6 row count", node.name, record.row_count)
        _check_rebuilt(node.name, record, again.nodes[node.name])
    jobs = [n.name for n in world.project.nodes if n.kind is NodeKind.JOB]
    said, owed = read_invalidations(world.catalog, jobs)
    require(all(row["processed_at"] for row in owed), "every invalidation is processed", owed)
    known = [row["id"] for row in said]
    settled = [r["id"] for r in read_invalidations(rebuilt, jobs)[0] if r["table_version"] <= view.nodes[r["dataset"]].table_version]
    require(known == settled, "L6 invalidations", known, settled)
    give_up(rebuilt)


def _check_rebuilt(name: str, record: NodeRecord, again: NodeRecord) -> None:
    same = ("table_id", "configs", "row_count", "counts", "partitions")
    for part in same:
        require(getattr(record, part) == getattr(again, part), f"L6 rebuilt {part}", name, getattr(record, part), getattr(again, part))
    for dataset, cursor in again.cursors.items():
        require(_reaches(record.cursors.get(dataset), cursor), "L6 a rebuilt cursor is not later", name, dataset)
    files = {path: replace(f, modified_ns=0, size=0) for path, f in record.files.items()}
    require({p: replace(f, modified_ns=0, size=0) for p, f in again.files.items()} == files, "L6 rebuilt files", name)


def _reaches(cursor: Cursor | None, other: Cursor) -> bool:
    return cursor is not None and cursor.table_id == other.table_id and cursor.version >= other.version


def _inputs_of(world: World, name: str) -> Mapping[str, list[Row]] | None:
    """The inputs at the versions that the last commit which computed something names."""
    said = [e.metadata for e in _entries(world, name) if e.metadata and e.metadata.inputs]
    if not said:
        return None
    return {dataset: world.rows(dataset, cursor.version) for dataset, cursor in said[-1].inputs.items()}


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
