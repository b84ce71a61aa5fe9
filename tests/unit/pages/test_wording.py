"""Words that pages and the command line share."""

import pytest

from strandline.pages.wording import plural


@pytest.mark.parametrize(
    ("number", "word", "written"),
    [
        (1, "row", "1 row"),
        (0, "job", "0 jobs"),
        (1200, "fact dataset", "1,200 fact datasets"),
        (1, "entity", "1 entity"),
        (2, "entity", "2 entities"),
        (2, "day", "2 days"),
    ],
)
def test_a_number_of_things_is_written_in_plain_english(number: int, word: str, written: str) -> None:
    assert plural(number, word) == written
