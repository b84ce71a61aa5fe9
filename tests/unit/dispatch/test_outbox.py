"""Recorded events become deliveries: each once, in order, whatever became of the catalog or the table."""

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from strandline.catalog import (
    Catalog,
    DeliveryFilter,
    claim_deliveries,
    enqueue_deliveries,
    find_delivery_cursor,
    open_catalog,
    read_deliveries,
)
from strandline.dispatch import outbox
from strandline.dispatch.failpoints import FailpointError
from strandline.dispatch.outbox import Filled, fill_outbox
from strandline.lake.location import Lake
from strandline.model.endpoints import Ordering
from strandline.model.node import Project
from tests.events import AT, EventLog, Fired
from tests.unit.declare.publishing import load_trades

TRIGGER = "large_trade_alert"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return load_trades(tmp_path / "project")


@pytest.fixture
def catalog() -> Iterator[Catalog]:
    catalog = open_catalog("sqlite://")
    yield catalog
    catalog.close()


@pytest.fixture
def log(tmp_path: Path) -> EventLog:
    return EventLog(trigger=TRIGGER, uri=tmp_path / "lake" / TRIGGER)


def fill(project: Project, catalog: Catalog, log: EventLog, now: datetime = AT, most: int = 1_000) -> Filled:
    return fill_outbox(project, catalog, Lake(root=str(log.uri.parent)), lambda: now, most)


def ids(catalog: Catalog) -> list[str]:
    """In the order in which they were recorded."""
    found = read_deliveries(catalog, DeliveryFilter(trigger=TRIGGER), 10_000)
    return [record.event_id for _, record in reversed(found)]


def keys(catalog: Catalog) -> list[str]:
    found = read_deliveries(catalog, DeliveryFilter(trigger=TRIGGER), 10_000)
    return [record.key for _, record in reversed(found)]


def test_events_become_deliveries_once_and_in_the_order_of_their_changes(
    project: Project, catalog: Catalog, log: EventLog
) -> None:
    first = [Fired(key="b"), Fired(key="a"), Fired(key="b", timestamp=2, match=False)]
    fill(project, catalog, log)
    log.append(*first, shuffled=True)

    assert fill(project, catalog, log).owed == 3
    assert fill(project, catalog, log).owed == 0
    second = [Fired(key="a", n=2)]
    log.append(*second)
    assert fill(project, catalog, log).owed == 1

    assert ids(catalog) == log.ids([*first, *second])
    assert find_delivery_cursor(catalog, TRIGGER) == (log.id, 1)


def test_the_body_is_that_of_the_language_with_the_row_as_it_was_recorded(
    project: Project, catalog: Catalog, log: EventLog
) -> None:
    fill(project, catalog, log)
    row = '{"trade_id":123,"price":150.2500,"note":"größer\\u0000"}'
    log.append(Fired(key="123", timestamp=1705316445123456789, data=row))
    fill(project, catalog, log)

    (claim,) = claim_deliveries(catalog, "ops", "sender", 60, 10, Ordering.PER_KEY)

    assert claim.body.decode() == (
        '{"event_id":"acf67a288f80147280c9d4b1e99378cd","event_type":"MATCH",'
        '"trigger_name":"large_trade_alert","timestamp":"2024-01-15T10:30:45.123Z",'
        f'"source_timestamp":"1705316445123456789","data":{row}}}'
    )
    assert claim.id == "acf67a288f80147280c9d4b1e99378cd-ops"


def test_nobody_is_told_about_a_quiet_event(project: Project, catalog: Catalog, log: EventLog) -> None:
    fill(project, catalog, log)
    log.append(Fired(key="a", quiet=True), Fired(key="b"), Fired(key="c", quiet=True))
    log.append(Fired(key="d", quiet=True))

    assert fill(project, catalog, log).owed == 1
    assert keys(catalog) == ["b"]
    assert find_delivery_cursor(catalog, TRIGGER) == (log.id, 1)


def test_rows_that_somebody_else_wrote_are_no_events(
    project: Project, catalog: Catalog, log: EventLog
) -> None:
    fill(project, catalog, log)
    log.append(Fired(key="a"))
    log.append(Fired(key="invented"), foreign=True)
    log.append(Fired(key="b"))

    fill(project, catalog, log)

    assert keys(catalog) == ["a", "b"]


@pytest.mark.parametrize("most", [1, 2, 3, 7, 100])
def test_many_events_are_owed_in_parts_and_in_order(
    project: Project, catalog: Catalog, log: EventLog, most: int
) -> None:
    """Also those of one commit. A part moves the cursor past what it contains and no further."""
    fill(project, catalog, log)
    commits = [[Fired(key=f"{commit}-{n}", quiet=n == 4) for n in range(9)] for commit in range(3)]
    for events in commits:
        log.append(*events, shuffled=True)

    assert fill(project, catalog, log, most=most).owed == 24
    told = [event for events in commits for event in events if not event.quiet]
    assert ids(catalog) == log.ids(told)


@pytest.mark.parametrize("most", [1, 2, 100])
@pytest.mark.parametrize("knows", [True, False], ids=["catalog", "lost catalog"])
def test_events_of_a_dataset_whose_versions_began_anew_are_owed_in_the_order_they_were_recorded(
    project: Project, catalog: Catalog, log: EventLog, most: int, knows: bool
) -> None:
    if knows:
        fill(project, catalog, log)
    events = [
        Fired(key="a", timestamp=1, version=50),
        Fired(key="a", timestamp=2, version=51, match=False),
        Fired(key="a", timestamp=3, version=0, revision=2),
        Fired(key="a", timestamp=4, version=1, revision=2, match=False),
    ]
    log.append(*events[:3], shuffled=True)
    log.append(events[3])

    fill(project, catalog, log, most=most)

    assert ids(catalog) == log.ids(events)


def test_a_large_commit_of_quiet_events_holds_up_nothing(
    project: Project, catalog: Catalog, log: EventLog
) -> None:
    """As a run with `--quiet` leaves it, when more are recorded than become deliveries at once."""
    fill(project, catalog, log)
    log.append(*(Fired(key=str(n), quiet=True) for n in range(5)))
    log.append(Fired(key="a"))

    filled = fill(project, catalog, log, most=2)

    assert (filled.owed, filled.failures) == (1, {})
    assert keys(catalog) == ["a"]


@pytest.mark.parametrize("point", ["before-fill", "after-fill"])
@pytest.mark.parametrize("nth", [1, 2, 3, 4, 5])
def test_a_kill_while_it_is_filled_loses_nothing_and_doubles_nothing(
    project: Project, catalog: Catalog, log: EventLog, monkeypatch: pytest.MonkeyPatch, point: str, nth: int
) -> None:
    fill(project, catalog, log)
    events = [Fired(key=f"{n}") for n in range(7)]
    log.append(*events[:5], shuffled=True)
    log.append(*events[5:])
    _kill(monkeypatch, point, nth)

    def work() -> None:
        for _ in range(5):
            fill(project, catalog, log, most=2)
            log.append(Fired(key="more"))

    with pytest.raises(FailpointError):
        work()
    monkeypatch.undo()
    fill(project, catalog, log, most=2)

    assert ids(catalog)[:7] == log.ids(events)
    assert len(set(ids(catalog))) == len(ids(catalog))
    assert find_delivery_cursor(catalog, TRIGGER) == (log.id, log.version)


def _kill(monkeypatch: pytest.MonkeyPatch, point: str, nth: int) -> None:
    hits = iter(range(1, 1_000))

    def reach(name: str, _node: str) -> None:
        if name == point and next(hits) == nth:
            raise FailpointError

    monkeypatch.setattr(outbox, "reach", reach)


def test_another_process_that_fills_meanwhile_is_no_harm(
    project: Project, catalog: Catalog, log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(project, catalog, log)
    events = [Fired(key=f"{n}") for n in range(5)]
    log.append(*events)

    def reach(name: str, _node: str) -> None:
        if name == "before-fill":
            monkeypatch.undo()
            fill(project, catalog, log)

    monkeypatch.setattr(outbox, "reach", reach)

    assert fill(project, catalog, log).owed == 0
    assert ids(catalog) == log.ids(events)


def test_without_a_catalog_only_what_is_inside_its_retry_schedule_is_owed_again(
    project: Project, catalog: Catalog, log: EventLog
) -> None:
    """L6: an event of three days ago was delivered or is dead. The usual schedule takes 28 to 33 hours."""
    log.append(Fired(key="long ago"), at=AT - timedelta(days=3))
    log.append(Fired(key="yesterday"), Fired(key="quiet", quiet=True), at=AT - timedelta(hours=20))
    log.append(Fired(key="now"))

    filled = fill(project, catalog, log)

    assert (filled.owed, keys(catalog)) == (2, ["yesterday", "now"])
    assert "the catalog did not know which events of `large_trade_alert` were delivered" in filled.notes[0]
    assert fill(project, catalog, log, now=AT + timedelta(days=9)) == Filled(failures={})


def test_a_kill_while_a_lost_catalog_is_filled_owes_no_more_than_without(
    project: Project, catalog: Catalog, log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.append(Fired(key="long ago"), at=AT - timedelta(days=3))
    log.append(*(Fired(key=f"{n}") for n in range(5)))
    _kill(monkeypatch, "after-fill", 1)
    with pytest.raises(FailpointError):
        fill(project, catalog, log, most=2)
    monkeypatch.undo()

    fill(project, catalog, log, most=2)

    assert keys(catalog) == ["0", "1", "2", "3", "4"]


def test_a_cursor_that_was_opened_before_the_first_event_owes_it_however_late(
    project: Project, catalog: Catalog, log: EventLog
) -> None:
    """A run records the first events and dies. Nobody looks for a week."""
    fill(project, catalog, log)
    log.append(Fired(key="a"))

    assert fill(project, catalog, log, now=AT + timedelta(days=7)).owed == 1


def test_another_table_in_its_place_is_read_as_if_the_catalog_were_lost(
    project: Project, catalog: Catalog, log: EventLog
) -> None:
    fill(project, catalog, log)
    log.append(Fired(key="a"), at=AT - timedelta(days=3))
    fill(project, catalog, log)
    shutil.rmtree(log.uri)
    log.append(Fired(key="b"), at=AT - timedelta(days=3))
    log.append(Fired(key="c"))

    filled = fill(project, catalog, log)

    assert (keys(catalog), len(filled.notes)) == (["a", "c"], 1)
    assert find_delivery_cursor(catalog, TRIGGER) == (log.id, 1)


def test_a_cursor_beyond_the_table_is_not_believed(project: Project, catalog: Catalog, log: EventLog) -> None:
    fill(project, catalog, log)
    log.append(Fired(key="a"))
    fill(project, catalog, log)
    enqueue_deliveries(catalog, TRIGGER, (log.id, 0), (log.id, 9), [])
    log.append(Fired(key="b"))

    assert fill(project, catalog, log).owed == 1
    assert keys(catalog) == ["a", "b"]


def test_files_that_were_merged_and_removed_lose_no_event(
    project: Project, catalog: Catalog, log: EventLog
) -> None:
    """`maintain` keeps what the cursor needs. Other tools do not: events are then found by their time."""
    fill(project, catalog, log)
    log.append(Fired(key="old"), at=AT - timedelta(days=30))
    fill(project, catalog, log)
    now = datetime.now(UTC)
    log.append(Fired(key="a"), Fired(key="b"), at=now)
    log.append(Fired(key="c"), at=now)
    log.compact()
    log.vacuum()

    assert fill(project, catalog, log, now=now + timedelta(days=9)).owed == 3
    assert keys(catalog) == ["old", "a", "b", "c"]


def test_an_events_table_that_is_damaged_stops_no_other_trigger(
    project: Project, catalog: Catalog, log: EventLog
) -> None:
    other = EventLog(trigger="costly", uri=log.uri.parent / "costly")
    fill(project, catalog, log)
    log.append(Fired(key="a"))
    other.append(Fired(key="x"))
    for file in log.uri.glob("*.parquet"):
        file.write_bytes(b"no Parquet")

    filled = fill(project, catalog, log)

    assert filled.failures is not None
    assert list(filled.failures) == [TRIGGER]
    assert filled.owed == 2  # `costly` tells two endpoints
    assert find_delivery_cursor(catalog, TRIGGER) == ("", -1)


def test_a_trigger_without_an_endpoint_owes_nothing_and_an_endpoint_that_is_added_hears_of_new_events(
    tmp_path: Path, catalog: Catalog, log: EventLog
) -> None:
    nobody = load_trades(tmp_path / "a", ("    clear: {quantity: {_lt: 9500}}\n    endpoint: ops\n", ""))
    fill(nobody, catalog, log)
    log.append(Fired(key="before"))
    assert fill(nobody, catalog, log).owed == 0

    somebody = load_trades(tmp_path / "b")
    log.append(Fired(key="after"))
    assert fill(somebody, catalog, log).owed == 1
    assert keys(catalog) == ["after"]
