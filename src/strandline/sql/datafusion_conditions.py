"""A checked condition -> the condition that DataFusion filters by, with exact literals and quoted names."""

from strandline.model.conditions import (
    SYMBOLS,
    AllOf,
    AnyOf,
    Comparison,
    Condition,
    Negation,
    Operator,
    Scalar,
)

from .literals import datafusion_literal, datafusion_name


def datafusion_condition(condition: Condition) -> str:
    """True, false or NULL, as in SQL."""
    match condition:
        case Comparison():
            return _compare(condition)
        case Negation(part=part):
            return f"(NOT {datafusion_condition(part)})"
        case AllOf(parts=parts):
            return f"({' AND '.join(map(datafusion_condition, parts))})" if parts else "true"
        case AnyOf(parts=parts):
            return f"({' OR '.join(map(datafusion_condition, parts))})" if parts else "false"


def _compare(comparison: Comparison) -> str:
    column, operator = datafusion_name(comparison.column), comparison.operator
    if operator is Operator.IS_NULL:
        return f"({column} IS NULL)" if comparison.value else f"({column} IS NOT NULL)"
    if not comparison.values:
        return "true" if operator is Operator.NIN else "false"
    if isinstance(comparison.values[0], float):
        # DataFusion compares bits: for it -0.0 is below 0.0, and a NaN with a sign below all numbers.
        column = (
            f"(CASE WHEN isnan({column}) THEN {_literal(float('nan'))} ELSE {column} + {_literal(0.0)} END)"
        )
    values = ", ".join(_literal(value) for value in comparison.values)
    listed = f"({values})" if operator in (Operator.IN, Operator.NIN) else values
    return f"({column} {SYMBOLS[operator]} {listed})"


def _literal(value: Scalar) -> str:
    if isinstance(value, float):
        return f"CAST('{value + 0.0!r}' AS DOUBLE)"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"CAST('{value}' AS BIGINT)"  # the smallest number would be read as minus a too large one
    literal = datafusion_literal(value)
    assert literal is not None, value
    return literal
