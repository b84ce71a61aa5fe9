"""A table of odd values, and what each engine answers about it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from strandline.lake.plain_values import plain_column
from strandline.lake.query import Published, query_tables, read_fields
from strandline.model.errors import CallError
from strandline.sql.dialect import Columns, delta_type, rewrite

QUICK = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
}
INF, NAN = float("inf"), float("nan")


def _at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


COLUMNS = {
    "id": pa.int32(),
    "g": pa.int16(),
    "i": pa.int32(),
    "j": pa.int32(),
    "n": pa.int64(),
    "m": pa.int64(),
    "d": pa.decimal128(18, 4),
    "e": pa.decimal128(5, 2),
    "d2": pa.decimal128(38, 10),
    "x": pa.float64(),
    "y": pa.float64(),
    "b": pa.bool_(),
    "s": pa.string(),
    "u": pa.string(),
    "dt": pa.date32(),
    "at": pa.timestamp("us", "UTC"),
    "num": pa.string(),
    "bin": pa.binary(),
    "Mixed": pa.int32(),
    "arr": pa.list_(pa.int32()),
    "st": pa.struct([("a", pa.int32()), ("b", pa.string())]),
}
ROWS: list[tuple[object, ...]] = [
    (1, 3, 7, 2, 9223372036854775807, 5, Decimal("10.5000"), Decimal("1.25"), Decimal("1.1234567890"), 0.1,
     2.5, True, "b", "a\u0301e", date(2024, 1, 31), _at("2024-01-31T23:30:00.123456"), "12", b"\x00\xff", 1,
     [1, 2], {"a": 1, "b": "x"}),
    (2, -3, -7, 3, -1, 7, Decimal("-10.5000"), Decimal("-2.50"),
     Decimal("99999999999999999999999999.0000000001"), NAN, -2.5, False, "B", "\U0001f600x",
     date(2024, 2, 29), _at("2024-03-10T07:00:00"), "-7", b"", 2, [], {"a": None, "b": None}),
    (3, *[None] * 20),
    (4, 0, 2147483647, -3, 3, -4, Decimal("2.5000"), Decimal("999.99"), Decimal("3"), -0.0, 0.5, True, "",
     "\u017f\u212a\u0130\u00df\u03c2", date(1969, 12, 31), _at("1969-12-31T23:59:59"), "3", b"a", 3, [None],
     None),
    (5, 1, 0, 1, 0, 9, Decimal("0"), Decimal("0.01"), Decimal("0"), INF, -0.0, False, "ä ß ", " x ",
     date(2000, 12, 31), _at("2000-12-31T23:59:59.999999"), "100", b"a", 4, None, {"a": 1, "b": "x"}),
    (6, 2, 7, None, 12, None, Decimal("0.3333"), Decimal("0.05"), Decimal("-0.0000000001"), 1e300, 3.0, None,
     "b", "abcABC", date(2024, 12, 30), _at("2024-12-30T00:00:00.100000"), "5", b"b", 5, [3],
     {"a": 2, "b": "y"}),
    (7, 2, -2147483648, 5, -12, 3, Decimal("-0.0050"), None, None, -INF, 1.5, True, "%_\\", "",
     date(1970, 1, 1), _at("1970-01-01T00:00:00"), "0", None, None, [1, 2], {"a": 1, "b": None}),
]  # fmt: skip
FAR_ROWS: list[tuple[object, ...]] = [
    (1, date(1, 1, 1), _at("0001-01-01T00:00:00"), None),
    (2, date(9999, 12, 31), _at("9999-12-31T23:59:59.999999"), None),
    (3, date(1582, 10, 4), _at("1582-10-04T12:00:00"), 5),
    (4, None, None, 4),
    (5, date(1677, 1, 1), _at("1677-09-21T00:12:43"), 4),
    (6, date(2262, 4, 12), _at("2262-04-12T00:00:00"), None),
]
FAR_COLUMNS = {"id": pa.int32(), "dt": pa.date32(), "at": pa.timestamp("us", "UTC"), "k": pa.int64()}


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: its rows as values and as text, and its notes. Both are None if it was refused."""

    values: tuple[tuple[object, ...], ...] | None = None
    rows: list[tuple[str, ...]] | None = None
    notes: tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class Engines:
    session: SparkSession
    tables: tuple[Published, ...]
    columns: Mapping[str, Columns]

    def ask_here(self, sql: str) -> Answer:
        asked = rewrite(sql, self.columns)
        answer = self.ask_datafusion(asked.sql)
        if answer.values is None:
            return answer
        return Answer(
            answer.values,
            _in_order(answer.values, sql),
            tuple(str(note) for note in asked.notes_for(len(answer.values))),
        )

    def ask_datafusion(self, sql: str) -> Answer:
        try:
            rows = query_tables(sql, self.tables).rows
        except CallError as error:
            return Answer(error=error.what)
        return Answer(rows, _in_order(rows, sql))

    def ask_spark(self, sql: str) -> Answer:
        try:
            answer = self.session.sql(sql).toArrow()
        except PySparkException as error:
            return Answer(error=str(error).splitlines()[0])
        rows = tuple(zip(*(plain_column(column) for column in answer.columns), strict=True))
        return Answer(rows, _in_order(rows, sql))

    def unexplained(self, sql: str) -> str | None:
        """How the two answers to a query differ without a note. A refusal is not an answer."""
        here = self.ask_here(sql)
        return None if here.rows is None or here.notes else _difference(sql, here, self.ask_spark(sql))

    def compare_each(self, expressions: Sequence[str]) -> tuple[int, list[str]]:
        """The same for expressions over `r`, in as few queries as possible, and the number of equal ones."""
        plain = [e for e in expressions if not rewrite(f"select {e} from r", self.columns).notes]
        here = [
            (e, answer)
            for e, answer in zip(plain, _together(self.ask_here, plain), strict=True)
            if answer.rows is not None
        ]
        spark = _together(self.ask_spark, [e for e, _ in here])
        differences = [_difference(e, one, two) for (e, one), two in zip(here, spark, strict=True)]
        equal = sum(
            two.rows is not None and not difference
            for two, difference in zip(spark, differences, strict=True)
        )
        return equal, [difference for difference in differences if difference]


def make_engines(session: SparkSession, folder: Path) -> Engines:
    """Spark has the rows in memory, which is fast to query; here they are a Delta table."""
    own = session.newSession()
    for name, value in QUICK.items():
        own.conf.set(name, value)
    tables = []
    for name, columns, rows in (("r", COLUMNS, ROWS), ("far", FAR_COLUMNS, FAR_ROWS)):
        data = pa.table(
            {c: pa.array([row[i] for row in rows], kind) for i, (c, kind) in enumerate(columns.items())}
        )
        write_deltalake(str(folder / name), data)
        own.createDataFrame(data).createOrReplaceTempView(name)
        tables.append(Published(name=name, dataset=name, uri=str(folder / name), version=0, live_only=False))
    typed = {t.name: [(name, delta_type(kind)) for name, kind in read_fields(t)] for t in tables}
    return Engines(own, tuple(tables), typed)


def _difference(sql: str, here: Answer, spark: Answer) -> str | None:
    return (
        None if spark.rows in (None, here.rows) else f"{sql}\n    here  {here.rows}\n    Spark {spark.rows}"
    )


def _together(ask: Callable[[str], Answer], expressions: Sequence[str]) -> list[Answer]:
    """Ask all in one query. If it is refused, ask each half."""
    if not expressions:
        return []
    answer = ask(f"select {', '.join(f'{e} as c{i}' for i, e in enumerate(expressions))} from r order by id")
    if answer.rows is None and len(expressions) > 1:
        half = len(expressions) // 2
        return _together(ask, expressions[:half]) + _together(ask, expressions[half:])
    if answer.rows is None:
        return [answer]
    return [Answer(rows=[(row[i],) for row in answer.rows]) for i in range(len(expressions))]


def _in_order(rows: tuple[tuple[object, ...], ...], sql: str) -> list[tuple[str, ...]]:
    """Rows as text, sorted unless the query orders them."""
    texts = [tuple(map(repr, row)) for row in rows]
    return texts if "order by" in sql.lower().rsplit(")", 1)[-1] else sorted(texts)
