"""The data and the projects of the entity benchmark: events of many users, and variables over them."""

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

import duckdb

from .register import THREADS

FIRST_ON = date(2024, 1, 1)
DAYS_A_FILE = 10
WINDOWS = (7, 30, 90)
SETTINGS = """\
timezone: UTC
settings:
  spark: {master: "local[2]", conf: {spark.driver.memory: 4g}}
"""
EVENTS = """\
sources:
  event_rows: {files: "data/*.parquet"}
datasets:
  events: {from: event_rows}
"""


@dataclass(slots=True)
class Events:
    """Daily events under `folder`, of users who take turns by a hash."""

    folder: Path
    days: int
    a_day: int
    users: int
    passed: int = 0
    """Days after the first load, with or without events."""
    delivered: list[Path] = field(default_factory=list)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def rows(self) -> int:
        return self.days * self.a_day

    @property
    def as_of(self) -> datetime:
        """Midnight after the last day."""
        return datetime.combine(FIRST_ON + timedelta(days=self.days + self.passed), time(), UTC)

    def make(self) -> None:
        self.data.mkdir(parents=True)
        for first in range(0, self.days, DAYS_A_FILE):
            self._write(first, min(first + DAYS_A_FILE, self.days))

    def pass_day(self, *, with_events: bool) -> None:
        day = self.days + self.passed
        self.passed += 1
        if with_events:
            self._write(day, day + 1)

    def add(self, rows: int) -> None:
        """That many events in a day of their own. Up to as many users as there are have one more each."""
        day = self.days + self.passed
        self.passed += 1
        at = f"TIMESTAMPTZ '{FIRST_ON + timedelta(days=day)} 00:00:00+00' + to_microseconds(n)"
        self._copy(self.data / f"events_{day:05}.parquet", f"n % {self.users}", at, 0, rows)

    def _write(self, first: int, end: int) -> None:
        at = (
            f"TIMESTAMPTZ '{FIRST_ON} 00:00:00+00'"
            f" + to_microseconds((n * 86400000000 // {self.a_day})::BIGINT)"
        )
        path = self.data / f"events_{first:05}.parquet"
        self._copy(path, f"hash(n) % {self.users}", at, first * self.a_day, end * self.a_day)

    def _copy(self, path: Path, user: str, sent_at: str, first: int, end: int) -> None:
        with duckdb.connect(config={"threads": THREADS}) as connection:
            connection.execute(
                f"""
                COPY (
                    SELECT ({user})::BIGINT AS user_id,
                        ((hash(n + 1) % 100000)::BIGINT / 100)::DECIMAL(10, 2) AS amount,
                        (hash(n + 2) % 500)::INTEGER AS points,
                        (hash(n + 3) % 40)::INTEGER AS page,
                        {sent_at} AS sent_at
                    FROM range({first}, {end}) t(n)
                ) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 100000)
                """
            )
        self.delivered.append(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """A variable, as the project declares it and as its peers compute it."""

    name: str
    function: str
    column: str = "*"
    days: int | None = None
    least_page: int = 0
    adds: bool = True
    """Whether it can be added to and subtracted from."""

    @property
    def select(self) -> str:
        if self.function == "distinct":
            return f"count(distinct {self.column})"
        return f"{self.function}({self.column})"

    def declare(self) -> str:
        window = f", window: {{column: sent_at, last: {self.days} days}}" if self.days else ""
        where = f", where: page >= {self.least_page}" if self.least_page else ""
        return f'{{from: events, select: "{self.select}"{where}{window}}}'


def make_variables() -> tuple[Aggregate, ...]:
    """Counts, sums and averages, extremes, and distinct values: for ever, and in windows."""
    lasting: tuple[int | None, ...] = (*WINDOWS, None)
    made = []
    for days in lasting:
        suffix = f"{days}d" if days else "ever"
        made += [
            Aggregate(name=f"events_{suffix}", function="count", days=days),
            Aggregate(name=f"spent_{suffix}", function="sum", column="amount", days=days),
            Aggregate(name=f"points_{suffix}", function="avg", column="points", days=days),
        ]
    made += [Aggregate(name=f"{f}_ever", function=f, column="points") for f in ("max", "min")]
    for days in WINDOWS[1:]:
        for function, column in (("max", "amount"), ("min", "amount"), ("distinct", "page")):
            name = f"{function}_{column}_{days}d"
            made.append(Aggregate(name=name, function=function, column=column, days=days, adds=False))
    return tuple(made)


def make_wide(number: int) -> tuple[Aggregate, ...]:
    """That many counts, sums and averages, each of its own: in five windows, of more and more pages."""
    functions = (("count", "*"), ("sum", "amount"), ("avg", "points"), ("sum", "points"))
    return tuple(
        Aggregate(
            name=f"v{i}",
            function=functions[i % 4][0],
            column=functions[i % 4][1],
            days=1 + i % 5,
            least_page=i // 20,
        )
        for i in range(number)
    )


def declare(entities: dict[str, tuple[Aggregate, ...]]) -> str:
    """A project with these entities."""
    lines = [f"project: entity_bench\n{SETTINGS}{EVENTS}entities:\n"]
    for name, variables in entities.items():
        lines.append(f"  {name}:\n    id: user_id\n    variables:\n")
        lines += [f"      {v.name}: {v.declare()}\n" for v in variables]
    return "".join(lines)
