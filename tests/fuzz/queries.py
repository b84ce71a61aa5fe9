"""Random queries, many of them nearly provable, over small tables with NULLs everywhere.

`KEYS`: keyed by (k1, k2). `a`, `b` and `o` may be related to it, `c` is read whole. `b` has its columns in
another order, `o` has a k2 of another type. `days`: partitioned by the day of `at`. `e` and `f` may be
related to it, `h` has a date with that name.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from sqlglot import exp

from strandline.model.project import Calendar, Partitioning, Unit
from strandline.sql.known_columns import Known
from strandline.sql.partition_expressions import find_steps
from strandline.sql.proof import Analysis, Table, prove

Row = tuple[object, ...]
VALUES: dict[str, list[object]] = {
    "string": ["x", "x", "x", "x", "y", "y", "y", "Y", None, None],
    "bigint": [0, 0, 0, 0, 1, 1, 1, -1, None, None],
    "number": [0, 1, 2, 3, None],
    "digits": ["0", "1", "01", None],
    "timestamp": [
        datetime.fromisoformat(f"2024-01-0{d} {h}:00") for d in (1, 2) for h in ("00", "00", "03", "23")
    ]
    + [datetime.fromisoformat("2024-02-01 02:00"), None],
    "date": [date(2024, 1, 1), date(2024, 1, 2), date(2024, 2, 1), None],
}
DUCK = {
    "string": "VARCHAR",
    "bigint": "BIGINT",
    "number": "BIGINT",
    "digits": "VARCHAR",
    "timestamp": "TIMESTAMP",
    "date": "DATE",
}
DAY_OFFSET = {"UTC": timedelta(0), "America/New_York": timedelta(hours=-5)}
"""All rows are in winter, so a time zone is a fixed offset."""


@dataclass(frozen=True)
class Profile:
    """A kind of job: its key, its tables by name, and the class that makes its queries."""

    key: tuple[str, ...]
    tables: Mapping[str, Mapping[str, str]]
    whole: frozenset[str]
    make: Callable[[random.Random], str]
    timezone: str = "UTC"
    partitioned: bool = False

    def prove(self, tree: exp.Query) -> Analysis:
        tables = {
            name: Table(known=self._known(columns), by=() if name in self.whole else self.key)
            for name, columns in self.tables.items()
        }
        if not self.partitioned:
            return prove(tree, self.key, tables, self.tables)
        steps = find_steps(Partitioning(column=self.key[-1], unit=Unit.DAY), Calendar(timezone=self.timezone))
        return prove(tree, self.key, tables, self.tables, by_name=False, steps=steps)

    def _known(self, columns: Mapping[str, str]) -> Known:
        types = {
            name: {"digits": "string", "number": "bigint"}.get(kind, kind) for name, kind in columns.items()
        }
        return Known(types=types, complete=True, names=frozenset(types), unique=(("id",),))

    def make_rows(self, chance: random.Random, most: int = 13) -> dict[str, list[Row]]:
        """Few distinct values, so that keys meet. `id` distinguishes the rows of a table."""
        return {
            table: [
                tuple(
                    number if name == "id" else chance.choice(VALUES[kind]) for name, kind in columns.items()
                )
                for number in range(chance.randrange(2, most))
            ]
            for table, columns in self.tables.items()
        }


def make_keyed(chance: random.Random) -> str:
    return _Keyed(chance).query()


class _Keyed:
    """Every relation has the columns k1, k2, v and w, in this order unless it is a star."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.ctes: list[tuple[str, str]] = []
        self.number = 0
        self.favourite = chance.choice("aab")
        """What is read twice is where a proof goes wrong."""

    def query(self) -> str:
        if self.chance.random() < 0.08:
            self.ctes.append(
                (self.pick("c", "C", "a", "b"), f"SELECT * FROM {self.pick('a', 'b', 'c')} WHERE v >= 0")
            )
        body = self.relation(self.chance.choice([0, 0, 0, 1, 1, 2]))
        if self.chance.random() < 0.15:
            body = f"SELECT k1, k2, v, w FROM ({body}) last"
        ctes = ", ".join(f"{name} AS ({sql})" for name, sql in self.ctes)
        return f"WITH {ctes} {body}" if ctes else body

    def pick(self, *choices: str) -> str:
        return self.chance.choice(choices)

    def fresh(self) -> str:
        self.number += 1
        return f"s{self.number}"

    def relation(self, depth: int) -> str:
        roll = self.chance.random()
        if depth and roll < 0.05:
            return f"SELECT * FROM {self.pick('a', 'b')} UNION ALL SELECT * FROM {self.pick('a', 'b')}"
        if depth and roll < 0.18:
            word = self.pick("UNION ALL", "UNION ALL", "UNION", "EXCEPT", "INTERSECT")
            return f"({self.relation(depth - 1)}) {word} ({self.relation(depth - 1)})"
        return self.select(depth)

    def source(self, depth: int) -> str:
        """An element of FROM, with its alias."""
        alias, roll = self.fresh(), self.chance.random()
        if depth and roll < 0.22:
            return f"({self.relation(depth - 1)}) {alias}"
        if depth and roll < 0.42:
            # Some CTEs hide a table.
            name = self.pick(f"w{len(self.ctes)}", f"w{len(self.ctes)}", "a", "B", "c")
            sql = self.relation(depth - 1)
            if name.lower() in (known.lower() for known, _ in self.ctes):
                name = f"w{len(self.ctes)}"
            self.ctes.append((name, sql))
            return f"{name} {alias}"
        if self.ctes and roll < 0.55:
            return f"{self.chance.choice(self.ctes)[0]} {alias}"
        table = self.pick(*(self.favourite * 5), "a", "b", "c", "o", "A", "`b`")
        if table in ("a", "b") and self.chance.random() < 0.15:
            names = self.pick("(id, k1, k2, v, w)", "(id, k1, v, k2, w)", "(w, k1, k2, v, id)")
            return f"{table} AS {alias}{names}"
        return f"{table} {alias}"

    def select(self, depth: int) -> str:
        first = self.source(depth)
        seen, using = (
            [
                first.split("(")[0].split()[-1]
                if first.endswith(")") and " AS " in first
                else first.split()[-1]
            ],
            False,
        )
        sql = f"FROM {first}"
        for _ in range(self.chance.choice([0, 0, 0, 1, 1, 1, 2])):
            kind = self.pick(
                *(
                    "JOIN",
                    "JOIN",
                    "LEFT JOIN",
                    "LEFT JOIN",
                    "RIGHT JOIN",
                    "FULL JOIN",
                    "CROSS JOIN",
                    "LEFT SEMI JOIN",
                    "LEFT ANTI JOIN",
                ),
                "NATURAL JOIN" if self.chance.random() < 0.2 else "JOIN",
            )
            other = self.source(depth)
            alias = (
                other.split(" AS ")[1].split("(")[0]
                if " AS " in other and other.endswith(")")
                else other.split()[-1]
            )
            sql += f" {kind} {other}"
            if kind in ("JOIN", "LEFT JOIN", "FULL JOIN") and len(seen) == 1 and self.chance.random() < 0.12:
                sql += f" USING ({self.pick('k1, k2', 'k1, k2', 'k1', 'k2')})"
                using = True
            elif kind not in ("CROSS JOIN", "NATURAL JOIN"):
                sql += f" ON {self.condition(seen, alias)}"
            if "SEMI" not in kind and "ANTI" not in kind:
                seen.append(alias)
        if self.chance.random() < 0.06:
            sql += f" LATERAL VIEW explode(array(1, {seen[0]}.v)) e AS x"
        return self.project(sql + self.where(seen), seen, using, depth)

    def project(self, sql: str, seen: list[str], using: bool, depth: int) -> str:
        owner = [self.chance.choice(seen)] if self.chance.random() < 0.4 else seen
        k1, k2 = (self.key(owner, column, using) for column in ("k1", "k2"))
        v, w = f"{self.chance.choice(seen)}.v", f"{self.chance.choice(seen)}.w"
        roll = self.chance.random()
        if roll < 0.3:
            return self.grouped(sql, k1, k2, v, w, seen)
        if roll < 0.45:
            parts = self.pick(
                f"{k1}, {k2}", f"{k1}, {k2}", f"{k2}, {v}, {k1}", k1, f"{seen[-1]}.k1, {seen[-1]}.k2", ""
            )
            order = self.pick("", f" ORDER BY {v}", f" ORDER BY {v}, {', '.join(f'{a}.id' for a in seen)}")
            frame = self.pick("", "", " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW") if order else ""
            function = self.pick(
                f"sum({v})",
                f"max({v})",
                "count(*)",
                *(["rank()", "dense_rank()"] if order and not frame else []),
            )
            if order and not frame:
                function = self.pick(function, "row_number()", f"lag({v})", f"first_value({v})")
            over = f"{function} OVER ({f'PARTITION BY {parts}' if parts else ''}{order}{frame})"
            if self.chance.random() < 0.25:
                return f"SELECT {k1} AS k1, {k2} AS k2, {v} AS v, {w} AS w {sql} QUALIFY {over} >= 1"
            return f"SELECT {k1} AS k1, {k2} AS k2, {over} AS v, {w} AS w {sql}"
        if roll < 0.5:
            return f"SELECT max({k1}) AS k1, max({k2}) AS k2, sum({v}) AS v, max({w}) AS w {sql}"
        if roll < 0.6 and len(seen) == 1:
            star = f"{seen[0]}.*"
            columns = self.pick("*", star, star, "* EXCEPT (w), w", "* EXCEPT (k1), upper(k1) AS k1")
            return f"SELECT {columns} {sql}"
        if roll < 0.68:
            table = self.pick(self.favourite, "a", "b", "c")
            inner = (
                f"(SELECT {self.pick('max', 'sum', 'count')}(z.v) FROM {table} z{self.linked('z', seen[0])})"
            )
            return f"SELECT {k1} AS k1, {k2} AS k2, {inner} AS v, {w} AS w {sql}"
        if roll < 0.72:
            return f"SELECT {k1} AS k1, {v} AS k2, {k2} AS v, {w} AS w {sql}"
        distinct = self.pick("", "", "DISTINCT ")
        limit = self.pick("", "", "", "", "", " ORDER BY 1, 2, 3, 4 LIMIT 2")
        return f"SELECT {distinct}{k1} AS k1, {k2} AS k2, {v} AS v, {w} AS w {sql}{limit}"

    def grouped(self, sql: str, k1: str, k2: str, v: str, w: str, seen: list[str]) -> str:
        groups = self.chance.choice(
            [
                [k1, k2],
                [k1, k2],
                [k1, k2],
                [k1, k2, w],
                ["1", "2"],
                [k1],
                [k2, v],
                [f"{seen[0]}.k1", f"{seen[0]}.k2"],
                ["ALL"],
            ]
        )
        listed = ", ".join(groups)
        if groups[0] not in ("1", "ALL") and self.chance.random() < 0.2:
            listed = self.pick(
                f"ROLLUP ({listed})", f"CUBE ({listed})", f"GROUPING SETS (({listed}), ({groups[0]}))"
            )
        named = [k if k in groups or groups[0] in ("1", "ALL") else f"max({k})" for k in (k1, k2)]
        having = self.pick(
            *("", "", " HAVING count(*) > 1", f" HAVING sum({v}) > 1"),
            f" HAVING count(*) >= (SELECT count(*) - 2 FROM {self.pick(self.favourite, 'a', 'b', 'c')} z)",
        )
        last = w if w in groups else f"max({w})"
        total = self.pick(f"sum({v})", f"count(DISTINCT {v})", "count(*)", f"sum({v}) FILTER (WHERE {v} > 0)")
        return (
            f"SELECT {named[0]} AS k1, {named[1]} AS k2, {total} AS v, {last} AS w {sql} "
            f"GROUP BY {listed}{having}"
        )

    def key(self, seen: list[str], column: str, using: bool) -> str:
        roll, alias = self.chance.random(), self.chance.choice(seen)
        if using and roll < 0.5:
            return column
        if roll < 0.72:
            return f"{seen[0]}.{column}"
        if roll < 0.9:
            return f"{alias}.{self.pick(column, column, column, 'k1' if column == 'k1' else 'v')}"
        if column == "k1":
            return self.pick(
                f"upper({alias}.k1)",
                f"coalesce({alias}.k1, 'x')",
                f"CAST({alias}.k1 AS STRING)",
                f"({alias}.k1)",
                f"{alias}.w",
            )
        return self.pick(
            f"CAST({alias}.k2 AS BIGINT)",
            f"abs({alias}.k2)",
            f"coalesce({alias}.k2, 0)",
            f"{alias}.k2 + 0",
            f"{alias}.v",
        )

    def condition(self, left: list[str], right: str) -> str:
        parts = [
            f"{self.chance.choice(left)}.{column} {self.pick('=', '=', '<=>')} {right}.{column}"
            for column in ("k1", "k2")
        ]
        roll, first = self.chance.random(), left[0]
        if roll < 0.05:
            return f"{first}.k2 = {right}.v AND {first}.k1 = {right}.k1"
        if roll < 0.13:
            return self.chance.choice(parts)
        if roll < 0.21:
            return " OR ".join(parts)
        if roll < 0.31:
            return f"{first}.k1 = {right}.k1 AND {first}.k2 {self.pick('<=', '>=', '<>')} {right}.k2"
        if roll < 0.35:
            return (
                f"{self.pick('upper', 'lower')}({first}.k1) = {right}.k1 "
                f"AND CAST({first}.k2 AS BIGINT) = {right}.k2"
            )
        table = self.pick("a", "b", "c")
        extra = self.pick(
            *("", "", "", "", f" AND {first}.v < {right}.v", f" AND {first}.v > 0"),
            f" AND {right}.v >= (SELECT min(z.v) FROM {table} z)" if self.chance.random() < 0.3 else "",
        )
        return f"({parts[0]}) AND {parts[1]}{extra}"

    def linked(self, alias: str, outer: str) -> str:
        return self.pick(
            "",
            f" WHERE {alias}.k1 = {outer}.k1 AND {alias}.k2 = {outer}.k2",
            f" WHERE {alias}.k1 = {outer}.k1",
        )

    def where(self, seen: list[str]) -> str:
        alias, other = (
            self.chance.choice(seen),
            self.pick(self.favourite, "a", "b", "c", *(name for name, _ in self.ctes)),
        )
        return self.pick(
            *("", "", "", "", f" WHERE {alias}.v > 0", f" WHERE {alias}.w IS NULL OR {alias}.v <> 1"),
            f" WHERE {self.pick('EXISTS', 'NOT EXISTS')} (SELECT 1 FROM {other} z "
            f"WHERE z.k1 = {alias}.k1 AND z.k2 = {alias}.k2)",
            f" WHERE {alias}.k1 {self.pick('IN', 'NOT IN')} (SELECT z.k1 FROM {other} z)",
            f" WHERE {alias}.v >= (SELECT min(z.v) FROM {other} z{self.linked('z', alias)})",
        )


TIMES = [
    *(
        "{0}.at",
        "{0}.at",
        "{0}.at",
        "local_date({0}.at)",
        "local_date({0}.at)",
        "local_month({0}.at)",
        "CAST({0}.at AS DATE)",
    ),
    *(f"date_trunc('{unit}', {{0}}.at)" for unit in ("MONTH", "DAY", "HOUR")),
]


def make_daily(chance: random.Random) -> str:
    """Grouped, joined and ranked by a time, or by an expression of it."""

    def relation(depth: int) -> str:
        table = chance.choice(["e", "e", "f", "h"])
        if depth and chance.random() < 0.5:
            inner = relation(depth - 1)
            return inner if inner.startswith("(") else f"({select(inner, depth - 1)})"
        return table

    def select(source: str, depth: int) -> str:
        first = f"FROM {source} s"
        roll = chance.random()
        time = chance.choice(TIMES).format("s")
        if roll < 0.4:
            other = relation(depth)
            kind = chance.choice(["JOIN", "LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN", "FULL JOIN"])
            mine, theirs = chance.choice(TIMES).format("s"), chance.choice(TIMES).format("t")
            if chance.random() < 0.5:
                theirs = mine.replace("s.at", "t.at")
            first += f" {kind} {other} t ON {mine} = {theirs}{chance.choice(['', ' AND s.g = t.g'])}"
        roll = chance.random()
        if roll < 0.5:
            return f"SELECT {time} AS at, max(s.g) AS g, sum(s.v) AS v {first} GROUP BY {time}"
        if roll < 0.7:
            other_time = chance.choice(TIMES).format("s")
            return f"SELECT {time} AS at, s.g, sum(s.v) OVER (PARTITION BY {other_time}) AS v {first}"
        return f"SELECT {chance.choice(['', 'DISTINCT '])}{time} AS at, s.g, s.v {first}"

    last = select(relation(2), 1)
    return last if chance.random() < 0.6 else f"SELECT r.at AS day, r.v FROM ({last}) r"


BASE = {"id": "bigint", "k1": "string", "k2": "bigint", "v": "number", "w": "string"}
KEYS = Profile(
    key=("k1", "k2"),
    tables={
        "a": BASE,
        "b": {name: BASE[name] for name in ("id", "k1", "v", "k2", "w")},
        "c": BASE,
        "o": {**BASE, "k2": "digits"},
    },
    whole=frozenset({"c"}),
    make=make_keyed,
)
_TIMED = {"id": "bigint", "at": "timestamp", "g": "bigint", "v": "number"}


def days(timezone: str) -> Profile:
    tables = {
        "e": _TIMED,
        "f": {name: _TIMED[name] for name in ("id", "g", "at", "v")},
        "h": {**_TIMED, "at": "date"},
    }
    return Profile(
        key=("at",), tables=tables, whole=frozenset(), make=make_daily, timezone=timezone, partitioned=True
    )


PROFILES = (KEYS, days("UTC"), days("America/New_York"))
