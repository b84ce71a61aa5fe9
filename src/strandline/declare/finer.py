"""Expressions that tell partitions apart: equal values of them lie in one partition, so grouping by one is grouping inside partitions."""

from sqlglot import exp

from strandline.model.project import Calendar, Partitioning, Unit

_ORDER = (Unit.HOUR, Unit.DAY, Unit.MONTH)


def write_as_column(tree: exp.Query, partition: Partitioning, calendar: Calendar) -> exp.Query:
    """The query with each such expression over the partition's column replaced by the column, for the proof alone."""

    if any(
        alias.alias.lower() == partition.column and not isinstance(alias.this, exp.Column) and alias.find_ancestor(exp.CTE, exp.Subquery)
        for alias in tree.find_all(exp.Alias)
    ):
        return tree  # inside, another value has the column's name

    def rewrite(node: exp.Expr) -> exp.Expr:
        column = _told_apart(node, partition, calendar)
        return column.copy() if column is not None else node

    changed = tree.copy().transform(rewrite)
    assert isinstance(changed, exp.Query)
    return changed


def _told_apart(node: exp.Expr, partition: Partitioning, calendar: Calendar) -> exp.Column | None:
    if partition.unit is None:
        return None
    column = _argument(node)
    if column is None or column.name.lower() != partition.column:
        return None
    step = _step(node, calendar)
    return column if step is not None and _ORDER.index(step) <= _ORDER.index(partition.unit) else None


def _argument(node: exp.Expr) -> exp.Column | None:
    inner = node.expressions[0] if isinstance(node, exp.Anonymous) and len(node.expressions) == 1 else node.this
    while isinstance(inner, exp.Paren):
        inner = inner.this
    return inner if isinstance(inner, exp.Column) else None


def _step(node: exp.Expr, calendar: Calendar) -> Unit | None:
    """How fine a function of a time is; Spark's own work in UTC, ours in the project's time zone."""
    if isinstance(node, exp.Anonymous):
        return {"local_date": Unit.DAY, "local_month": Unit.MONTH}.get(node.name.lower())
    if calendar.timezone != "UTC":
        return None
    if isinstance(node, exp.TsOrDsToDate | exp.Date) or (isinstance(node, exp.Cast) and node.to.is_type("date")):
        return Unit.DAY
    if isinstance(node, exp.TimestampTrunc | exp.DateTrunc):
        unit = node.args.get("unit")
        name = unit.name.lower() if unit is not None else ""
        return Unit(name) if name in set(Unit) else None
    return None
