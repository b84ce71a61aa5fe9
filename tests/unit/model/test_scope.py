"""A scope as text and as JSON, and when it is empty."""

import json
from datetime import date

import pytest
from hypothesis import given

from strandline.model.condition_json import from_row_filter, to_row_filter
from strandline.model.invalidations import from_columns, to_columns
from strandline.model.scope import (
    EVERYTHING,
    NOTHING,
    ClockMove,
    Described,
    Everything,
    Increment,
    Keys,
    KeysFrom,
    Partitions,
    Range,
    Rows,
    Scope,
    add_origins,
    find_filter,
    find_partitions,
    follows_inputs,
    is_empty,
)
from strandline.model.scope_json import scope_from_json, scope_to_json
from strandline.model.scope_text import describe
from tests.unit.model.scopes import scopes

SALES = Increment(dataset="sales", first=3, last=3, rows=1200)
COMING = Increment(dataset="sales", coming=True)
CLOCK = ClockMove(before="2024-01-01", now="2024-01-02")
WHERE = from_row_filter({"block": {"gte": 5, "lte": 9}})
DAY = date(2024, 1, 13)

TEXTS: dict[str, Scope] = {
    "everything": EVERYTHING,
    "everything: the lowest block is another": Everything(because="the lowest block is another"),
    "nothing": NOTHING,
    "the rows in version 3 of `sales`, about 1,200 rows": Rows(origins=(SALES,)),
    "2 files, 1,500 bytes": Rows(count=2, of="files", bytes=1500),
    "1 fact offered": Rows(count=1, of="facts offered"),
    "1 entity": Keys(count=1, of="entities"),
    "the quarantined positions": Rows(refused=True),
    "the keys in what this run writes to `sales`": Keys(origins=(COMING,)),
    "the keys in all of `sales`": Keys(origins=(Increment(dataset="sales"),)),
    "the keys in versions 3 to 5 of `a`, about 7 rows, 2 invalidations (checked, reorg) and what this run "
    "writes to `a`; version 3 of `sales`, about 1,200 rows": Keys(
        origins=(
            Increment(
                dataset="a",
                first=3,
                last=5,
                rows=7,
                invalidations=2,
                reasons=("checked", "reorg"),
                coming=True,
            ),
            SALES,
        )
    ),
    "the keys in what changes as as_of moves from 2024-01-01 to 2024-01-02": Keys(origins=(CLOCK,)),
    "1,200 values of block": Keys(count=1200, of="values of block"),
    "block between 5 and 9": Keys(where=WHERE),
    "all keys from 2024-01-13 on": KeysFrom(from_on=DAY),
    "12 keys from 2024-01-13 on": KeysFrom(from_on=DAY, count=12),
    "the keys in what this run writes to `sales` from 2024-01-13 on": KeysFrom(
        from_on=DAY, origins=(COMING,)
    ),
    "a, b, c, d, e and 1 more": Partitions(names=("a", "b", "c", "d", "e", "f")),
    "4 partitions (a, b, c and 1 more); 2 not final yet": Partitions.counted(["a", "b", "c", "d"], 2),
    "0 partitions; 1 not final yet": Partitions.counted([], 1),
    "the partitions in what this run writes to `sales`": Partitions(origins=(COMING,)),
    "chain = 1 AND block between 5 and 9": Range(
        column="block", low=5, high=9, where=from_row_filter({"chain": 1})
    ),
    "3 numbers, 5 to 9": Range(column="block", low=5, high=9, count=3, of="numbers"),
    "12 keys": Described(text="12 keys"),
}


@pytest.mark.parametrize(("text", "scope"), TEXTS.items())
def test_a_scope_is_described(text: str, scope: Scope) -> None:
    assert describe(scope) == text


@given(scopes)
def test_a_scope_reads_back_from_its_json_as_it_was_written(scope: Scope) -> None:
    text = json.dumps(scope_to_json(scope))

    assert scope_from_json(json.loads(text)) == scope


@given(scopes)
def test_every_scope_has_a_text_and_an_empty_one_covers_no_rows_by_itself(scope: Scope) -> None:
    assert isinstance(describe(scope), str)
    assert follows_inputs(scope) or not is_empty(scope)


def test_json_holds_what_is_not_at_its_default() -> None:
    assert scope_to_json(Keys(count=12)) == {"kind": "keys", "count": 12}
    assert scope_to_json(KeysFrom(from_on=DAY)) == {"kind": "keys_from", "from_on": "2024-01-13"}
    assert scope_to_json(Range(column="block", low=5, high=9)) == {
        "kind": "range",
        "column": "block",
        "low": 5,
        "high": 9,
    }


def test_a_field_that_a_later_strandline_adds_is_passed_over() -> None:
    assert scope_from_json({"kind": "keys", "count": 12, "mood": "calm"}) == Keys(count=12)


@pytest.mark.parametrize(
    "value",
    [
        None,
        12,
        [],
        {},
        {"kind": "mood"},
        {"kind": ["keys"]},
        {"kind": "keys", "count": "12"},
        {"kind": "keys", "count": True},
        {"kind": "keys", "where": {"block": {"near": 5}}},
        {"kind": "keys", "origins": [5]},
        {"kind": "keys", "origins": [{}]},
        {"kind": "keys_from"},
        {"kind": "keys_from", "from_on": "soon"},
        {"kind": "range", "column": "block", "low": None, "high": 5},
        {"kind": "described", "text": "12 keys"},
    ],
)
def test_what_is_not_a_scope_is_refused(value: object) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        scope_from_json(value)


@pytest.mark.parametrize(
    "scope",
    [
        NOTHING,
        Keys(),
        Keys(count=0),
        Rows(),
        Partitions(),
        Partitions.counted([], 3),
        KeysFrom(from_on=DAY, count=0),
    ],
)
def test_an_empty_scope(scope: Scope) -> None:
    assert is_empty(scope)


@pytest.mark.parametrize(
    "scope",
    [
        EVERYTHING,
        Everything(origins=(SALES, CLOCK)),
        Keys(where=WHERE),
        Keys(origins=(CLOCK,)),
        Keys(origins=(SALES, CLOCK)),
        KeysFrom(from_on=DAY),
        KeysFrom(from_on=DAY, origins=(CLOCK, SALES)),
        Partitions(names=("0-10",)),
        Partitions(names=("0-10",), origins=(SALES,)),
        Rows(refused=True),
        Range(column="block", low=5, high=9),
    ],
)
def test_what_a_person_or_the_clock_asks_for_is_left_when_no_input_has_moved(scope: Scope) -> None:
    assert not is_empty(scope)
    assert not follows_inputs(scope)


@pytest.mark.parametrize(
    "scope",
    [
        Everything(origins=(COMING,)),
        Rows(origins=(SALES,)),
        Keys(origins=(SALES, COMING)),
        KeysFrom(from_on=DAY, origins=(SALES,)),
        Partitions(origins=(COMING,)),
    ],
)
def test_of_a_scope_that_follows_from_inputs_nothing_is_left_when_none_has_moved(scope: Scope) -> None:
    assert not is_empty(scope)
    assert follows_inputs(scope)


def test_origins_are_added_to_those_of_a_scope() -> None:
    assert add_origins(Keys(origins=(SALES,)), (CLOCK,)) == Keys(origins=(SALES, CLOCK))
    assert add_origins(Everything(origins=(SALES,)), (CLOCK,)) == Everything(origins=(SALES, CLOCK))


def test_everything_that_is_covered_in_any_case_has_no_origins_to_add_to() -> None:
    assert add_origins(EVERYTHING, (CLOCK,)) == EVERYTHING


def test_the_rows_of_a_range_are_those_of_its_filter_between_its_edges() -> None:
    where = find_filter(Range(column="block", low=5, high=9, where=from_row_filter({"chain": 1})))

    assert where is not None
    assert to_row_filter(where) == {"block": {"gte": 5, "lte": 9}, "chain": {"eq": 1}}


def test_only_partitions_that_someone_named_are_a_list_to_work_on() -> None:
    assert find_partitions(Partitions(names=("0-10", "10-20"))) == ("0-10", "10-20")
    assert find_partitions(Partitions.counted(["0-10"])) == ()
    assert find_partitions(EVERYTHING) == ()


@pytest.mark.parametrize(
    ("scope", "columns"),
    [
        (Range(column="block", low=5, high=9), ("row_range", "", {"block": {"gte": 5, "lte": 9}})),
        (Rows(where=WHERE), ("row_range", "", {"block": {"gte": 5, "lte": 9}})),
        (Partitions(names=("5-10",), where=WHERE), ("partition", "5-10", {"block": {"gte": 5, "lte": 9}})),
        (Partitions(names=("5-10",)), ("partition", "5-10", {})),
    ],
)
def test_the_columns_of_an_invalidation_name_the_same_rows(
    scope: Scope, columns: tuple[str, str, dict[str, object]]
) -> None:
    word, partition_key, row_filter = columns

    stored = to_columns(scope)

    assert stored == {"scope": word, "partition_key": partition_key, "row_filter": row_filter}
    assert to_columns(from_columns(partition_key, row_filter)) == stored
