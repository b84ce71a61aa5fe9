"""Expressions that tell partitions apart: equal values of them lie in one partition, so grouping by one is grouping inside partitions."""

from dataclasses import dataclass

from sqlglot import exp

from strandline.model.project import Calendar, Partitioning, Unit

from .visible import OF

_ORDER = (Unit.HOUR, Unit.DAY, Unit.MONTH)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSteps:
    """Functions of a time that are as fine as a job's partitions, or finer."""

    unit: Unit
    column: str
    timezone: str

    def find(self, node: exp.Expr) -> tuple[exp.Column, str] | None:
        """The column that such an expression is made of, and its name: two are equal alike only under one name."""
        while isinstance(node, exp.Paren):
            node = node.this
        column, step = _argument(node), _step(node, self.timezone)
        if column is None or step is None or _ORDER.index(step[0]) > _ORDER.index(self.unit):
            return None
        return column, step[1]

    def takes(self, type_: str) -> bool:
        """A value that is one already is cast again, at midnight UTC: it then tells other partitions."""
        return type_ == "timestamp" or (self.timezone == "UTC" and OF not in type_)


def find_steps(partition: Partitioning, calendar: Calendar) -> PartitionSteps | None:
    if partition.unit is None:
        return None
    return PartitionSteps(unit=partition.unit, column=partition.column, timezone=calendar.timezone)


def _argument(node: exp.Expr) -> exp.Column | None:
    """The one argument that is not a unit or a type."""
    if isinstance(node, exp.Anonymous):
        inner = node.expressions[0] if len(node.expressions) == 1 else None
    else:
        given = {name for name, value in node.args.items() if value}
        inner = node.args.get("this") if given <= {"this", "to", "unit", "safe", "_type"} else None
    while isinstance(inner, exp.Paren):
        inner = inner.this
    return inner if isinstance(inner, exp.Column) else None


def _step(node: exp.Expr, timezone: str) -> tuple[Unit, str] | None:
    """How fine a function of a time is, and what it gives; Spark's own work in UTC, ours in the project's time zone."""
    if isinstance(node, exp.Anonymous):
        unit = {"local_date": Unit.DAY, "local_month": Unit.MONTH}.get(node.name.lower())
        return (unit, node.name.lower()) if unit else None
    if timezone != "UTC":
        return None
    if isinstance(node, exp.TsOrDsToDate | exp.Date) or (
        isinstance(node, exp.Cast) and node.to.is_type("date")
    ):
        return Unit.DAY, "date"
    unit = node.args.get("unit")
    name = unit.name.lower() if isinstance(unit, exp.Expr) else ""
    if isinstance(node, exp.TimestampTrunc) and name in set(Unit):
        return Unit(name), f"date_trunc {name}"
    if isinstance(node, exp.DateTrunc) and name == Unit.MONTH:
        return Unit.MONTH, "trunc month"  # of finer units it is NULL for every row
    return None
