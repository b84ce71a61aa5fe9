"""What identical subscriptions share: a condition, and how a change becomes the text of a message."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from strandline.app.changes import Change, PublishedChange, RowFilter, SeenChange
from strandline.app.rows import StoredRow

from .outbox import Outbox, Ticket

Encode = Callable[[SeenChange], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What somebody subscribes to."""

    dataset: str
    where: object
    """A condition as JSON writes it. None: every row."""
    same: Hashable
    """Equal for subscriptions whose messages are the same."""
    encode: Encode
    after: str | None = None
    snapshot: bool = True


@dataclass(slots=True, eq=False)
class Member:
    """A subscription that gets each change as it comes."""

    ticket: Ticket
    outbox: Outbox


@dataclass(slots=True, kw_only=True, eq=False)
class Group:
    row_filter: RowFilter
    encode: Encode
    members: set[Member] = field(default_factory=set)
    users: int = 0
    """Subscriptions that need it: the members, and those that catch up."""

    def encode_change(self, change: PublishedChange) -> str | None:
        """None if nothing is to be told about it."""
        seen = self.row_filter.see(change)
        return None if seen is None else self.encode(seen)

    def encode_row(self, stored: StoredRow, cursor: str | None) -> str:
        """A row as it is. The last one has a cursor."""
        return self.encode(
            SeenChange(
                operation=Change.INSERT,
                key="",
                row=stored.row,
                fields=tuple(stored.row),
                before=None,
                timestamp=stored.timestamp,
                cursor=cursor,
            )
        )
