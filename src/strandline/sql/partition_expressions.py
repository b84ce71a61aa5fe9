"""Expressions that separate partitions.

Rows with equal values of such an expression are in one partition, so grouping by it is grouping inside
partitions.
"""

from dataclasses import dataclass

from sqlglot import exp

from strandline.model.project import Calendar, Partitioning, Unit

from .visible import OF

_ORDER = (Unit.HOUR, Unit.DAY, Unit.MONTH)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSteps:
    """Functions of a time that are at least as fine as a job's partitions."""

    unit: Unit
    column: str
    timezone: str

    def find(self, node: exp.Expr) -> tuple[exp.Column, str] | None:
        """The column inside such an expression, and the expression's name.

        Only values of the same name compare.
        """
        while isinstance(node, exp.Paren):
            node = node.this
        column, step = _argument(node), _step(node, self.timezone)
        if column is None or step is None or _ORDER.index(step[0]) > _ORDER.index(self.unit):
            return None
        return column, step[1]

    def takes(self, type_: str) -> bool:
        """Whether these functions separate partitions when applied to a column of this type.

        A value that is already a date is cast to a timestamp at midnight UTC, and so may belong to another
        partition.
        """
        return type_ == "timestamp" or (self.timezone == "UTC" and OF not in type_)


def find_steps(partition: Partitioning, calendar: Calendar) -> PartitionSteps | None:
    if partition.unit is None:
        return None
    return PartitionSteps(unit=partition.unit, column=partition.column, timezone=calendar.timezone)


def _argument(node: exp.Expr) -> exp.Column | None:
    """The only argument that is not a unit or a type."""
    if isinstance(node, exp.Anonymous):
        inner = node.expressions[0] if len(node.expressions) == 1 else None
    else:
        arguments = {name for name, value in node.args.items() if value}
        inner = node.args.get("this") if arguments <= {"this", "to", "unit", "safe", "_type"} else None
    while isinstance(inner, exp.Paren):
        inner = inner.this
    return inner if isinstance(inner, exp.Column) else None


def _step(node: exp.Expr, timezone: str) -> tuple[Unit, str] | None:
    """How fine a function of a time is, and a name for its values.

    Spark's own functions use UTC, ours the project's time zone.
    """
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
        return Unit.MONTH, "trunc month"  # for finer units it is NULL in every row
    return None
