"""What is proved is so: on random rows, restricting a proved input to some keys leaves those keys' results as they are (L2)."""

import random

import pytest
import sqlglot
from sqlglot import exp

from strandline.declare.known import Known
from strandline.declare.relations import Table, analyse
from tests.unit.declare import proof_cases
from tests.unit.declare.random_queries import holds, make_query, make_rows

COLUMNS = {
    "property": ("tenant_id VARCHAR", "property_id VARCHAR", "status VARCHAR", "area BIGINT"),
    "unit": ("tenant_id VARCHAR", "property_id VARCHAR", "unit_id BIGINT", "size BIGINT"),
    "wide": ("tenant_id VARCHAR", "property_id VARCHAR", "x VARCHAR"),
    "odd": ("tenant_id VARCHAR", "property_id BIGINT", "value BIGINT"),
    "rates": ("tenant_id VARCHAR", "rate BIGINT"),
    "tariffs": ("tenant_id VARCHAR", "status VARCHAR", "fee BIGINT"),
}
NOT_IN_DUCKDB = {"passed: rows made many", "joined: of other types"}
PROVED = {name: case for name, case in proof_cases.CASES.items() if case[1] and name not in NOT_IN_DUCKDB}


@pytest.mark.parametrize(("sql", "proved"), PROVED.values(), ids=PROVED.keys())
def test_a_case_that_is_proved_holds_on_random_rows(sql: str, proved: str) -> None:
    chance = random.Random(sql)

    for _ in range(3):
        rows = make_rows(chance, COLUMNS)
        scope = {(tenant, chance.choice("xy")) for tenant in chance.sample("xy", 1)} | {("None", "x")}
        assert holds(sql, rows, proof_cases.KEY, proved.split(), scope), (sql, rows, scope)


@pytest.mark.parametrize(
    "name", ["grouped: a window over everything", "passed: cut", "joined: with itself on less", "subquery: scalar over itself"]
)
def test_the_check_finds_a_wrong_proof(name: str) -> None:
    sql = proof_cases.CASES[name][0]
    chance = random.Random(1)
    scope = {("x", "x"), ("y", "x")}

    verdicts = {holds(sql, make_rows(chance, COLUMNS), proof_cases.KEY, ["property", "unit"], scope) for _ in range(30)}

    assert False in verdicts


def test_random_queries_that_are_proved_hold_on_random_rows() -> None:
    known = Known(types={"k1": "string", "k2": "string", "v": "bigint"}, complete=True, names=frozenset({"k1", "k2", "v"}))
    tables = {name: Table(known=known, by=("k1", "k2") if name != "c" else ()) for name in "abc"}
    types = dict.fromkeys("abc", ("k1 VARCHAR", "k2 VARCHAR", "v BIGINT"))
    checked = 0

    for seed in range(120):
        chance = random.Random(seed)
        sql = make_query(chance)
        tree = sqlglot.parse_one(sql, dialect="spark")
        assert isinstance(tree, exp.Query)
        proved = analyse(tree, ("k1", "k2"), tables).proved
        rows = make_rows(chance, types)
        if proved:
            checked += 1
            assert holds(sql, rows, ("k1", "k2"), proved, {("x", "y"), ("y", "x"), ("None", "y")}), (sql, rows)

    assert checked > 15, "the random queries must often enough be provable for this to mean anything"
