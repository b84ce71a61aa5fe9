"""Random queries over three small tables, many of them nearly provable, and the check that a proof holds on random rows."""

import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache

import duckdb
import sqlglot

Row = tuple[object, ...]
Rows = Mapping[str, tuple[tuple[str, ...], list[Row]]]
"""By table: its columns with their types, and its rows."""


def make_query(chance: random.Random) -> str:
    """A SELECT that gives k1, k2 and a value, over a and b (related by k1, k2) and c (read whole)."""
    ctes: list[str] = []
    body = _relation(chance, 3, ctes)
    if chance.random() < 0.3:
        name = f"w{len(ctes)}"
        ctes.append(f"{name} AS ({body})")
        body = f"SELECT k1, k2, v FROM {name}"
    return (f"WITH {', '.join(ctes)} " if ctes else "") + body


def _relation(chance: random.Random, depth: int, ctes: list[str]) -> str:
    roll = chance.random()
    if depth and roll < 0.12:
        word = chance.choice(["UNION ALL", "UNION ALL", "UNION", "EXCEPT", "INTERSECT"])
        return f"({_relation(chance, depth - 1, ctes)}) {word} ({_relation(chance, depth - 1, ctes)})"
    return _select(chance, depth, ctes)


def _source(chance: random.Random, depth: int, ctes: list[str]) -> str:
    roll = chance.random()
    if depth and roll < 0.25:
        return f"({_relation(chance, depth - 1, ctes)})"
    if depth and roll < 0.4:
        name = f"w{len(ctes)}"
        ctes.append("")
        ctes[-1] = f"{name} AS ({_relation(chance, 0, [])})"
        return name
    if ctes and roll < 0.5:
        return chance.choice(ctes).split(" ", 1)[0]
    return chance.choice(["a", "a", "b", "b", "c"])


def _select(chance: random.Random, depth: int, ctes: list[str]) -> str:
    aliases = ["s"]
    sql = f"FROM {_source(chance, depth, ctes)} s"
    hidden: set[str] = set()
    for alias in chance.sample(["t", "u"], chance.choice([0, 0, 1, 1, 2])):
        kind = chance.choice(["JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", "SEMI JOIN", "ANTI JOIN"])
        sql += f" {kind} {_source(chance, depth, ctes)} {alias}"
        if kind != "CROSS JOIN":
            sql += f" ON {_condition(chance, [x for x in aliases if x not in hidden], alias)}"
        if kind in ("SEMI JOIN", "ANTI JOIN"):
            hidden.add(alias)
        aliases.append(alias)
    seen = [alias for alias in aliases if alias not in hidden]
    where = _where(chance, seen, ctes)
    k1, k2 = (_key(chance, seen, column) for column in ("k1", "k2"))
    value = f"{chance.choice(seen)}.v"
    roll = chance.random()
    if roll < 0.3:
        groups = chance.choice([[k1, k2], [k1, k2], [k1, k2, value], ["1", "2"], [k1], [f"{seen[0]}.k1", f"{seen[0]}.k2"]])
        first, second = (k if k in groups or number in groups else f"max({k})" for k, number in ((k1, "1"), (k2, "2")))
        having = chance.choice(["", " HAVING count(*) > 1", f" HAVING sum({value}) > 1"])
        return f"SELECT {first} AS k1, {second} AS k2, sum({value}) AS v {sql}{where} GROUP BY {', '.join(groups)}{having}"
    if roll < 0.45:
        parts = chance.choice([[k1, k2], [k2, value, k1], [k1], [f"{seen[-1]}.k1", f"{seen[-1]}.k2"], []])
        partition = f"PARTITION BY {', '.join(parts)}" if parts else ""
        return f"SELECT {k1} AS k1, {k2} AS k2, sum({value}) OVER ({partition}) AS v {sql}{where}"
    if roll < 0.5:
        return f"SELECT max({k1}) AS k1, max({k2}) AS k2, sum({value}) AS v {sql}{where}"
    if roll < 0.6 and seen == ["s"]:
        return f"SELECT * {sql}{where}"
    distinct = chance.choice(["", "", "DISTINCT "])
    limit = chance.choice(["", "", "", " ORDER BY 1, 2, 3 LIMIT 2"])
    return f"SELECT {distinct}{k1} AS k1, {k2} AS k2, {value} AS v {sql}{where}{limit}"


def _key(chance: random.Random, aliases: list[str], column: str) -> str:
    roll = chance.random()
    if roll < 0.8:
        return f"{aliases[0]}.{column}"
    if roll < 0.95:
        return f"{chance.choice(aliases)}.{chance.choice(['k1', 'k2', column])}"
    return f"upper({chance.choice(aliases)}.{column})"


def _condition(chance: random.Random, left: list[str], right: str) -> str:
    parts = [f"{chance.choice(left)}.{column} {chance.choice(['=', '=', '<=>'])} {right}.{column}" for column in ("k1", "k2")]
    roll = chance.random()
    if roll < 0.1:
        return f"{left[0]}.k1 = {right}.k2 AND {left[0]}.k2 = {right}.k1"
    if roll < 0.25:
        return chance.choice(parts)
    if roll < 0.35:
        return " OR ".join(parts)
    extra = chance.choice(["", "", f" AND {left[0]}.v < {right}.v", f" AND {left[0]}.v > 0"])
    return f"({parts[0]}) AND {parts[1]}{extra}"


def _where(chance: random.Random, aliases: list[str], ctes: list[str]) -> str:
    alias, other = chance.choice(aliases), chance.choice(["a", "b", "c", *(cte.split(" ", 1)[0] for cte in ctes)])
    return chance.choice(
        [
            "",
            "",
            "",
            f" WHERE {alias}.v > 0",
            f" WHERE EXISTS (SELECT 1 FROM {other} z WHERE z.k1 = {alias}.k1 AND z.k2 = {alias}.k2)",
            f" WHERE {alias}.k1 IN (SELECT k1 FROM {other})",
            f" WHERE {alias}.v >= (SELECT min(v) FROM {other})",
        ]
    )


def make_rows(chance: random.Random, types: Mapping[str, tuple[str, ...]], most: int = 7) -> Rows:
    """Few values, so that keys meet; NULL among them."""
    values = {"VARCHAR": ["x", "y", "Y", None], "BIGINT": [0, 1, 2, None]}
    return {
        table: (columns, [tuple(chance.choice(values[c.split(" ")[1]]) for c in columns) for _ in range(chance.randrange(most))])
        for table, columns in types.items()
    }


def holds(sql: str, rows: Rows, key: tuple[str, ...], proved: Iterable[str], scope: set[Row]) -> bool:
    """Whether restricting the proved inputs to a scope of keys leaves the result's rows of that scope as they are."""
    restricted = set(proved)
    whole = _result(sql, rows)
    part = _result(sql, {t: (c, [r for r in rs if t not in restricted or _key_of(c, r, key) in scope]) for t, (c, rs) in rows.items()})
    return Counter(r for r in whole[1] if _key_of(whole[0], r, key) in scope) == Counter(
        r for r in part[1] if _key_of(part[0], r, key) in scope
    )


def _key_of(columns: tuple[str, ...], row: Row, key: tuple[str, ...]) -> Row:
    names = [column.split(" ")[0].lower() for column in columns]
    return tuple(str(row[names.index(name)]) for name in key)


def _result(sql: str, rows: Rows) -> tuple[tuple[str, ...], list[Row]]:
    connection = _connection()
    for table, (columns, values) in rows.items():
        if not re.search(rf"\b{table}\b", sql, re.IGNORECASE):
            continue
        shown = ", ".join(f"({', '.join(_literal(value) for value in row)})" for row in values)
        connection.execute(
            f"CREATE OR REPLACE TEMP TABLE {table} ({', '.join(columns)})" + (f"; INSERT INTO {table} VALUES {shown}" if shown else "")
        )
    found = connection.execute(sqlglot.transpile(sql, read="spark", write="duckdb")[0])
    return tuple(column[0] for column in found.description), [tuple(row) for row in found.fetchall()]


def _literal(value: object) -> str:
    return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})
