"""The provided functions `local_date`, `local_month` and `financial_year`, in the project's time zone."""

from sqlglot import exp, parse_one

from strandline.model.project import Calendar

from .spark import SPARK


def _bodies(calendar: Calendar) -> dict[str, tuple[str, str]]:
    """Name -> (type, SQL over `ts`)."""
    local = f"from_utc_timestamp(ts, '{calendar.timezone}')"
    month, day = calendar.year_starts_month, calendar.year_starts_day
    if day == 1:
        year = f"year(add_months({local}, {1 - month}))"
    else:
        started = f"date_format({local}, 'MM-dd') >= '{month:02}-{day:02}'"
        year = f"year({local}) - CASE WHEN {started} THEN 0 ELSE 1 END"
    return {
        "local_date": ("DATE", f"to_date({local})"),
        "local_month": ("STRING", f"date_format({local}, 'yyyy-MM')"),
        "financial_year": (
            "STRING",
            "CASE WHEN ts IS NOT NULL"
            f" THEN concat(lpad({year}, 4, '0'), '-', lpad(pmod({year} + 1, 100), 2, '0')) END",
        ),
    }


def define_calendar(calendar: Calendar, code: str | None = None) -> list[str]:
    """Statements that define the functions in a session, for users' code: those that `code` names, or all."""
    return [
        f"CREATE OR REPLACE TEMPORARY FUNCTION {name}(ts TIMESTAMP) RETURNS {result} RETURN {body}"
        for name, (result, body) in _bodies(calendar).items()
        if code is None or name in code.lower()
    ]


def inline_calendar(sql: str, calendar: Calendar) -> str:
    """SQL with the functions written out, for expressions evaluated outside the task's own session."""
    bodies = _bodies(calendar)
    if not any(name in sql.lower() for name in bodies):
        return sql

    def rewrite(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Anonymous) and node.name.lower() in bodies and len(node.expressions) == 1:
            argument = node.expressions[0].sql(dialect="spark")
            body = parse_one(bodies[node.name.lower()][1], read=SPARK)
            return body.transform(
                lambda n: (
                    parse_one(f"CAST({argument} AS TIMESTAMP)", read=SPARK)
                    if isinstance(n, exp.Column) and n.name == "ts"
                    else n
                )
            )
        return node

    return parse_one(sql, read=SPARK).transform(rewrite).sql(dialect="spark")
