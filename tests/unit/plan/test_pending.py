"""Reasons for a node to be behind, and for a file to be opened."""

import pytest

from strandline.model.files import FileRead, FileSeen
from strandline.model.plan import Cursor
from strandline.plan.draft import pending
from strandline.plan.sources import is_pending
from tests.golden.cases import tell

READ = FileRead(path="a", revision=0, bytes=10, rows=2, digest="d", size=10, modified_ns=5)


def test_only_commits_that_change_rows_are_pending() -> None:
    reported = tell(
        (
            "project small",
            "built",
            "commit sale fence",
            "commit sale replace_keys 1 rows",
            "commit sale optimize",
        )
    )
    table, reader = reported.tables["sale"], next(reported.project.readers_of("sale"))

    assert pending(reader, table, Cursor(table_id="sale table", version=0)) == (2,)
    assert pending(reader, table, Cursor(table_id="sale table", version=2)) == ()


@pytest.mark.parametrize(
    ("size", "modified_ns", "read", "expected"),
    [
        (10, 5, None, True),
        (10, 5, READ, False),
        (12, 5, READ, True),
        (10, 6, READ, True),
    ],
    ids=["new", "unchanged", "grown", "touched"],
)
def test_a_file_is_opened_only_if_its_size_or_time_is_new(
    size: int, modified_ns: int, read: FileRead | None, *, expected: bool
) -> None:
    assert is_pending(FileSeen(path="a", size=size, modified_ns=modified_ns), read) is expected
