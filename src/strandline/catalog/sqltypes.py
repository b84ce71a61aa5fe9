"""Values as both databases store them: instants by the database's own clock, JSON and other text."""

import json
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import BindParameter, Float, Text, literal
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import DateTime, String, TypeDecorator, TypeEngine


class Instant(TypeDecorator[datetime]):
    """A UTC instant. On SQLite it is text of fixed width, which compares as time does."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(String(24) if dialect.name == "sqlite" else DateTime(timezone=True))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if value is None or dialect.name != "sqlite":
            return value
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return (datetime.fromisoformat(value) if isinstance(value, str) else value).astimezone(UTC)


class JsonText(TypeDecorator[Any]):
    """A JSON value as text: the same characters on both databases."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else json.dumps(value, sort_keys=True, separators=(",", ":"))

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        return None if value is None else json.loads(value)


class FreeText(TypeDecorator[str]):
    """Text from outside, such as an error of Spark.

    What Postgres refuses (NUL, half a surrogate pair) becomes a question mark.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return (
            None if value is None else value.replace("\x00", "?").encode("utf-8", "replace").decode("utf-8")
        )


class KeyText(TypeDecorator[str]):
    """The text of a row key. Postgres refuses NUL, so it is `%01` here, which the text of a key never has."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else value.replace("\x00", "%01")

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else value.replace("%01", "\x00")


class database_now(FunctionElement[datetime]):  # noqa: N801 - reads like the SQL function that it is
    """The database's clock, plus a number of seconds, which may be a parameter of the statement.

    Never the clock of this process: the clocks of lease holders disagree.
    """

    inherit_cache = True
    type = Instant()

    def __init__(self, plus_seconds: float | BindParameter[float] = 0.0) -> None:
        fixed = isinstance(plus_seconds, int | float)
        super().__init__(literal(float(plus_seconds), Float()) if fixed else plus_seconds)


@compiles(database_now, "sqlite")
def _sqlite_now(element: database_now, compiler: sqlite.base.SQLiteCompiler, **options: Any) -> str:
    seconds = compiler.process(element.clauses, **options)
    return f"strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', {seconds}))"


@compiles(database_now, "postgresql")
def _postgres_now(element: database_now, compiler: Any, **options: Any) -> str:
    return f"(clock_timestamp() + make_interval(secs => {compiler.process(element.clauses, **options)}))"
