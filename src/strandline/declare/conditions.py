"""Conditions in the project file: every mistake with its line."""

from collections.abc import Mapping
from typing import Any

from strandline.model.condition_json import read_condition
from strandline.model.conditions import Condition
from strandline.model.report import Report
from strandline.sql.known_columns import Known

from .yaml_lines import DataPath, Document

ConditionSpec = dict[str, Any]
"""The shape of a condition. What it contains is checked against the columns."""


def make_condition(
    value: Mapping[str, Any], what: str, path: DataPath, known: Known, document: Document, report: Report
) -> Condition:
    """The condition. Columns and types that are not known before the first run are checked then."""
    columns = {name: known.type_of(name) for name in known.names} if known.names is not None else None
    condition, mistakes = read_condition(value, columns)
    for mistake in mistakes:
        error = mistake.error
        report.add(error.slug, f"{what}: {error.what}", error.remedy, document.place(*path, *mistake.path))
    return condition
