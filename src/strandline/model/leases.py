"""The right to write a dataset."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to write one dataset until it expires."""

    dataset: str
    holder: str
    token: int
    expires_at: datetime
    must_fence: bool
    """The previous holder did not end cleanly: fence and settle before writing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseState:
    """The newest lease of a dataset, as the catalog records it."""

    dataset: str
    holder: str
    token: int
    expires_at: datetime
    returned: bool
    """It was given back: the write that it covered ended cleanly."""
    held: bool
    """It was not given back and has not expired."""
