"""Rows of a dataset by a typed condition."""

from decimal import Decimal
from pathlib import Path

import pytest

from strandline.app.rows import OrderBy, RowsRequest, parse_order, read_rows, read_state
from strandline.model.condition_json import parse_condition
from strandline.model.errors import CallError
from tests.published_log import PublishedLog, trade


@pytest.fixture
def log(tmp_path: Path) -> PublishedLog:
    log = PublishedLog.create(tmp_path)
    log.commit({n: trade(n, quantity=n % 3, price=Decimal(n)) for n in range(1, 8)}, timestamp=5)
    log.commit({8: trade(8, weight=float("nan")), 1: None}, timestamp=6)
    return log


def ids(log: PublishedLog, **request: object) -> list[object]:
    page = read_rows(log.open(), RowsRequest(dataset="trades", **request))  # type: ignore[arg-type]
    return [row["trade_id"] for row in page.rows]


def test_rows_are_filtered_and_ordered_with_null_first(log: PublishedLog) -> None:
    assert ids(log, where={"quantity": {"_gte": 1}}, order_by=parse_order("quantity desc, trade_id")) == [
        2,
        5,
        4,
        7,
    ]
    assert ids(log, order_by=(OrderBy(column="quantity"),), limit=2) == [8, 3]
    assert ids(log, order_by=(OrderBy(column="quantity", descending=True),))[-1] == 8


def test_pages_are_of_one_version_and_together_the_whole(log: PublishedLog) -> None:
    first = read_rows(log.open(), RowsRequest(dataset="trades", limit=4))
    log.commit({3: None, 99: trade(99)})

    assert first.next is not None
    second = read_rows(log.open(), RowsRequest(dataset="trades", limit=4, after=first.next))

    assert [row["trade_id"] for row in (*first.rows, *second.rows)] == [2, 3, 4, 5, 6, 7, 8]
    assert (first.version, second.version, second.next) == (1, 1, None)


def test_values_are_those_of_json_and_metadata_is_hidden(log: PublishedLog) -> None:
    page = read_rows(log.open(), RowsRequest(dataset="trades", where={"trade_id": {"_in": [8, 2]}}))

    assert page.rows[0]["price"] == "2.0000"
    assert page.rows[1]["weight"] == "NaN"
    assert not any(name.startswith("_") for name in page.columns)
    assert page.reprocessing_status is None


def test_rows_as_they_were_known_at_a_version(log: PublishedLog) -> None:
    assert ids(log, known_at="0") == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize(
    ("request_of", "slug"),
    [
        ({"where": {"quantitty": {"_eq": 1}}}, "unknown-column"),
        ({"where": {"_deleted": {"_eq": True}}}, "unknown-column"),
        ({"where": {"quantity": {"_eq": "many"}}}, "filter-type"),
        ({"where": []}, "filter-unknown"),
        ({"order_by": (OrderBy(column="_key"),)}, "bad-order"),
        ({"after": "x"}, "bad-page"),
        ({"known_at": "77"}, "unknown-version"),
    ],
)
def test_a_wrong_request_is_refused_with_its_slug(
    log: PublishedLog, request_of: dict[str, object], slug: str
) -> None:
    with pytest.raises(CallError) as refused:
        ids(log, **request_of)

    assert refused.value.slug == slug
    assert refused.value.remedy


def test_an_order_that_names_no_column_is_refused(log: PublishedLog) -> None:
    with pytest.raises(CallError, match="not a column to order by"):
        parse_order("price upwards")

    assert ids(log, order_by=parse_order("price desc"), limit=1) == [7]


def test_the_state_of_a_version_has_times_beside_its_rows(log: PublishedLog) -> None:
    where = parse_condition({"trade_id": {"_lte": 2}})
    state = [row for part in read_state(log.open(), "trades", 0, where, ("trade_id",), 10) for row in part]

    assert [(one.row["trade_id"], one.timestamp) for one in state] == [(1, "5"), (2, "5")]
    assert "_source_ts" not in state[0].row


def test_too_large_a_state_is_refused_before_all_of_it_is_read(log: PublishedLog) -> None:
    everything = parse_condition({})

    with pytest.raises(CallError) as refused:
        list(read_state(log.open(), "trades", 0, everything, ("trade_id",), 6))

    assert refused.value.slug == "snapshot-too-large"
    assert list(read_state(log.open(), "trades", 0, parse_condition({"trade_id": {"_lt": 4}}), (), 6))


def test_what_a_refused_reader_of_rows_is_told_to_do_settles_it(log: PublishedLog) -> None:
    """`bad-order`, `bad-page` and `snapshot-too-large`."""
    slugs = []
    for wrong in (
        lambda: parse_order("price upwards"),
        lambda: ids(log, after="x"),
        lambda: list(read_state(log.open(), "trades", 0, parse_condition({}), (), 1)),
    ):
        with pytest.raises(CallError) as refused:
            wrong()
        slugs.append(refused.value.slug)
    page = read_rows(log.open(), RowsRequest(dataset="trades", order_by=parse_order("price desc"), limit=5))

    assert slugs == ["bad-order", "bad-page", "snapshot-too-large"]
    assert [row["trade_id"] for row in page.rows] == [7, 6, 5, 4, 3]
    assert ids(log, order_by=parse_order("price desc"), limit=5, after=page.next) == [2, 8]
    narrower = parse_condition({"trade_id": {"_eq": 3}})
    assert len(list(read_state(log.open(), "trades", 0, narrower, (), 1))) == 1
