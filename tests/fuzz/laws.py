"""The law behind a proof: restricting the inputs to some keys does not change the rows of those keys.

It is checked with DuckDB and with Spark, each against itself. Keys and days are computed in plain Python.
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import lru_cache

import duckdb
import sqlglot
from pyspark.sql import SparkSession
from sqlglot import exp

from tests.fuzz.queries import DAY_OFFSET, DUCK, Profile, Row

Tables = Mapping[str, tuple[Mapping[str, str], list[Row]]]
"""By table: its columns with their kinds, and its rows."""
Answer = tuple[tuple[str, ...], list[Row]]
Run = Callable[[str, Tables], Answer]


@dataclass(frozen=True)
class Case:
    """A query with its proof, and rows to test it on."""

    profile: Profile
    sql: str
    proved: frozenset[str]
    tables: Tables
    scope: frozenset[Row]
    seed: int = 0

    def __str__(self) -> str:
        rows = {
            name: rows
            for name, (_, rows) in self.tables.items()
            if re.search(rf"\b{name}\b", self.sql, re.IGNORECASE)
        }
        return (
            f"seed {self.seed}: {self.sql}\n  proved {sorted(self.proved)}, "
            f"keys {sorted(self.scope, key=repr)}\n  {rows}"
        )

    def with_other_rows(self, number: int) -> "Case":
        """The same query, over other rows."""
        chance = random.Random(f"{self.seed} {number}")
        tables = make_tables(chance, self.profile)
        return replace(self, tables=tables, scope=choose_scope(chance, self.profile, tables))


def make_case(seed: int, profile: Profile) -> Case | None:
    """A random query over random rows.

    None where nothing of it is proved, or where `check` would refuse an order in it.
    """
    chance = random.Random(f"{profile.timezone} {profile.partitioned} {seed}")
    sql = profile.make(chance)
    try:
        tree = sqlglot.parse_one(sql, dialect="spark")
    except sqlglot.errors.SqlglotError:
        return None
    assert isinstance(tree, exp.Query)
    analysis = profile.prove(tree)
    if not analysis.proved or analysis.ties or analysis.unknown_columns:
        return None
    tables = make_tables(chance, profile)
    return Case(
        profile=profile,
        sql=sql,
        proved=analysis.proved,
        tables=tables,
        scope=choose_scope(chance, profile, tables),
        seed=seed,
    )


def make_tables(chance: random.Random, profile: Profile) -> Tables:
    return {name: (profile.tables[name], rows) for name, rows in profile.make_rows(chance).items()}


def choose_scope(chance: random.Random, profile: Profile, tables: Tables) -> frozenset[Row]:
    """Some of the keys, and often the key of an outer join's missing side."""
    keys = {_key(profile, columns, row) for columns, rows in tables.values() for row in rows}
    chosen = sorted(keys, key=repr)
    nothing = {(None,) * len(profile.key)} if chance.random() < 0.5 else set()
    return frozenset({*chance.sample(chosen, (len(chosen) + 1) // 2), *nothing})


def _key(profile: Profile, columns: Collection[str], row: Row) -> Row:
    """The scope of a row: its key as text, or its day."""
    names = [name.lower() for name in columns]
    values = [row[names.index(name)] for name in profile.key]
    return tuple(_day(value, profile) if profile.partitioned else _spelt(value) for value in values)


def _spelt(value: object) -> str | None:
    text = None if value is None else str(value)
    return str(int(text)) if text is not None and text.isdecimal() else text


def _day(value: object, profile: Profile) -> date | None:
    if isinstance(value, datetime):
        return (value.replace(tzinfo=None) + DAY_OFFSET[profile.timezone]).date()
    return value if isinstance(value, date) else None


def holds(case: Case, run: Run) -> bool:
    """Whether the proof holds on these rows."""
    names, whole = run(case.sql, case.tables)
    if case.profile.partitioned:
        return _holds_by_day(case, names, whole, run)
    part = run(case.sql, _restricted(case, case.scope))[1]
    return _of(case, names, whole, case.scope) == _of(case, names, part, case.scope)


def _holds_by_day(case: Case, names: Sequence[str], whole: list[Row], run: Run) -> bool:
    """Each day computed alone gives its rows, and all days together give everything.

    A row that contains its day belongs to that day.
    """
    days = {_key(case.profile, columns, row) for columns, rows in case.tables.values() for row in rows}
    together: Counter[Row] = Counter()
    for day in days:
        rows = run(case.sql, _restricted(case, {day}))[1]
        if set(case.profile.key) <= set(names) and any(_key(case.profile, names, row) != day for row in rows):
            return False
        together += Counter(rows)
    return together == Counter(whole)


def _restricted(case: Case, scope: Collection[Row]) -> Tables:
    return {
        name: (
            columns,
            [row for row in rows if name not in case.proved or _key(case.profile, columns, row) in scope],
        )
        for name, (columns, rows) in case.tables.items()
    }


def _of(case: Case, names: Sequence[str], rows: list[Row], scope: Collection[Row]) -> Counter[Row]:
    return Counter(row for row in rows if _key(case.profile, names, row) in scope)


@dataclass
class Duck:
    """Runs Spark's SQL with DuckDB. Raises `duckdb.Error` for SQL that DuckDB does not support."""

    timezone: str = "UTC"
    connection: duckdb.DuckDBPyConnection = field(
        default_factory=lambda: duckdb.connect(config={"threads": 1})
    )

    def __post_init__(self) -> None:
        hours = int(DAY_OFFSET[self.timezone].total_seconds() // 3600)
        # A date is cast as Spark casts it: to midnight UTC.
        local = f"CAST(ts AS TIMESTAMP) + INTERVAL ({hours}) HOUR"
        self.connection.execute(f"CREATE MACRO local_date(ts) AS CAST({local} AS DATE)")
        self.connection.execute(f"CREATE MACRO local_month(ts) AS strftime({local}, '%Y-%m')")

    def __call__(self, sql: str, tables: Tables) -> Answer:
        for name, (columns, rows) in tables.items():
            if re.search(rf"\b{name}\b", sql, re.IGNORECASE):
                listed = ", ".join(f'"{column}" {DUCK[kind]}' for column, kind in columns.items())
                values = ", ".join(f"({', '.join(_literal(value) for value in row)})" for row in rows)
                insert = f"; INSERT INTO {name} VALUES {values}" if values else ""
                self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} ({listed}){insert}")
        result = self.connection.execute(_to_duckdb(sql))
        return tuple(column[0] for column in result.description), [tuple(row) for row in result.fetchall()]


@lru_cache(maxsize=100)
def _to_duckdb(sql: str) -> str:
    """A query runs over many tables: whole, and once for each scope."""
    return sqlglot.transpile(sql, read="spark", write="duckdb", identify=True)[0]


def _literal(value: object) -> str:
    return "NULL" if value is None else str(value) if isinstance(value, int) else f"'{value}'"


@dataclass
class SparkRun:
    """Runs the SQL with Spark over local relations. Raises PySparkException for refused SQL."""

    session: SparkSession
    timezone: str = "UTC"

    def __call__(self, sql: str, tables: Tables) -> Answer:
        for name, (columns, rows) in tables.items():
            if re.search(rf"\b{name}\b", sql, re.IGNORECASE):
                kinds = {"digits": "string", "number": "bigint"}
                listed = ", ".join(
                    f"CAST({column} AS {kinds.get(kind, kind)}) AS {column}"
                    for column, kind in columns.items()
                )
                nothing = f"({', '.join('NULL' for _ in columns)})"
                values = (
                    ", ".join(f"({', '.join(_literal(value) for value in row)})" for row in rows) or nothing
                )
                none = "" if rows else " WHERE false"
                view = f"SELECT {listed} FROM VALUES {values} AS t({', '.join(columns)}){none}"
                self.session.sql(f"CREATE OR REPLACE TEMP VIEW {name} AS {view}")
        local = rf"from_utc_timestamp(\1, '{self.timezone}')"
        sql = re.sub(r"local_date\(([^()]*)\)", f"to_date({local})", sql)
        sql = re.sub(r"local_month\(([^()]*)\)", f"date_format({local}, 'yyyy-MM')", sql)
        result = self.session.sql(sql)
        return tuple(result.columns), [tuple(row) for row in result.collect()]
