"""Paths into a payload: `property.units`, `a[].b`, `item.unitId`."""

from strandline.model.errors import Place
from strandline.model.report import Report


def parse_path(text: str, what: str, place: Place, report: Report) -> tuple[str, ...]:
    """The steps of a path to one value. Empty, with a mistake, if it is not a path."""
    steps = tuple(text.strip().split("."))
    if all(steps) and not any(mark in text for mark in "[]`\n"):
        return steps
    remedy = "Write field names with dots between them, such as `property.landArea`."
    if "[" in text:
        remedy += " To go through a list use `explode`."
    report.add("bad-path", f"`{text}` is not a path for {what}.", remedy, place)
    return ()


def parse_list_path(text: str, place: Place, report: Report) -> tuple[str, ...]:
    """The steps of the path of a list. A step that goes through another list keeps its `[]`."""
    steps = tuple(text.strip().split("."))
    names = [step.removesuffix("[]") for step in steps]
    if (
        all(names)
        and not any(mark in name for name in names for mark in "[]`\n")
        and not steps[-1].endswith("[]")
    ):
        return steps
    ends_in_list = text.strip().endswith("[]") and names[-1]
    remedy = (
        f"Write `{text.strip().removesuffix('[]')}`."
        if ends_in_list
        else "Write a path such as `property.units` or `a[].b`."
    )
    report.add("bad-path", f"`explode: {text}` is not the path of a list.", remedy, place)
    return ()


def is_of_item(path: tuple[str, ...]) -> bool:
    return bool(path) and path[0] == "item"
