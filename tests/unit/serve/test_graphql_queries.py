"""Queries over `POST /graphql`: the schema, answers, and what is refused before anything is executed."""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from graphql import build_client_schema, get_introspection_query, is_non_null_type, print_schema
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from strandline.app import keyed
from strandline.app.keyed import KeyedTable
from strandline.serve import graphql_routes
from strandline.serve.graphql import engine
from strandline.serve.graphql.schema import make_catalogue
from strandline.serve.graphql.socket import PROTOCOL
from tests.published_log import PROJECT, PublishedLog, trade
from tests.unit.serve.builders import bearer
from tests.unit.serve.builders import serving as serving_client
from tests.unit.serve.serving import KEY, KEYS, OTHER

SCHEMA = """\
type Query {
  trades(where: tradesExpression, order_by: [tradesOrder!], limit: Int = 100, offset: Int = 0): [trades!]!
  trades_by_pk(trade_id: BigInt!): trades
}

type trades {
  trade_id: BigInt!
  symbol: String
  price: Decimal
}

\"\"\"A whole number of 64 bits, as a string.\"\"\"
scalar BigInt

\"\"\"An exact number, as a string at its scale.\"\"\"
scalar Decimal

input tradesExpression {
  trade_id: BigIntComparison
  symbol: StringComparison
  price: DecimalComparison
  _and: [tradesExpression!]
  _or: [tradesExpression!]
  _not: tradesExpression
}

input BigIntComparison {
  _eq: BigInt
  _neq: BigInt
  _gt: BigInt
  _gte: BigInt
  _lt: BigInt
  _lte: BigInt
  _in: [BigInt!]
  _nin: [BigInt!]
  _is_null: Boolean
}
"""
UPDATE = """\
type Subscription {
  trades(where: tradesExpression, after: String, snapshot: Boolean = true): tradesUpdate!
}

type tradesUpdate {
  operation: RowOperation!
  data: trades!
  fields: [String!]!
  ts_timestamp: String
  ts_cursor: String
}

enum RowOperation {
  INSERT
  UPDATE
  DELETE
}
"""


@pytest.fixture
def log(tmp_path: Path) -> PublishedLog:
    log = PublishedLog.create(tmp_path)
    log.commit(
        {
            n: trade(n, symbol="ABC"[n % 3], quantity=n, price=Decimal(f"{n}.5000"), weight=n / 2)
            for n in range(1, 8)
        }
    )
    return log


@pytest.fixture
def http(log: PublishedLog) -> Iterator[TestClient]:
    with serving_client(log.folder, routes=graphql_routes.ROUTES, sockets=graphql_routes.SOCKETS) as (
        client,
        _,
    ):
        yield client


def ask(http: TestClient, query: str, **variables: object) -> Any:
    return http.post("/graphql", json={"query": query, "variables": variables}).json()


def table(name: str, columns: dict[str, str], **more: Any) -> KeyedTable:
    return KeyedTable(
        name=name,
        columns=tuple(columns.items()),
        **{"key": ("trade_id",), "always_named": True, "published": False, **more},
    )


def make(*tables: KeyedTable) -> Any:
    return make_catalogue(tables, lambda *_, **__: [], lambda *_, **__: None)


def test_the_schema_is_printed_as_the_language_says() -> None:
    trades = table(
        "trades", {"trade_id": "long", "symbol": "string", "price": "decimal(12,4)"}, published=True
    )

    printed = print_schema(make(trades).schema)

    assert all(f"{part.strip()}\n" in f"{printed}\n" for part in SCHEMA.split("\n\n"))
    assert all(f"{part.strip()}\n" in f"{printed}\n" for part in UPDATE.split("\n\n"))


def test_what_graphql_cannot_name_is_left_out_and_said() -> None:
    made = make(
        table("a-b", {"trade_id": "long"}),
        table("orders", {"trade_id": "long", "__x": "string", "1a": "string", "größe": "double"}),
        table("ordersUpdate", {"trade_id": "long"}),
        table("Order", {"trade_id": "long"}),
        table("fine", {"trade_id": "long", "1a": "string", "tags": "array", "_and": "string"}),
        table("fine_by_pk", {"trade_id": "long"}),
    )

    assert set(made.datasets) == set()
    alone = make(table("fine", {"trade_id": "long", "1a": "string", "tags": "array", "_and": "string"}))
    printed = print_schema(alone.schema)
    assert "tags: JSON" in printed
    assert "tags: NullComparison" in printed
    assert alone.left_out == ("the column `1a` of `fine`", "the column `_and` of `fine`")
    assert "the column `1a` of `fine`" in (alone.schema.description or "")


def test_a_key_that_may_be_null_or_that_cannot_be_compared() -> None:
    printed = print_schema(
        make(
            table("maybe", {"trade_id": "long"}, always_named=False),
            table("raw", {"trade_id": "binary", "x": "long"}),
        ).schema
    )

    assert "maybe_by_pk(trade_id: BigInt): maybe" in printed
    assert "raw_by_pk" not in printed


def test_a_query_is_filtered_ordered_and_paged(http: TestClient) -> None:
    query = """query($where: tradesExpression) {
        trades(where: $where, order_by: [{symbol: desc}, {quantity: asc}], limit: 3, offset: 1) {
          trade_id symbol price weight } }"""

    answer = ask(http, query, where={"quantity": {"_lt": "7"}})

    assert answer["data"]["trades"] == [
        {"trade_id": "5", "symbol": "C", "price": "5.5000", "weight": 2.5},
        {"trade_id": "1", "symbol": "B", "price": "1.5000", "weight": 0.5},
        {"trade_id": "4", "symbol": "B", "price": "4.5000", "weight": 2.0},
    ]


def test_a_row_by_its_key_and_one_that_is_not_there(http: TestClient) -> None:
    answer = ask(
        http, '{ a: trades_by_pk(trade_id: "3") { symbol } b: trades_by_pk(trade_id: 99) { symbol } }'
    )

    assert answer == {"data": {"a": {"symbol": "A"}, "b": None}}


def test_the_standard_introspection_query_passes_and_shows_no_metadata(http: TestClient) -> None:
    answer = ask(http, get_introspection_query())

    printed = print_schema(build_client_schema(answer["data"]))
    assert "type tradesUpdate" in printed
    assert "trades_by_pk(trade_id: BigInt!): trades" in printed
    assert "type quotes {" in printed  # declared with all its types
    assert "_source_ts" not in printed
    assert "_deleted" not in printed


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("{ trades(limit: 1001) { symbol } }", "TOO_MANY_ROWS"),
        ("{ " + " ".join(f"a{n}: trades {{ symbol }}" for n in range(11)) + " }", "TOO_MANY_ROWS"),
        ("{ trades(limit: -1) { symbol } }", "BAD_LIMIT"),
        ("{ trades(limit: null) { symbol } }", "BAD_LIMIT"),
        ("{ trades { " + " ".join(f"a{n}: symbol" for n in range(200)) + " } }", "TOO_MANY_FIELDS"),
        (
            "{ trades { ...A } } "
            + " ".join(
                f"fragment {a} on trades {{ ...{b} ...{b} }}"
                for a, b in zip("ABCDEFGH", "BCDEFGHI", strict=True)
            )
            + " fragment I on trades { symbol }",
            "TOO_MANY_FIELDS",
        ),
        ("{ " + "{ " * 3 + "}" * 4, "SYNTAX"),
        ("{ trades { symbol " + "# \n, symbol " * 2_100 + "} }", "TOO_MANY_TOKENS"),
        ("{ __schema { types { fields { type { fields { type { fields { name } } } } } } } }", "INVALID"),
        ("subscription { trades { operation } }", "SUBSCRIPTION_OVER_HTTP"),
        ("{ nobody { x } }", "INVALID"),
        ("{ trades { ...F } } fragment F on trades { ...F }", "INVALID"),
        ("query A { trades { symbol } } query B { trades { symbol } }", "UNKNOWN_OPERATION"),
        ("mutation { x }", "INVALID"),
        (
            "{ trades { symbol } b: trades(where: " + "{_not: " * 9 + "{}" + "}" * 9 + ") { symbol } }",
            "FILTER_TOO_LARGE",
        ),
        (
            "{ trades(where: {_or: [" + "{checked: {_eq: true}} " * 101 + "]}) { symbol } }",
            "FILTER_TOO_LARGE",
        ),
        ("{ trades(order_by: [" + "{symbol: asc} " * 101 + "]) { symbol } }", "TOO_MANY_ORDERS"),
    ],
)
def test_what_is_too_large_or_wrong_is_refused_before_anything_is_executed(
    http: TestClient, query: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "execute_sync", lambda *_, **__: pytest.fail("it was executed"))

    answer = http.post("/graphql", json={"query": query})

    assert answer.status_code == 400
    assert {error["extensions"]["code"] for error in answer.json()["errors"]} == {code}


@pytest.mark.parametrize(
    ("where", "code"),
    [
        ("{quantity: {_eq: null}}", "FILTER_UNKNOWN"),
        ("{quantity: {}}", "FILTER_UNKNOWN"),
        ('{traded_on: {_eq: "today"}}', "FILTER_TYPE"),
        ("{quantity: {_in: [" + "1 " * 1_500 + "]} price: {_in: []}}", None),
    ],
)
def test_a_wrong_condition_is_an_error_of_its_field(http: TestClient, where: str, code: str | None) -> None:
    answer = ask(http, f"{{ trades(where: {where}) {{ symbol }} }}")

    if code is None:
        assert answer == {"data": {"trades": []}}
    else:
        assert answer["data"] is None
        assert answer["errors"][0]["extensions"]["code"] == code
        assert answer["errors"][0]["extensions"]["remedy"]


def test_a_list_of_values_in_a_variable_is_bounded_too(http: TestClient) -> None:
    query = "query($ids: [BigInt!]) { trades(where: {trade_id: {_in: $ids}}) { trade_id } }"

    assert len(ask(http, query, ids=["1", "2"])["data"]["trades"]) == 2
    refused = ask(http, query, ids=[str(n) for n in range(10_001)])
    assert refused["errors"][0]["extensions"]["code"] == "FILTER_TOO_LARGE"


def test_only_post_is_answered_and_bodies_have_one_shape(http: TestClient) -> None:
    assert http.get("/graphql", params={"query": "{ __typename }"}).status_code == 405
    assert http.post("/graphql", json=[{"query": "{ __typename }"}]).status_code == 400
    assert http.post("/graphql", json={"query": 7}).status_code == 400
    assert http.post("/graphql", json={"query": "{ __typename }", "variables": []}).status_code == 400
    assert http.post("/graphql", content="{ __typename }").status_code == 415
    asked = {"accept": "application/graphql-response+json"}
    answer = http.post("/graphql", json={"query": "{ __typename }"}, headers=asked)
    assert answer.headers["content-type"] == "application/graphql-response+json"
    assert answer.json() == {"data": {"__typename": "Query"}}


def test_introspection_needs_a_key_and_a_role_like_everything(log: PublishedLog) -> None:
    log.folder.joinpath("strandline.yaml").write_text(PROJECT + KEYS)
    body = {"query": "{ __schema { queryType { name } } }"}

    with serving_client(log.folder, routes=graphql_routes.ROUTES) as (http, _):
        assert http.post("/graphql", json=body).status_code == 401
        assert http.post("/graphql", json=body, headers=bearer(OTHER)).status_code == 403
        assert http.post("/graphql", json=body, headers=bearer(KEY)).status_code == 200


def test_no_field_of_the_schema_is_answered_without_a_key_that_may_read(log: PublishedLog) -> None:
    log.folder.joinpath("strandline.yaml").write_text(PROJECT + KEYS)
    routes, sockets = graphql_routes.ROUTES, graphql_routes.SOCKETS
    with serving_client(log.folder, routes=routes, sockets=sockets) as (http, _):
        operations = find_operations(http)
        for query in operations["query"]:
            answers = [http.post("/graphql", json={"query": query}, headers=h) for h in ({}, bearer(OTHER))]
            assert [(a.status_code, "data" in a.json()) for a in answers] == [(401, False), (403, False)]
            assert "errors" not in http.post("/graphql", json={"query": query}, headers=bearer(KEY)).json()
        for query in (*operations["query"], *operations["subscription"]):
            asked = {"type": "subscribe", "id": "1", "payload": {"query": query}}
            assert close_code(http, asked) == 4401
            for key in (None, "x" * 40, OTHER):
                assert close_code(http, {"type": "connection_init", "payload": {"access_key": key}}) == 4403

    assert [len(fields) for fields in operations.values()] == [4, 1]


def find_operations(http: TestClient) -> dict[str, list[str]]:
    """An operation for each field of the schema that can be asked for."""
    body = {"query": get_introspection_query()}
    schema = build_client_schema(http.post("/graphql", json=body, headers=bearer(KEY)).json()["data"])
    return {
        kind: [
            f"{kind} {{ {name}{'(' + ', '.join(needed) + ')' if needed else ''} {{ __typename }} }}"
            for name, field in root.fields.items()
            for needed in [[f'{a}: "1"' for a, one in field.args.items() if is_non_null_type(one.type)]]
        ]
        for kind, root in (("query", schema.query_type), ("subscription", schema.subscription_type))
        if root is not None
    }


def close_code(http: TestClient, message: dict[str, Any]) -> int:
    with http.websocket_connect("ws://localhost/graphql", subprotocols=[PROTOCOL]) as socket:
        socket.send_json(message)
        with pytest.raises(WebSocketDisconnect) as closed:
            socket.receive_json()
    return closed.value.code


def test_what_is_declared_with_all_its_types_is_known_before_it_is_built_and_has_no_rows(
    http: TestClient, log: PublishedLog, tmp_path: Path
) -> None:
    """`quotes` was never built. `trades` was, and has the schema that it had before."""
    empty = PublishedLog.create(tmp_path / "empty")
    declared = {table.name: table for table in keyed.find_keyed_tables(empty.open()).tables}
    built = {table.name: table for table in keyed.find_keyed_tables(log.open()).tables}

    answer = ask(http, '{ quotes { symbol price } quotes_by_pk(symbol: "AAPL") { price } }')

    assert answer == {"data": {"quotes": [], "quotes_by_pk": None}}
    assert declared.keys() == built.keys() == {"trades", "quotes"}
    assert dict(declared["trades"].columns) == dict(built["trades"].columns)
    assert replace(declared["trades"], columns=()) == replace(built["trades"], columns=())


def test_what_has_types_that_only_its_table_tells_is_known_once_it_is_built(tmp_path: Path) -> None:
    log = PublishedLog.create(
        tmp_path, PROJECT.replace("symbol:    symbol", 'symbol: {sql: "upper(symbol)"}')
    )
    before = {table.name for table in keyed.find_keyed_tables(log.open()).tables}
    log.commit({1: trade(1)})

    after = {table.name for table in keyed.find_keyed_tables(log.open()).tables}

    assert (before, after) == ({"quotes"}, {"trades", "quotes"})


def test_the_schema_follows_the_tables(
    http: TestClient, log: PublishedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_FRESH", 0.0)
    assert "errors" in ask(http, "{ trades { venue } }")

    from deltalake import write_deltalake

    rows = log.with_column("venue", "XNAS")
    write_deltalake(log.table("trades"), rows, mode="overwrite", schema_mode="overwrite")

    assert ask(http, "{ trades(limit: 1) { venue } }") == {"data": {"trades": [{"venue": "XNAS"}]}}


def test_tables_that_did_not_change_are_not_read_again(
    log: PublishedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = keyed.find_keyed_tables(log.open())
    monkeypatch.setattr(keyed, "find_columns", lambda *_: pytest.fail("it was read again"))

    assert keyed.find_keyed_tables(log.open(), before) == before
