"""The only place that reads the wall clock."""

from datetime import UTC, datetime

from strandline.model.errors import CallError


def now() -> datetime:
    return datetime.now(UTC)


def parse_instant(text: str) -> datetime:
    """`--as-of` and `--known-at`: a date or an ISO 8601 instant. Without an offset it is UTC."""
    try:
        instant = datetime.fromisoformat(text)
        return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)
    except (ValueError, OverflowError):  # in UTC it may lie before the year 1 or after 9999
        raise CallError(
            f"`{text}` is not an instant.",
            remedy="Write it as 2024-01-13 or 2024-01-13T08:30:00Z.",
            slug="bad-instant",
        ) from None
