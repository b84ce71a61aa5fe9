"""What `maintain` did to a table, or would do."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintained:
    """The result for one table."""

    dataset: str
    files_before: int
    files_after: int
    bytes_before: int
    """The bytes of everything in its folder except the log."""
    bytes_after: int
    removed_files: int = 0
    freed_bytes: int = 0
    kept_files: int = 0
    """Files that are kept although the newest version does not read them."""
    kept_bytes: int = 0
    kept_because: str = ""
    table_version: int = -1
    notes: tuple[str, ...] = ()
    error: str = ""
