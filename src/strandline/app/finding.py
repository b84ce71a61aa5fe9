"""One thing that `doctor` examined."""

from dataclasses import dataclass
from enum import StrEnum


class Result(StrEnum):
    OK = "ok"
    NOTE = "note"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was examined. `wrong` needs action, a `note` does not."""

    check: str
    result: Result
    what: str
    remedy: str = ""
