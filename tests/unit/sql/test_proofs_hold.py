"""Proofs hold on random rows: restricting a proved input to some keys does not change their results (L2)."""

import random

import duckdb
import pytest

from tests.fuzz.laws import Case, Duck, choose_scope, holds, make_case, make_tables
from tests.fuzz.mutants import MUTANTS, mutated
from tests.fuzz.queries import PROFILES, Profile
from tests.unit.sql import proof_cases

KINDS = {
    "area": "number",
    "unit_id": "number",
    "size": "number",
    "value": "number",
    "rate": "number",
    "fee": "number",
}
COLUMNS = {
    "property": ("tenant_id", "property_id", "status", "area"),
    "unit": ("tenant_id", "property_id", "unit_id", "size"),
    "wide": ("tenant_id", "property_id", "x"),
    "rates": ("tenant_id", "property_id", "rate"),
    "tariffs": ("tenant_id", "property_id", "status", "fee"),
}
PROFILE = Profile(
    key=proof_cases.KEY,
    tables={table: {name: KINDS.get(name, "string") for name in names} for table, names in COLUMNS.items()},
    whole=frozenset({"tariffs"}),
    make=lambda chance: "",
)
NOT_IN_DUCKDB = {
    *("passed: rows made many", "joined: of other types"),
    # Spark puts the columns of USING first; DuckDB leaves them in their place.
    "by position: names given to the star of USING, which comes first",
}
PROVED = {name: case for name, case in proof_cases.CASES.items() if case[1] and name not in NOT_IN_DUCKDB}
SEEDS = 90
NEAR = 2
TRIES = 3


def case_of(sql: str, proved: str, chance: random.Random) -> Case:
    tables = make_tables(chance, PROFILE)
    return Case(
        profile=PROFILE,
        sql=sql,
        proved=frozenset(proved.split()),
        tables=tables,
        scope=choose_scope(chance, PROFILE, tables),
    )


@pytest.mark.parametrize(("sql", "proved"), PROVED.values(), ids=PROVED.keys())
def test_a_case_that_is_proved_holds_on_random_rows(sql: str, proved: str) -> None:
    chance, duck = random.Random(sql), Duck()

    for _ in range(TRIES):
        case = case_of(sql, proved, chance)
        assert holds(case, duck), case


@pytest.mark.parametrize(
    "name",
    [
        "grouped: a window over everything",
        "passed: cut",
        "joined: with itself on less",
        "subquery: scalar over itself",
    ],
)
def test_the_check_finds_a_wrong_proof(name: str) -> None:
    chance, duck = random.Random(1), Duck()

    verdicts = {holds(case_of(proof_cases.CASES[name][0], "property unit", chance), duck) for _ in range(30)}

    assert False in verdicts


def first_wrong(profile: Profile, seeds: range) -> tuple[Case | None, int]:
    """The first case whose proof does not hold, and how many were compared."""
    duck, compared = Duck(profile.timezone), 0
    for seed in seeds:
        first = make_case(seed, profile)
        for case in (
            [first, *(first.with_other_rows(number) for number in range(1, TRIES))]
            if first is not None
            else []
        ):
            try:
                if not holds(case, duck):
                    return case, compared
            except duckdb.Error:
                break  # DuckDB does not speak it
            compared += 1
    return None, compared


@pytest.mark.parametrize("profile", PROFILES, ids=["keys", "days", "days elsewhere"])
def test_random_queries_that_are_proved_hold_on_random_rows(profile: Profile) -> None:
    wrong, compared = first_wrong(profile, range(SEEDS))

    assert wrong is None, wrong
    assert compared > 30, "the random queries must often enough be provable for this to mean anything"


@pytest.mark.parametrize("name", MUTANTS)
def test_a_weakened_proof_is_found(name: str) -> None:
    *_, profile, seed = MUTANTS[name]
    seeds = range(max(0, seed - NEAR), seed + 1)

    with mutated(name):
        wrong, _ = first_wrong(profile, seeds)

    assert wrong is not None, f"no proof of these seeds is wrong although {name}"
    assert first_wrong(profile, seeds)[0] is None, "the rule as it is holds"
