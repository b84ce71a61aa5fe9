"""Whether a task of a trigger folds changes or compares rows, and whether it begins a revision. Pure."""

from collections.abc import Callable
from dataclasses import dataclass

from strandline.model.publishing import Existing


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    compares: bool
    """The rows as they are now are compared with the state, and changes are not folded."""
    starts: bool
    """A revision begins before anything is recorded."""


def choose_way(
    existing: Existing,
    *,
    starts: bool,
    asked: bool,
    were_there: bool,
    has_existing: Callable[[], bool],
    has_reset: Callable[[], bool],
) -> Way:
    """`starts`: a revision begins whatever the log says. `asked`: a person wants the rows compared.

    `were_there`: rows may have been there before the trigger. Of the unread changes, `has_existing` says
    whether some only set the state, and `has_reset` whether the log could not tell some.
    """
    delivers = existing is Existing.DELIVER and ((starts and were_there) or has_existing())
    compares = asked or delivers
    # A fold meets the RESET itself. A comparison must not record among events of versions that are no more.
    return Way(compares=compares, starts=starts or (compares and has_reset()))
