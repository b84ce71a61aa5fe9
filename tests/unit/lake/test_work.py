"""A task hands changes on to readers in the same run: exactly those after their cursor, or none."""

import json
from pathlib import Path

import pytest
from pyspark.sql.types import StructType

from strandline.lake.location import Lake
from strandline.lake.small import SmallTables
from strandline.lake.staging import Staged
from strandline.lake.work import Shared

CHANGES = Staged(path="changes", schema=StructType(), counts={"new_rows": 1, "old_rows": 0})


def write_entry(lake: Path, version: int, *, changes: bool) -> None:
    added = {"add": {"path": f"{version}.parquet", "size": 1, "dataChange": True}}
    entry = json.dumps(added) if changes else json.dumps({"commitInfo": {"operation": "OPTIMIZE"}})
    folder = lake / "sale" / "_delta_log"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{version:020}.json").write_text(entry)


@pytest.fixture
def shared(tmp_path: Path) -> Shared:
    """A table of ten versions. Versions 2 and 9 changed rows, and 9 was written by this run."""
    for version in range(10):
        write_entry(tmp_path, version, changes=version in (2, 9))
    shared = Shared(small=SmallTables(Lake(root=str(tmp_path)), str(tmp_path / "small")))
    shared.hand_on("sale", 9, CHANGES)
    return shared


@pytest.mark.parametrize("after", range(2, 9))
def test_a_reader_takes_the_changes_of_the_only_commit_after_its_cursor_that_has_any(
    shared: Shared, after: int
) -> None:
    assert shared.find_changes("sale", after, 9) is CHANGES


@pytest.mark.parametrize(("after", "upto"), [(-1, 9), (1, 9), (2, 8), (9, 9), (2, 10)])
def test_a_reader_that_needs_more_or_less_takes_nothing(shared: Shared, after: int, upto: int) -> None:
    assert shared.find_changes("sale", after, upto) is None


def test_a_reader_takes_nothing_where_the_log_does_not_reach_back_to_its_cursor(
    shared: Shared, tmp_path: Path
) -> None:
    """What the removed entries changed is not known."""
    for version in range(5):
        (tmp_path / "sale" / "_delta_log" / f"{version:020}.json").unlink()

    assert shared.find_changes("sale", 1, 9) is None
    assert shared.find_changes("sale", 4, 9) is CHANGES
