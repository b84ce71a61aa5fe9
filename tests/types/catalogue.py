"""Every type that a user can store, with values that have caused mistakes.

Each value is a pair: an expression of Spark's SQL and an identity. Two values of a type are one key if their
identities are equal (L5: NULL is one key, NaN is one key, -0.0 is 0.0).
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """A type under a short name, and its values as (SQL, identity)."""

    name: str
    sql: str
    values: tuple[tuple[str, str], ...]


def _same(sql: str, *texts: str) -> tuple[tuple[str, str], ...]:
    return tuple((f"CAST({text} AS {sql})", text) for text in texts)


_TIMES = (
    "'0001-01-01T00:00:00Z'",  # the zero time of Go and .NET
    "'0001-01-02T03:04:05.000001Z'",
    "'0999-12-31T23:59:59.999999Z'",
    "'1582-10-04T00:00:00Z'",  # the last day of the Julian calendar, and the first one after it
    "'1582-10-15T00:00:00Z'",
    "'1677-09-21T00:12:43Z'",  # outside the range of nanoseconds
    "'2262-04-12T00:00:00Z'",
    "'1969-12-31T23:59:59.999999Z'",
    "'2010-11-07T02:30:30Z'",  # America/St_Johns: 00:00:30 of a day, then 23:45 of the day before
    "'2010-11-07T03:15:00Z'",
    "'2024-03-10T06:59:59.123456Z'",
    "'9999-12-31T23:59:59.999999Z'",
)
_TEXTS = (
    "''",
    "' '",
    "'a'",
    "'A'",
    "'a '",
    "'it''s'",
    r"'back\\slash'",
    "'100%/x'",
    "'null'",
    "'é'",
    "'e\u0301'",
    "'😀'",
    "decode(X'EFBFBF', 'UTF-8')",  # the last character of its plane
    "'日本語'",
    r"'line\nbreak'",
    "repeat('x', 40)",
    "repeat('x', 5000)",
)

KINDS = (
    Kind("boolean", "boolean", _same("boolean", "true", "false", "NULL")),
    Kind("tinyint", "tinyint", _same("tinyint", "-128", "-1", "0", "127", "NULL")),
    Kind("smallint", "smallint", _same("smallint", "-32768", "0", "32767", "NULL")),
    Kind("int", "int", _same("int", "-2147483648", "-1", "0", "7", "2147483647", "NULL")),
    Kind(
        "bigint",
        "bigint",
        _same(
            "bigint", "'-9223372036854775808'", "-1", "0", "9007199254740993", "9223372036854775807", "NULL"
        ),
    ),
    Kind(
        "digits", "decimal(38,0)", _same("decimal(38,0)", f"'{'9' * 38}'", f"'-{'9' * 38}'", "0", "1", "NULL")
    ),
    Kind(
        "money",
        "decimal(38,18)",
        _same("decimal(38,18)", f"'{'9' * 20}.{'9' * 18}'", "'-0.000000000000000001'", "0", "'1.10'", "NULL"),
    ),
    Kind("cents", "decimal(5,2)", _same("decimal(5,2)", "'-999.99'", "'0.01'", "0", "NULL")),
    Kind(
        "double",
        "double",
        (
            *_same("double", "'NaN'", "'Infinity'", "'-Infinity'", "1e308", "5e-324", "1.5", "NULL"),
            ("CAST('0.0' AS DOUBLE)", "zero"),
            ("CAST('-0.0' AS DOUBLE)", "zero"),
        ),
    ),
    Kind(
        "float",
        "float",
        (
            *_same("float", "'NaN'", "'-Infinity'", "3.4e38", "1.5", "NULL"),
            ("float('0.0')", "zero"),
            ("float('-0.0')", "zero"),
        ),
    ),
    Kind("string", "string", (*_same("string", *_TEXTS), ("CAST(NULL AS STRING)", "NULL"))),
    Kind(
        "binary",
        "binary",
        (
            ("X''", "empty"),
            ("X'00'", "00"),
            ("X'01FF'", "01FF"),
            ("X'27'", "quote"),
            ("X'6162'", "ab"),
            ("CAST(NULL AS BINARY)", "NULL"),
        ),
    ),
    Kind(
        "date",
        "date",
        _same(
            "date",
            "'0001-01-01'",
            "'0999-12-31'",
            "'1582-10-04'",
            "'1582-10-15'",
            "'1970-01-01'",
            "'2024-02-29'",
            "'9999-12-31'",
            "NULL",
        ),
    ),
    Kind("timestamp", "timestamp", (*_same("timestamp", *_TIMES), ("CAST(NULL AS TIMESTAMP)", "NULL"))),
    Kind(
        "zoneless",
        "timestamp_ntz",
        _same(
            "timestamp_ntz",
            "'0001-01-01T00:00:00'",
            "'1582-10-15T00:00:00.000001'",
            "'9999-12-31T23:59:59.999999'",
            "NULL",
        ),
    ),
    Kind(
        "list",
        "array<int>",
        tuple(
            (f"CAST({text} AS ARRAY<INT>)", text)
            for text in (
                "array()",
                "array(NULL)",
                "array(1)",
                "array(1, NULL)",
                "array(NULL, 1)",
                "array(NULL, NULL)",
                "NULL",
            )
        ),
    ),
    Kind(
        "pair",
        "struct<a:int,b:double>",
        tuple(
            (f"CAST({text} AS STRUCT<a:INT,b:DOUBLE>)", text)
            for text in (
                "struct(1, NULL)",
                "struct(NULL, 1)",
                "struct(NULL, NULL)",
                "struct(1, 1)",
                "struct(1, CAST('NaN' AS DOUBLE))",
                "NULL",
            )
        ),
    ),
    Kind(
        "lists",
        "array<struct<x:string,y:array<int>>>",
        tuple(
            (f"CAST({text} AS ARRAY<STRUCT<x:STRING,y:ARRAY<INT>>>)", text)
            for text in (
                "array()",
                "array(NULL)",
                "array(struct('p', array()))",
                "array(struct('p', NULL))",
                "array(struct('p', array(NULL)))",
                "array(struct(NULL, array()))",
                "NULL",
            )
        ),
    ),
    Kind(
        "map",
        "map<string,timestamp>",
        (
            ("CAST(map() AS MAP<STRING,TIMESTAMP>)", "empty"),
            ("map('a', TIMESTAMP '2024-01-01T00:00:00.000001Z', 'b', NULL)", "a1"),
            ("map('b', NULL, 'a', TIMESTAMP '2024-01-01T00:00:00.000001Z')", "a1"),  # equal, in another order
            ("map('a', TIMESTAMP '2024-01-01T00:00:00.000002Z', 'b', NULL)", "a2"),
            ("CAST(NULL AS MAP<STRING,TIMESTAMP>)", "NULL"),
        ),
    ),
    Kind(
        "maps",
        "map<string,array<map<string,int>>>",
        tuple(
            (f"CAST({text} AS MAP<STRING,ARRAY<MAP<STRING,INT>>>)", text)
            for text in (
                "map('a', array(map('b', 1)))",
                "map('a', array(map('b', NULL)))",
                "map('a', array(map()))",
                "map('a', array(NULL))",
                "map('a', array())",
                "map('a', NULL)",
                "map()",
                "NULL",
            )
        ),
    ),
)
