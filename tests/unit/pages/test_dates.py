"""The strip of a timeline on a status page, and the tables beside it."""

import re
from datetime import UTC, date, datetime, timedelta

import pytest

from strandline.model.key_states import DATE_STATES, DateKeys, KeysStatus
from strandline.model.statuses import NOTHING_HELD, DatasetStatus, Overview, TimelineStatus
from strandline.model.timeline import Timeline
from strandline.pages.dates import MOST_BARS
from strandline.pages.status import render_html
from tests.unit.cli.test_status_html import MEAN, Page

KEYS = KeysStatus(current=97, reprocessing=2, failed=1, watermark_on=date(2024, 1, 9))


def day(number: int, **counts: int) -> DateKeys:
    """A date that many days after 1 January 2024."""
    return DateKeys(on=date(2024, 1, 1) + timedelta(days=number), **counts)


def render(*dates: DateKeys, name: str = "positions") -> Page:
    dataset = DatasetStatus(
        dataset="snapshots",
        kind=Timeline.kind,
        drawn_under="timelines",
        drawn_from=3,
        state="fresh",
        since=None,
        table_version=1,
        rows=5,
        counts={},
        keys=KEYS,
    )
    timeline = TimelineStatus(timeline=name, dataset="snapshots", keys=KEYS, dates=dates)
    overview = Overview(
        project="shop",
        statuses=(dataset,),
        held=NOTHING_HELD,
        invalidations=(),
        made_at=datetime(2024, 1, 12, tzinfo=UTC),
        timelines=(timeline,),
    )
    return Page(render_html(overview))


def bars(page: Page) -> list[str]:
    return [text for text in page.texts["title"] if re.search(r"\d: \d+ key", text)]


def heights(page: Page, state: str) -> list[float]:
    """The heights of the segments of a state, from left to right."""
    pattern = r'height="([\d.]+)"></rect>(?:<path[^>]*></path>)?</g>'
    drawn = re.findall(rf'<g class="cell state-{state}"><rect [^>]*{pattern}', page.source)
    return [float(height) for height in drawn]


def test_a_date_is_a_bar_with_its_numbers_as_title() -> None:
    page = render(day(0, current=97, reprocessing=2, failed=1), day(1, current=90, not_valued=10))

    assert bars(page) == [
        "2024-01-01: 100 keys: 1 failed, 2 reprocessing, 97 current",
        "2024-01-02: 100 keys: 10 not valued yet, 90 current",
    ]
    assert any("2024-01-01 to 2024-01-02, left to right." in text for text in page.texts["figcaption"])
    assert any("100 keys: 97 current, 2 reprocessing, 1 failed;" in text for text in page.texts["p"])


def test_heights_are_shares_and_no_state_is_too_small_to_be_seen() -> None:
    page = render(day(0, current=50, failed=50), day(1, current=99_999, reprocessing=1))

    assert heights(page, "failed")[0] == heights(page, "current")[0] == 31.5
    assert 2 <= heights(page, "reprocessing")[0] <= 3
    assert heights(page, "current")[1] < 64


def test_the_tables_say_what_the_strip_shows() -> None:
    page = render(day(0, current=9, failed=1), day(1, current=9, failed=1), day(2, current=8, reprocessing=2))

    cells = page.texts["th"]
    assert [state for state in cells if state in DATE_STATES] == [*DATE_STATES, *DATE_STATES]
    assert [text for text in cells if text.startswith("2024")] == ["2024-01-03", "2024-01-01 to 2024-01-02"]
    assert "Not every key is current: 3 dates, newest first" in page.texts["caption"]
    assert "Keys on 2024-01-03, the last date that is due" in page.texts["caption"]
    assert {"80 %", "20 %"} <= set(page.texts["td"])


def test_dates_without_anything_to_tell_are_not_listed() -> None:
    page = render(day(0, current=3), day(1))

    assert "Every key is current on every date." in page.texts["p"]
    assert not any("Not every key" in text for text in page.texts["caption"])


@pytest.mark.parametrize(("days", "drawn"), [(MOST_BARS, MOST_BARS), (1000, 250)])
def test_a_bar_of_several_dates_shows_the_worst_of_them(days: int, drawn: int) -> None:
    dates = [day(n, current=10) for n in range(days)]
    dates[5] = day(5, current=1, failed=9)

    page = render(*dates)

    assert len(bars(page)) == drawn
    assert len(heights(page, "failed")) == 1
    told = any("A bar stands for 4 dates and shows the worst of them." in t for t in page.texts["figcaption"])
    assert told is (days > MOST_BARS)
    if told:
        assert bars(page)[1].startswith("2024-01-05 to 2024-01-08, the worst 2024-01-06: 10 keys: 9 failed")


def test_at_most_fifty_spans_are_listed_and_the_rest_is_counted() -> None:
    page = render(*(day(n, current=10, failed=n + 1) for n in range(60)))

    assert len([text for text in page.texts["th"] if text.startswith("2024-")]) == 50
    assert "And 10 earlier dates." in page.texts["p"]


def test_a_timeline_without_dates_has_its_keys_alone() -> None:
    page = render()

    assert page.all("figure") == []
    assert page.texts["h2"].count("Timelines") == 1
    assert {"100 keys: 97 current, 2 reprocessing, 1 failed", "complete up to 2024-01-09"} <= set(
        page.texts["td"]
    )


def test_a_name_is_text_and_links_lead_somewhere() -> None:
    page = render(day(0, current=1), name=MEAN)

    ids = [a["id"] for _, a in page.elements if a.get("id")]
    assert page.all("script") == []
    assert len(ids) == len(set(ids))
    assert {str(a["href"])[1:] for a in page.all("a")} <= set(ids)
