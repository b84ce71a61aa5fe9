"""Windows: their lengths, and the names of the variables of a family."""

import re
from dataclasses import dataclass

from strandline.declare.yaml_lines import DataPath, Document
from strandline.model.report import Report

from .spec import WindowSpec

_LENGTH = re.compile(r"\s*([0-9]+)\s*([a-zA-Z]+?)s?\s*")
_SECONDS = {"minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
_SUFFIXES = {"minute": "min", "hour": "h", "day": "d", "week": "w"}
_DAYS = {"month": 30, "quarter": 90, "year": 365}
_MOST = 200 * 365 * 86_400
"""Two hundred years. A longer window would leave the range of timestamps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    seconds: int
    text: str
    suffix: str
    """What it adds to the name of a variable. Empty if it is the only length."""


def make_lengths(
    spec: WindowSpec, what: str, path: DataPath, document: Document, report: Report
) -> tuple[Length, ...]:
    """The lengths of a window. A wrong one is reported and left out."""
    is_family = isinstance(spec.last, list)
    texts = spec.last if isinstance(spec.last, list) else [spec.last]
    place = document.place(*path, "last")
    lengths: list[Length] = []
    for text in texts:
        length = _LENGTH.fullmatch(text)
        unit = length[2].lower() if length else ""
        number = int(length[1]) if length else 0
        if unit in _SECONDS and 0 < number * _SECONDS[unit] <= _MOST:
            suffix = f"_{number}{_SUFFIXES[unit]}" if is_family else ""
            length_of = Length(seconds=number * _SECONDS[unit], text=text.strip(), suffix=suffix)
            if suffix in {other.suffix for other in lengths}:
                mistake = f"{what} has the length `{text}` twice."
                report.add("named-twice", mistake, "Keep one of them.", place)
            else:
                lengths.append(length_of)
            continue
        mistake = f"{what} has the length `{text}`"
        if unit in _DAYS:
            mistake += f": {unit}s differ in length."
            remedy = f"Write days: `{number * _DAYS[unit]} days`."
        else:
            mistake += ", which is not one."
            remedy = "Write a number of minutes, hours, days or weeks, such as `7 days`."
        report.add("window-length", mistake, remedy, place)
    return tuple(lengths)
