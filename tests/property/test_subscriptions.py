"""Subscriptions tell what `graphql.subscribe` tells about the same changes, each exactly once.

The oracle executes each change with the library, for one subscriber, with its own evaluation of conditions.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from graphql import parse, subscribe
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.app.changes import Change, FollowedLog, PublishedChange
from strandline.app.keyed import KeyedTable
from strandline.model.condition_json import parse_condition
from strandline.publish.filtered_changes import make_filter
from strandline.serve.graphql.operations import prepare
from strandline.serve.graphql.schema import Catalogue, make_catalogue
from strandline.serve.graphql.selection import compile_subscription
from strandline.serve.subscriptions.feed import Feed
from strandline.serve.subscriptions.group import Group, Wanted
from strandline.serve.subscriptions.outbox import Outbox, Ticket
from tests.published_log import PublishedLog, Row, trade

TYPES = {
    "trade_id": "long",
    "symbol": "string",
    "quantity": "long",
    "price": "decimal(12,4)",
    "weight": "double",
    "booked_at": "timestamp",
    "traded_on": "date",
    "checked": "boolean",
}
TABLE = KeyedTable(
    name="trades", columns=tuple(TYPES.items()), key=("trade_id",), always_named=True, published=True
)

ROWS = st.fixed_dictionaries(
    {
        "symbol": st.sampled_from([None, "AAPL", "größe", 'a"\\\u2028b', ""]),
        "quantity": st.sampled_from([None, 0, 1, -(2**63), 2**53 + 1]),
        "price": st.sampled_from([None, "1.5000", "0.0000", "99999999.9999"]),
        "weight": st.sampled_from([None, 0.5, "NaN", "-Infinity", 1e300]),
        "checked": st.sampled_from([None, True, False]),
    }
)
CHANGES = st.lists(st.tuples(st.integers(1, 3), st.none() | ROWS), min_size=1, max_size=12)

COMPARISONS = st.one_of(
    st.builds(
        lambda operator, value: {"quantity": {operator: value}},
        st.sampled_from(["_eq", "_neq", "_gt", "_gte", "_lt", "_lte"]),
        st.sampled_from([0, 1, 2**53 + 1]),
    ),
    st.builds(
        lambda operator, values: {"symbol": {operator: values}},
        st.sampled_from(["_in", "_nin"]),
        st.lists(st.sampled_from(["AAPL", "größe"]), max_size=2),
    ),
    st.builds(
        lambda column, null: {column: {"_is_null": null}},
        st.sampled_from(["quantity", "symbol", "price"]),
        st.booleans(),
    ),
    st.builds(lambda value: {"checked": {"_eq": value}}, st.booleans()),
)
CONDITIONS = st.recursive(
    COMPARISONS,
    lambda inner: st.one_of(
        st.builds(lambda parts: {"_and": parts}, st.lists(inner, max_size=2)),
        st.builds(lambda parts: {"_or": parts}, st.lists(inner, max_size=2)),
        st.builds(lambda part: {"_not": part}, inner),
    ),
    max_leaves=4,
)

FLAG = st.sampled_from(["", "@include(if: $yes)", "@skip(if: $yes)", "@include(if: $no)", "@skip(if: false)"])


@st.composite
def columns(draw: st.DrawFn) -> str:
    names = draw(st.lists(st.sampled_from([*TYPES, "__typename"]), min_size=1, max_size=4))
    fields = []
    for name in names:
        alias = draw(st.sampled_from(["", f"as_{name.strip('_')}: "]))
        fields.append(f"{alias}{name} {draw(FLAG)}")
    wrap = draw(st.sampled_from(["{0}", "... {{ {0} }}", "... on trades {{ {0} }}", "...Row {0}"]))
    return wrap.format(" ".join(fields)) + " trade_id"


@st.composite
def selections(draw: st.DrawFn) -> str:
    fields = ["operation", f"data {{ {draw(columns())} }}"]
    for _ in range(draw(st.integers(0, 3))):
        fields.append(
            draw(
                st.sampled_from(
                    [
                        "fields",
                        "ts_timestamp",
                        "ts_cursor",
                        "__typename",
                        "what: operation",
                        "row: data { id: trade_id quantity }",
                        "data { price symbol }",
                        "...Update",
                        "... on tradesUpdate @include(if: $yes) { when: ts_timestamp }",
                    ]
                )
            )
        )
    return " ".join(
        f"{field} {draw(FLAG) if ' ' not in field and '...' not in field else ''}" for field in fields
    )


def make_document(selection: str, alias: str) -> str:
    fragments = "fragment Row on trades { symbol twice: symbol }"
    fragments += " fragment Update on tradesUpdate { ts_cursor data { ...Row weight } }"
    used = "... on tradesUpdate @skip(if: true) { ...Update }"
    head = "subscription($where: tradesExpression, $yes: Boolean = true, $no: Boolean!)"
    used += " f: fields @include(if: $no) y: operation @skip(if: $yes)"
    return f"{head} {{ {alias}trades(where: $where) {{ {selection} {used} }} }} {fragments}"


def as_json(key: int, row: Row | None) -> Row | None:
    return None if row is None else {**dict.fromkeys(TYPES), "trade_id": key, **row}


def holds(where: Any, row: Row | None) -> bool | None:
    """An evaluation of its own, of three truth values."""
    if row is None:
        return False
    truths: list[bool | None] = []
    for name, content in where.items():
        if name == "_and":
            truths.append(all_of([holds(part, row) for part in content]))
        elif name == "_or":
            inner = all_of([negate(holds(part, row)) for part in content])
            truths.append(negate(inner))
        elif name == "_not":
            truths.append(negate(holds(content, row)))
        else:
            truths += [compare(operator, row[name], value) for operator, value in content.items()]
    return all_of(truths)


def all_of(truths: list[bool | None]) -> bool | None:
    return False if False in truths else None if None in truths else True


def negate(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def compare(operator: str, value: Any, other: Any) -> bool | None:
    if operator == "_is_null":
        return bool((value is None) == other)
    if operator in ("_in", "_nin") and not other:
        return operator == "_nin"
    if value is None:
        return None
    match operator:
        case "_eq":
            return bool(value == other)
        case "_neq":
            return bool(value != other)
        case "_gt":
            return bool(value > other)
        case "_gte":
            return bool(value >= other)
        case "_lt":
            return bool(value < other)
        case "_lte":
            return bool(value <= other)
        case "_in":
            return value in other
        case _:
            return value not in other


def make_story(changes: list[tuple[int, Row | None]], where: Any) -> tuple[list[PublishedChange], list[Row]]:
    """The changes as a log has them, and the updates that a subscriber is owed."""
    rows: dict[int, Row] = {}
    published, updates = [], []
    for nth, (key, content) in enumerate(changes):
        old, new = rows.get(key), as_json(key, content)
        if old == new:
            continue
        rows.pop(key, None) if new is None else rows.update({key: new})
        both = old is not None and new is not None
        fields = [name for name in TYPES if not both or (old and new and old[name] != new[name])]
        operation = "INSERT" if old is None else "DELETE" if new is None else "UPDATE"
        published.append(
            PublishedChange(
                cursor=f"{nth:050x}",
                operation=Change(operation),
                key=str(key),
                timestamp=str(nth),
                fields=tuple(fields),
                row=json.loads(json.dumps(new or old)),
                before=None if old is None else {name: old[name] for name in fields},
            )
        )
        was, is_now = holds(where, old) is True, holds(where, new) is True
        if not was and not is_now:
            continue
        shown = operation if was and is_now else "INSERT" if is_now else "DELETE"
        update = {"operation": shown, "data": new if is_now else old, "ts_timestamp": str(nth)}
        updates.append(
            {**update, "ts_cursor": f"{nth:050x}", "fields": fields if was and is_now else list(TYPES)}
        )
    return published, updates


async def ask_library(catalogue: Catalogue, text: str, variables: Row, updates: list[Row]) -> list[Any]:
    async def tell(*_: object, **__: object) -> AsyncIterator[Row]:
        for update in updates:
            yield {"trades": update}

    answers = subscribe(
        catalogue.schema, parse(text), variable_values=variables, subscribe_field_resolver=tell
    )
    if asyncio.iscoroutine(answers):
        answers = await answers
    assert isinstance(answers, AsyncIterator), answers
    told = []
    async for answer in answers:
        assert not answer.errors, answer.errors
        told.append({"data": answer.data})
    return told


CATALOGUE = make_catalogue([TABLE], lambda *_, **__: [], lambda *_, **__: None)


@settings(max_examples=150)
@given(
    changes=CHANGES, where=st.none() | CONDITIONS, selection=selections(), alias=st.sampled_from(["", "a: "])
)
def test_messages_are_those_of_the_library(
    changes: list[tuple[int, Row | None]], where: Any, selection: str, alias: str
) -> None:
    text = make_document(selection, alias)
    variables = {"where": where, "no": False}
    published, updates = make_story(changes, where or {})

    wanted = compile_subscription(prepare(CATALOGUE, text, None, variables))
    condition = parse_condition(wanted.where or {}, TYPES)
    group = Group(row_filter=make_filter(condition, TYPES), encode=wanted.encode)
    ours = [json.loads(one) for change in published if (one := group.encode_change(change)) is not None]

    assert ours == asyncio.run(ask_library(CATALOGUE, text, variables, updates))


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("commit"),
            st.dictionaries(st.integers(1, 6), st.none() | st.integers(0, 20), min_size=1, max_size=3),
        ),
        st.tuples(st.just("join"), st.sampled_from([None, {"quantity": {"_gte": 10}}])),
        st.tuples(st.just("leave"), st.integers(0, 5)),
        st.tuples(st.just("resume"), st.integers(0, 5)),
        st.tuples(st.just("turn"), st.integers(0, 3)),
    ),
    min_size=4,
    max_size=14,
)


class Reader:
    """A subscriber that keeps the rows that it was told."""

    def __init__(self, where: Any) -> None:
        self.where = where
        self.rows: dict[str, Any] = {}
        self.cursors: list[str] = []
        self.rows_before_cursor = 0
        self.task: asyncio.Task[None] | None = None
        self.sender: asyncio.Task[None] | None = None

    def begin(self, feed: Feed, log: PublishedLog) -> None:
        after = self.cursors[-1] if self.cursors else None
        if after is None:
            self.rows = {}  # a snapshot begins anew
        self.ticket = Ticket()
        outbox = Outbox(lambda: None)
        wanted = Wanted(
            dataset="trades", where=self.where, same=json.dumps(self.where), encode=encode, after=after
        )
        self.task = asyncio.create_task(feed.subscribe(log.open(), wanted, outbox, self.ticket, lambda: None))
        self.sender = asyncio.create_task(outbox.send_all(self._take))

    async def _take(self, text: str) -> None:
        operation, row, cursor = json.loads(text)
        key = str(row["trade_id"])
        assert (key in self.rows) is (operation != "INSERT"), "a change does not fit to what was told before"
        if operation == "DELETE":
            del self.rows[key]
        else:
            self.rows[key] = row
        if cursor is not None:
            self.cursors.append(cursor)

    async def leave(self) -> None:
        for task in (self.task, self.sender):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        self.task = None


def encode(change: Any) -> str:
    return json.dumps([str(change.operation), change.row, change.cursor])


@settings(max_examples=25)
@given(steps=STEPS)
def test_whoever_joins_leaves_and_resumes_has_every_change_once(steps: list[tuple[str, Any]]) -> None:
    async def story(folder: Path) -> None:
        log = PublishedLog.create(folder)
        log.commit({n: trade(n, quantity=n * 3) for n in range(1, 6)})
        feed = Feed(FollowedLog(log.open(), "trades"), log.open().project.row_keys["trades"], lambda *_: None)
        readers: list[Reader] = []
        for step, value in steps:
            match step:
                case "commit":
                    log.commit(
                        {
                            n: None if q is None else trade(n, quantity=q, price=Decimal(f"{q}.0000"))
                            for n, q in value.items()
                        }
                    )
                    growing = asyncio.create_task(feed.grow())
                    if len(readers) % 2:
                        await growing
                case "join":
                    readers.append(Reader(value))
                    readers[-1].begin(feed, log)
                case "leave" if value < len(readers):
                    await readers[value].leave()
                case "resume" if value < len(readers) and readers[value].task is None:
                    readers[value].begin(feed, log)
                case _:
                    for _ in range(value if step == "turn" else 0):
                        await asyncio.sleep(0.001)
        for reader in readers:
            if reader.task is None:
                reader.begin(feed, log)
        await feed.grow()
        await asyncio.sleep(0.05)
        for _ in range(400):
            if all(reader.rows == expected(log, reader.where) for reader in readers):
                break
            await asyncio.sleep(0.005)
        for reader in readers:
            assert reader.rows == expected(log, reader.where)
            assert reader.cursors == sorted(set(reader.cursors))
            assert reader.task is not None
            assert not reader.task.done(), reader.task.exception()
            assert reader.sender is not None
            assert not reader.sender.done(), reader.sender.exception()
            await reader.leave()

    with TemporaryDirectory() as folder:
        asyncio.run(story(Path(folder)))


def expected(log: PublishedLog, where: Any) -> dict[str, Any]:
    return {str(key): row for key, row in log.seen().items() if where is None or (row["quantity"] or 0) >= 10}
