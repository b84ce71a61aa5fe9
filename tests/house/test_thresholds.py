"""Paths chosen by size: all sizes are in one place, and the suite forces each of them both ways."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from strandline.model.thresholds import SHIPPED, UNLIMITED, Thresholds, parse_thresholds
from tests.harness import PATHS

SOURCE = Path(__file__).parents[2] / "src" / "strandline"
NOT_A_PATH = {
    "LAST_PLACE": "a place in a file that no line has",
    "MOST_PARTITIONS": "more are refused",
    "_MOST_HELD": "whatever the threshold says",
    "_DAYS_OF_400_YEARS": "the calendar",
    "EXAMPLES": "how many are shown",
    "CHECKED_BYTES": "what is checked before it is read, not what is read",
    "ROWS_A_FILE": "how compaction cuts files",
    "MANY_DELETED": "when compaction is due",
    "MUCH_UNSORTED": "when compaction is due",
    "_TOLERATED": "when compaction is due",
    "MOST_COLUMNS": "by how many columns compaction sorts",
    "_ROWS_A_BLOCK": "how a file's lines are cut into rows of one write",
    "_CHARACTERS_A_BLOCK": "how messages are cut into rows of one write",
    "_NAMES_A_QUERY": "how many names one query looks for",
    "_BLOCK": "how much of a file is read at once",
    "MOST_FIELDS": "more are refused",
    "LONGEST_QUOTED": "a longer one is refused",
    "_LARGEST": "a message with a longer string is put aside, a state with a longer number is refused",
    "_DEEPEST": "a state with deeper nesting is refused",
    "_ID_LENGTH": "of a name",
    "_KEPT_VERSIONS": "how many are kept open; another is opened again",
    "OLDEST_JAVA": "a version",
    "_MANY": "how many are named in a message",
    "_PATIENCE": "seconds",
    "TRIES": "of a task",
    "GRACE": "seconds",
    "_MARGIN_SECONDS": "how long a claim outlives its attempt",
    "_AHEAD": "how many deliveries are claimed at once",
    "_AT_ONCE": "how many events become deliveries in one transaction",
    "_OVERTAKEN": "how often another process may be faster",
    "BYTES_A_ROW": "an estimate for the plan",
    "_SHOWN_FAILURES": "how many are named in a message",
    "_ROWS_PER_BATCH": "how rows are handed to Spark",
    "ROWS_PER_FILE": "how a build cuts files",
    "DIGITS": "of decimals",
    "_MOST_RANGES": "how precisely files are skipped; which rows are read is decided after that",
    "_MOST_PAIRS": "the same",
    "_MOST_VALUES": "how precisely pages are skipped; which rows are read is decided after that",
    "_USUAL": "a larger number in a state is examined before it is copied",
}
"""Numbers that do not choose a path to a result, each with the reason."""


SHARES = {"full_percent": "the planner's own tests force it both ways: tests/unit/plan/test_strategies.py"}
"""Parts of the whole: with the least of them every path of large data would be the same one."""


@pytest.mark.parametrize("name", [f.name for f in fields(Thresholds) if f.name not in SHARES])
def test_every_threshold_is_forced_both_ways(name: str) -> None:
    forced = {getattr(parse_thresholds(text), name) for text in PATHS.values()}

    assert min(forced) <= 1
    assert max(forced) == UNLIMITED
    assert getattr(SHIPPED, name) in forced


def test_no_other_module_has_a_size_of_its_own() -> None:
    sizes = {
        name
        for package in ("compute", "dispatch", "ingest", "lake", "plan")
        for path in (SOURCE / package).rglob("*.py")
        for name in re.findall(r"^(_?[A-Z][A-Z0-9_]*)(?:: int)? = \(?\d", path.read_text(), re.MULTILINE)
    }

    assert sizes <= set(NOT_A_PATH), "a size that chooses a path belongs to model/thresholds.py"


def test_a_later_part_overrides_an_earlier_one_and_a_wrong_one_is_refused() -> None:
    chosen = parse_thresholds("unlimited, small_table_bytes=0,partitions_at_once=0")

    assert (chosen.small_table_bytes, chosen.partitions_at_once, chosen.named_keys) == (0, 1, UNLIMITED)
    assert parse_thresholds("") == SHIPPED
    for wrong in ("small_table_byte=1", "named_keys", "named_keys=-1", "most"):
        with pytest.raises(ValueError, match=wrong):
            parse_thresholds(wrong)
