"""Names: which are valid, and that no two things share one."""

import re
from collections.abc import Iterable

from strandline.model.columns import METADATA_COLUMNS, RESERVED_SUFFIXES, is_column_name
from strandline.model.errors import Place
from strandline.model.report import Report

_NAME = re.compile(r"[a-z][a-z0-9_]*")


class NameRegistry:
    """Every name of the project and what it means."""

    def __init__(self, report: Report, broken: frozenset[str]) -> None:
        self._report = report
        self._taken: dict[str, tuple[str, Place]] = {}
        self.broken = broken
        """Names whose entry was reported already: a reference to one is not a mistake."""

    def claim(self, name: str, kind: str, place: Place) -> bool:
        """Register a name. False, with a mistake, if it is not valid or is taken."""
        if not check_name(name, kind, place, self._report):
            return False
        if name in self._taken:
            other, there = self._taken[name]
            what = f"`{name}` is the name of {_a(kind)} and of {_a(other)} ({there})."
            self._report.add("name-taken", what, "Rename one of them: a name stands for one thing.", place)
            return False
        self._taken[name] = (kind, place)
        return True


def check_name(name: str, kind: str, place: Place | None, report: Report) -> bool:
    if not _NAME.fullmatch(name):
        better = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
        remedy = (
            f"Name it, for example, `{better}`."
            if _NAME.fullmatch(better)
            else "Use lower-case letters, digits and `_`, starting with a letter."
        )
        report.add("bad-name", f"`{name}` cannot be the name of a {kind}.", remedy, place)
        return False
    suffix = next((s for s in RESERVED_SUFFIXES if name.endswith(s)), None)
    if suffix:
        what = (
            f"the {kind} `{name}` ends in `{suffix}`, which is reserved for tables that Strandline creates."
        )
        report.add("reserved-name", what, "Give it a name without that ending.", place)
        return False
    return True


def check_column_name(name: str, place: Place, report: Report) -> bool:
    """Any word may name a column except the metadata columns."""
    if name in METADATA_COLUMNS:
        what = f"the column `{name}` has the name of a metadata column."
        report.add(
            "metadata-column",
            what,
            "Give it another name; metadata columns exist without being declared.",
            place,
        )
        return False
    if not is_column_name(name):
        remedy = "Use letters, digits and `_`, but not `__` at the start; `path:` may name any field."
        report.add("bad-name", f"`{name}` cannot be the name of a column.", remedy, place)
        return False
    return True


def lowered(names: Iterable[str] | None) -> tuple[str, ...]:
    """Names of columns as they are stored, in lower case and each once."""
    return tuple(dict.fromkeys(name.lower() for name in names or ()))


def _a(kind: str) -> str:
    """With its article."""
    return f"an {kind}" if kind[0] in "aeio" else f"a {kind}"
