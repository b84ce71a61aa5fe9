"""The soak's own checks accept correct tables, and notice lost, doubled and wrong rows."""

import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from strandline.model.events import make_event_id
from tests.events import EventLog, Fired
from tests.faults.kinds.chain.oracle import canonical
from tests.faults.soak.feed import PROJECT, Feeder, write_at_once
from tests.faults.soak.model import BLOCK, ITEM, RATE, Sent, read_sent, size_up, weigh
from tests.faults.soak.reader import ONCE, find_twice
from tests.faults.soak.rest import Rest, check_appended, check_received, check_results, latest_by
from tests.faults.soak.told import DEAR, TRIGGER, Told, check_told, publishing

pytestmark = pytest.mark.faults

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Rest:
    folder = tmp_path_factory.mktemp("soak")
    write_at_once(folder / "strandline.yaml", PROJECT)
    feeder = Feeder(folder, random.Random(7))
    for _ in range(60):
        feeder.feed()
    feeder.finish()
    rest = Rest.of(folder, feeder)
    for name, rows in tables_of(rest).items():
        write(rest, name, rows)
    return rest


def test_a_message_that_deletes_needs_only_its_key_and_its_time() -> None:
    def line(**parts: object) -> str:
        return json.dumps({"id": "i1", "price": "dear", "at": 7, **parts})

    lines = [line(op="D"), line(op="D", at=None), line(op="D", id=None), line(), line(price=3)]

    sent = read_sent({"items/0.jsonl": lines}, 0, "items", ITEM, ("id", "price", "at"), ("id", "at"))

    facts = {place: (row["op"], row["price"]) for (_, _, place), row in sent.facts.items()}
    assert facts == {1: ("D", None), 5: (None, 3)}


@contextmanager
def spoilt(rest: Rest, table: str, spoil: Callable[[Rows], Rows]) -> Iterator[Rows]:
    """While it is open the table holds something else than `tables_of` says."""
    right = tables_of(rest)[table]
    write(rest, table, spoil(right))
    yield right
    write(rest, table, right)


def tables_of(rest: Rest) -> dict[str, Rows]:
    """What the engine must make of what was sent."""
    items, rates = latest_by(rest.item, "id"), latest_by(rest.rate, "kind")
    worth = weigh(items.values(), rates, rest.factor)
    branch = {number: row["hash"] for number, row in canonical(rest.block.facts.items())[0].items()}
    tables: dict[str, Rows] = {
        "block_facts": list({row["hash"]: row for row in rest.block.facts.values()}.values()),
        "item": list(items.values()),
        "rate": list(rates.values()),
        "worth": [{"kind": kind, "items": n, "worth": value} for kind, (n, value) in worth.items()],
        "sizes": [
            {"items": n, "kinds": kinds, "worth": value} for n, (kinds, value) in size_up(worth).items()
        ],
        "shelves": [{c: row[c] for c in ("id", "kind", "price")} for row in items.values()],
        "told": [
            {"kind": kind, "price": price}
            for kind, price in {(row["kind"], row["price"]) for row in items.values()}
        ],
        "hot": [{"number": number, "hash": name} for number, name in branch.items()],
        "alerts": [{"number": number, "hash": name} for number, name in branch.items() if number % 3 == 0],
    }
    for name, sent, columns in (
        ("item", rest.item, ITEM),
        ("rate", rest.rate, RATE),
        ("block", rest.block, BLOCK),
    ):
        tables[f"{name}_lines"] = [
            {"_source_position": place, "_payload": line} for place, line in sent.lines.items()
        ]
        tables[f"{name}_quarantine"] = _refused(sent)
        if name != "block":
            tables[f"{name}_facts"] = [
                {"_source_position": place, **row} for place, row in sent.facts.items()
            ]
            assert set(columns) <= set(tables[f"{name}_facts"][0])
    return tables


def _refused(sent: Sent) -> Rows:
    return [
        {"_source_position": place, "_payload": line}
        for place, line in sent.lines.items()
        if place not in sent.facts
    ]


def write(rest: Rest, name: str, rows: Rows) -> None:
    columns = list(rows[0]) if rows else ["_source_position", "_payload"]
    types = {
        "_source_position": pa.struct([("name", pa.string()), ("part", pa.int64()), ("place", pa.int64())])
    }
    values = {c: [_struct(row[c]) if c == "_source_position" else row[c] for row in rows] for c in columns}
    arrays = {
        c: pa.array(values[c], type=types.get(c) or (pa.string() if not any(values[c]) else None))
        for c in columns
    }
    live = {"_deleted": pa.array([False] * len(rows), type=pa.bool_())}
    write_deltalake(
        str(rest.project.folder / ".strandline" / "lake" / name),
        pa.table({**arrays, **live}),
        mode="overwrite",
    )


def _struct(place: tuple[str, int, int]) -> dict[str, object]:
    return {"name": place[0], "part": place[1], "place": place[2]}


def test_tables_that_hold_what_they_must_break_no_law(rest: Rest) -> None:
    for law in (check_received, check_results, check_appended):
        law(rest)
    assert rest.block.lines
    assert len(rest.item.facts) < len(rest.item.lines), "some lines are broken"


@pytest.mark.parametrize(
    ("table", "spoil", "law", "says"),
    [
        ("item_lines", lambda rows: rows[1:], check_received, "L1 item_lines"),
        ("item_facts", lambda rows: [*rows, rows[5]], check_received, "nothing twice"),
        ("item_quarantine", lambda rows: rows[:-1], check_received, "L10 item_quarantine"),
        ("block_facts", lambda rows: rows[:-1], check_received, "L10 each block once"),
        ("item", lambda rows: [{**rows[0], "price": 10_001}, *rows[1:]], check_results, "L2 item"),
        ("worth", lambda rows: [{**rows[0], "items": 0}, *rows[1:]], check_results, "L2 worth"),
        ("sizes", lambda rows: rows[1:], check_results, "L2 sizes"),
        ("hot", lambda rows: [{**rows[0], "hash": "b0"}, *rows[1:]], check_results, "L2 hot"),
        ("told", lambda rows: [*rows, rows[0]], check_appended, "L5 nothing twice"),
        ("told", lambda rows: rows[1:], check_appended, "L2 told misses nothing"),
        (
            "alerts",
            lambda rows: [*rows, {"number": 3, "hash": "none"}],
            check_appended,
            "L2 alerts invents nothing",
        ),
    ],
)
def test_what_is_lost_doubled_or_wrong_is_noticed(
    rest: Rest, table: str, spoil: Callable[[Rows], Rows], law: Callable[[Rest], None], says: str
) -> None:
    with spoilt(rest, table, spoil), pytest.raises(AssertionError, match=says):
        law(rest)


def test_a_reader_sees_a_row_that_is_there_twice(rest: Rest) -> None:
    with spoilt(rest, "item", lambda rows: [*rows, rows[0]]) as right:
        (twice,) = find_twice(rest.project.folder, "item")

    assert "twice" in twice
    assert right[0]["id"] in twice


def test_a_reader_is_not_disturbed_by_what_was_not_built_yet(tmp_path: Path) -> None:
    write_at_once(tmp_path / "strandline.yaml", PROJECT)

    assert [find_twice(tmp_path, dataset) for dataset in ONCE] == [[]] * len(ONCE)


@pytest.fixture(scope="module")
def publishing_rest(tmp_path_factory: pytest.TempPathFactory) -> Rest:
    """A soak's project with the events that its trigger must have recorded for the items as they are."""
    folder = tmp_path_factory.mktemp("soak")
    write_at_once(folder / "strandline.yaml", PROJECT + publishing(1))
    feeder = Feeder(folder, random.Random(7))
    for _ in range(20):
        feeder.feed()
    rest = Rest.of(folder, feeder)
    dear = [(key, row) for key, row in latest_by(rest.item, "id").items() if row["price"] >= DEAR]
    fired = [Fired(key=key, timestamp=row["at"], data=f'{{"id":"{key}"}}') for key, row in dear]
    log = EventLog(trigger=TRIGGER, uri=folder / ".strandline" / "lake" / TRIGGER)
    log.append(*fired, Fired(key="gone", timestamp=1), Fired(key="gone", timestamp=2, match=False))
    log.append(Fired(key="q", timestamp=1, quiet=True), Fired(key="q", timestamp=2, match=False, quiet=True))
    return rest


def came_to(rest: Rest) -> Told:
    """What a receiver must have got: some of it twice."""
    told = Told("7")
    columns = ("event_id", "event_type", "key", "data", "recorded_at", "quiet")
    for event_id, event_type, key, data, at, quiet in rest.rows(
        f"{TRIGGER} order by version, position", *columns
    ):
        if not quiet:
            body = {"event_id": event_id, "event_type": event_type, "key": key, "at": str(at)}
            told.came.append((event_id, json.dumps({**body, "data": json.loads(data)}).encode()))
    told.came += told.came[:3]
    return told


def test_webhooks_that_came_as_they_must_break_no_law(publishing_rest: Rest) -> None:
    told = came_to(publishing_rest)

    assert len(told.came) > 50
    check_told(publishing_rest, told)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda came: came[4:], "none is lost"),
        (lambda came: [*came, (came[0][0], came[0][1] + b" ")], "no id has two bodies"),
        (lambda came: [*came, ("0" * 32, b"{}")], "only what was recorded is sent"),
        (
            lambda came: [*came, (make_event_id(TRIGGER, "q", 1), b'{"data":{"gr\xc3\xb6\xc3\x9fe":1.5}}')],
            "no quiet one",
        ),
        (lambda came: came[::-1], "in order"),
        (lambda came: [(came[0][0], b'{"data":{}}'), *came[1:]], "the row as it was recorded"),
    ],
)
def test_a_webhook_that_is_lost_changed_or_out_of_order_is_noticed(
    publishing_rest: Rest, spoil: Callable[[Any], Any], says: str
) -> None:
    told = came_to(publishing_rest)
    told.came = spoil(told.came)

    with pytest.raises(AssertionError, match=says):
        check_told(publishing_rest, told)


def test_an_event_that_contradicts_the_items_is_noticed(publishing_rest: Rest) -> None:
    told = came_to(publishing_rest)
    log = EventLog(trigger=TRIGGER, uri=publishing_rest.project.folder / ".strandline" / "lake" / TRIGGER)
    log.append(Fired(key="another", timestamp=3, quiet=True))

    with pytest.raises(AssertionError, match="events tell the state of every key"):
        check_told(publishing_rest, told)
