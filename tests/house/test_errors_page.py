"""`docs/reference/errors.md` is what `scripts/error_reference.py` makes of the source as it stands."""

import re

import error_reference
import pytest


def test_the_page_of_errors_is_up_to_date() -> None:
    assert error_reference.PAGE.read_text() == error_reference.make_page(), "Run `make docs`."


@pytest.mark.parametrize(
    "slug", ["disk-full", "file-damaged", "spark-failed", "spark-lost", "lake-unwritable", "fenced"]
)
def test_a_slug_that_no_caller_writes_out_is_listed_too(slug: str) -> None:
    assert slug in error_reference.find_errors()


def test_every_error_says_what_happened_and_a_summary_stands_for_an_error_that_exists() -> None:
    errors = error_reference.find_errors()
    without_words = [
        (slug, message)
        for slug, entry in errors.items()
        for message in entry.messages
        if not re.search(
            "[a-z]", error_reference.PLACEHOLDER.sub("", " ".join((*message.texts, *message.remedies)))
        )
    ]

    assert without_words == []
    assert [slug for slug in error_reference.SUMMARIES if slug not in errors] == []


def test_every_reason_of_a_quarantine_is_listed_and_no_other() -> None:
    assert error_reference.find_refusals() == sorted(error_reference.REFUSED)
