"""The outbox on SQLite and Postgres: nothing is lost, and a sender without a claim writes nothing."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError

from strandline.catalog import (
    Catalog,
    DeliveryFilter,
    cancel_deliveries,
    claim_deliveries,
    count_deliveries,
    count_forgettable,
    disable_endpoint,
    enable_endpoint,
    enqueue_deliveries,
    find_delivery_cursor,
    find_next_due,
    forget_deliveries,
    open_catalog,
    read_attempts,
    read_deliveries,
    read_endpoint_states,
    record_outcomes,
    release_claims,
    replay_deliveries,
    replay_delivery,
)
from strandline.catalog.tables import deliveries, endpoints
from strandline.model.deliveries import Attempt, Claim, DeliveryStatus, NewDelivery, Outcome
from strandline.model.endpoints import Ordering
from strandline.model.errors import CallError, ConflictError

EVERYTHING = DeliveryFilter()
BOTH = ("ops", "desk")
REFUSED = Outcome(delivered=False, status_code=500, error="HTTP 500")
TAKEN = Outcome(delivered=True, status_code=204, seconds=0.25)


def owed(name: str, key: str = "k", endpoint: str = "ops") -> NewDelivery:
    return NewDelivery(
        event_id=name,
        event_type="MATCH",
        trigger="alert",
        endpoint=endpoint,
        key=key,
        source_timestamp=2**62,
        body=f'{{"event_id":"{name}","größe":"\\u0000"}}'.encode(),
    )


def enqueue(catalog: Catalog, *some: NewDelivery) -> int:
    before = find_delivery_cursor(catalog, "alert")
    after = ("table", before[1] + 1 if before else 0)
    return enqueue_deliveries(catalog, "alert", before, after, some)


def claim(
    catalog: Catalog, limit: int = 10, *, ordering: Ordering = Ordering.PER_KEY, endpoint: str = "ops"
) -> list[Claim]:
    return list(claim_deliveries(catalog, endpoint, "sender", 60, limit, ordering))


def fail(catalog: Catalog, one: Claim, outcome: Outcome = REFUSED, pause: float | None = 300) -> None:
    assert note(catalog, one, outcome, pause)


def note(catalog: Catalog, one: Claim, outcome: Outcome, pause: float | None) -> bool:
    (kept,) = record_outcomes(
        catalog, one.endpoint, [Attempt(claim=one, outcome=outcome, pause_seconds=pause)]
    )
    return kept


def ids(claims: list[Claim]) -> list[str]:
    return [one.event_id for one in claims]


def statuses(catalog: Catalog) -> dict[str, str]:
    return {record.event_id: str(record.status) for _, record in read_deliveries(catalog, EVERYTHING, 100)}


def pass_time(catalog: Catalog, by: timedelta) -> None:
    """As if everything recorded so far had happened earlier."""
    with catalog.writing() as connection:
        for table, key in ((deliveries, "number"), (endpoints, "endpoint")):
            names = [c.name for c in table.c if c.name.endswith(("_at", "_until", "_since"))]
            for row in connection.execute(select(table)).mappings().all():
                moved = {name: row[name] - by for name in names if row[name] is not None}
                connection.execute(update(table).where(table.c[key] == row[key]).values(**moved))


def test_what_is_owed_is_recorded_with_the_cursor_and_only_once(catalog: Catalog) -> None:
    assert find_delivery_cursor(catalog, "alert") is None
    assert enqueue(catalog, owed("a"), owed("b"), owed("a", endpoint="desk")) == 3
    assert find_delivery_cursor(catalog, "alert") == ("table", 0)

    assert enqueue(catalog, owed("b"), owed("c")) == 1
    assert [record.id for _, record in read_deliveries(catalog, EVERYTHING, 10)] == [
        "c-ops",
        "a-desk",
        "b-ops",
        "a-ops",
    ]


@pytest.mark.parametrize("before", [None, ("table", 4), ("other", 5)])
def test_a_cursor_that_somebody_else_moved_refuses_the_deliveries(
    catalog: Catalog, before: tuple[str, int] | None
) -> None:
    enqueue_deliveries(catalog, "alert", None, ("table", 5), [])

    with pytest.raises(ConflictError):
        enqueue_deliveries(catalog, "alert", before, ("table", 9), [owed("a")])

    assert statuses(catalog) == {}
    assert find_delivery_cursor(catalog, "alert") == ("table", 5)


def test_a_cursor_does_not_move_without_its_deliveries(catalog: Catalog) -> None:
    broken = replace(owed("b"), body=None)  # type: ignore[arg-type]

    with pytest.raises(IntegrityError):
        enqueue(catalog, owed("a"), broken)

    assert (find_delivery_cursor(catalog, "alert"), statuses(catalog)) == (None, {})
    assert enqueue(catalog, owed("a"), owed("b")) == 2


def test_a_claim_has_the_bytes_as_they_were_recorded(catalog: Catalog) -> None:
    enqueue(catalog, owed("a"))

    (taken,) = claim(catalog)

    assert (taken.id, taken.body, taken.attempts) == ("a-ops", owed("a").body, 0)
    assert statuses(catalog) == {"a": "sending"}
    assert claim(catalog) == []


def test_deliveries_of_one_key_go_one_at_a_time_and_in_order(catalog: Catalog) -> None:
    enqueue(catalog, owed("a1", "a"), owed("a2", "a"), owed("b1", "b"), owed("a1", "a", endpoint="desk"))

    first = claim(catalog)
    assert ids(first) == ["a1", "b1"]
    fail(catalog, first[0])
    assert ids(claim(catalog)) == []  # a2 waits for a1, which waits for its next attempt

    pass_time(catalog, timedelta(seconds=301))
    (again,) = [one for one in claim(catalog) if one.key == "a"]
    assert (again.event_id, again.attempts) == ("a1", 1)
    fail(catalog, again, pause=None)
    assert statuses(catalog)["a1"] == "dead"
    assert ids(claim(catalog)) == ["a2"]
    assert ids(claim(catalog, endpoint="desk")) == ["a1"]


@pytest.mark.parametrize(
    "key",
    ["a\x00b", "".join(chr(33 + n * 7919 % 12_000) for n in range(9_000))],
    ids=["with NUL", "of 9,000 characters"],
)
def test_a_key_of_any_text_is_owed_and_shown_as_it_is(catalog: Catalog, key: str) -> None:
    """Postgres refused both, so the trigger owed nothing any more."""
    assert enqueue(catalog, owed("a", key), owed("b", key), owed("c", key.replace("b", "d") + "x")) == 3

    assert [(one.event_id, one.key) for one in claim(catalog)] == [
        ("a", key),
        ("c", key.replace("b", "d") + "x"),
    ]
    assert {record.key for _, record in read_deliveries(catalog, EVERYTHING, 2)} == {
        key,
        key.replace("b", "d") + "x",
    }


def test_in_parallel_every_delivery_that_is_due_is_given_out(catalog: Catalog) -> None:
    enqueue(catalog, owed("a1", "a"), owed("a2", "a"), owed("a3", "a"))

    assert ids(claim(catalog, 2, ordering=Ordering.PARALLEL)) == ["a1", "a2"]
    assert ids(claim(catalog, 2, ordering=Ordering.PARALLEL)) == ["a3"]


def test_a_claim_that_ran_out_is_given_to_another_and_the_first_writes_nothing(catalog: Catalog) -> None:
    enqueue(catalog, owed("a"))
    (lost,) = claim(catalog)
    pass_time(catalog, timedelta(seconds=61))
    (taken,) = claim(catalog)

    assert not note(catalog, lost, TAKEN, None)
    assert release_claims(catalog, [lost]) == 0
    assert statuses(catalog) == {"a": "sending"}
    assert note(catalog, taken, TAKEN, None)
    assert not note(catalog, taken, REFUSED, 5)
    assert statuses(catalog) == {"a": "delivered"}
    assert len(read_attempts(catalog, "a-ops")) == 1


def test_what_was_not_tried_is_given_back_without_an_attempt(catalog: Catalog) -> None:
    enqueue(catalog, owed("a"))

    assert release_claims(catalog, claim(catalog)) == 1

    (again,) = claim(catalog)
    assert again.attempts == 0


def test_attempts_are_recorded_with_what_was_answered(catalog: Catalog) -> None:
    enqueue(catalog, owed("a"))
    fail(catalog, claim(catalog)[0])
    pass_time(catalog, timedelta(seconds=301))
    assert note(catalog, claim(catalog)[0], TAKEN, None)

    ((_, record),) = read_deliveries(catalog, EVERYTHING, 10)

    assert (record.status, record.attempts, record.status_code, record.next_at) == ("delivered", 2, 204, None)
    assert record.ended_at is not None
    assert record.source_timestamp == 2**62
    assert [(a["status_code"], a["error"]) for a in read_attempts(catalog, "a-ops")] == [
        (500, "HTTP 500"),
        (204, ""),
    ]


def test_while_ten_different_deliveries_have_failed_one_a_minute_is_tried(catalog: Catalog) -> None:
    enqueue(catalog, *(owed(f"d{i:02}", f"k{i}") for i in range(20)))
    for one in claim(catalog, 9):
        fail(catalog, one)
    pass_time(catalog, timedelta(seconds=301))
    fail(catalog, claim(catalog, 1)[0])  # the first of them once more: nine different ones

    assert not read_endpoint_states(catalog)["ops"].is_paused
    tenth = next(one for one in claim(catalog, 20) if one.event_id == "d19")
    fail(catalog, tenth)
    assert read_endpoint_states(catalog)["ops"].is_paused
    pass_time(catalog, timedelta(seconds=61))  # what was claimed and not tried is due again
    (probe,) = claim(catalog, 20)
    assert claim(catalog, 20) == []
    fail(catalog, probe)
    assert claim(catalog, 20) == []
    pass_time(catalog, timedelta(seconds=61))
    (probe,) = claim(catalog, 20)
    assert note(catalog, probe, TAKEN, None)

    assert not read_endpoint_states(catalog)["ops"].is_paused
    assert len(claim(catalog, 20)) > 5


def test_one_delivery_that_fails_alone_holds_up_its_key_alone(catalog: Catalog) -> None:
    enqueue(catalog, owed("a1", "a"))
    for _ in range(15):
        fail(catalog, claim(catalog)[0])
        pass_time(catalog, timedelta(seconds=301))
    enqueue(catalog, owed("a2", "a"), owed("b1", "b"))

    assert not read_endpoint_states(catalog)["ops"].is_paused
    assert ids(claim(catalog)) == ["a1", "b1"]


def test_410_disables_an_endpoint_and_what_comes_then_is_held(catalog: Catalog) -> None:
    enqueue(catalog, owed("a", "a"), owed("b", "b"), owed("c", "c"), owed("a", "a", endpoint="desk"))
    first, second = claim(catalog, 2)
    fail(catalog, first, Outcome(delivered=False, status_code=410, error="HTTP 410"))
    enqueue(catalog, owed("d", "d"))

    assert claim(catalog) == []
    assert note(catalog, second, REFUSED, 5)  # it was under way
    counts = count_deliveries(catalog, DeliveryFilter(endpoint="ops"))
    assert counts == {DeliveryStatus.HELD: 4}
    assert "410" in read_endpoint_states(catalog)["ops"].disabled
    assert ids(claim(catalog, endpoint="desk")) == ["a"]

    assert enable_endpoint(catalog, "ops") == 4
    assert ids(claim(catalog)) == ["a", "b", "c", "d"]


def test_what_is_given_back_to_a_disabled_endpoint_is_held(catalog: Catalog) -> None:
    enqueue(catalog, owed("a", "a"), owed("b", "b"))
    first, second = claim(catalog)
    fail(catalog, first, Outcome(delivered=False, status_code=410, error="HTTP 410"))

    assert release_claims(catalog, [second]) == 1

    assert statuses(catalog) == {"a": "held", "b": "held"}
    assert find_next_due(catalog, ["ops"]) is None
    assert enable_endpoint(catalog, "ops") == 2


def test_what_a_replay_owed_while_its_endpoint_was_disabled_is_held(catalog: Catalog) -> None:
    """The replay did not see that somebody else disabled it."""
    enqueue(catalog, owed("a"))
    disable_endpoint(catalog, "ops", "maintenance")
    with catalog.writing() as connection:
        connection.execute(update(deliveries).values(status="pending"))

    assert claim(catalog) == []
    assert statuses(catalog) == {"a": "held"}


def test_what_a_dead_sender_had_is_held_once_its_endpoint_is_disabled(catalog: Catalog) -> None:
    enqueue(catalog, owed("a"))
    (lost,) = claim(catalog)
    disable_endpoint(catalog, "ops", "maintenance")
    pass_time(catalog, timedelta(seconds=61))

    assert claim(catalog) == []
    assert statuses(catalog) == {"a": "held"}
    assert not note(catalog, lost, TAKEN, None)
    enable_endpoint(catalog, "ops")
    assert ids(claim(catalog)) == ["a"]


def test_five_days_of_failures_only_disable_an_endpoint(catalog: Catalog) -> None:
    enqueue(catalog, owed("a", "a"), owed("b", "b"))
    fail(catalog, claim(catalog, 1)[0])
    pass_time(catalog, timedelta(days=4, hours=23))
    fail(catalog, claim(catalog, 1)[0])
    assert not read_endpoint_states(catalog)["ops"].disabled
    pass_time(catalog, timedelta(hours=2))
    fail(catalog, claim(catalog, 1)[0])

    assert read_endpoint_states(catalog)["ops"].disabled == "Everything has failed for 5 days."
    assert statuses(catalog) == {"a": "held", "b": "held"}


def test_one_success_starts_the_five_days_anew(catalog: Catalog) -> None:
    enqueue(catalog, owed("a", "a"), owed("b", "b"))
    fail(catalog, claim(catalog, 1)[0])
    pass_time(catalog, timedelta(days=4))
    one, other = claim(catalog)
    assert note(catalog, one, TAKEN, None)
    fail(catalog, other)
    pass_time(catalog, timedelta(days=2))
    fail(catalog, claim(catalog)[0])

    assert not read_endpoint_states(catalog)["ops"].disabled


def test_a_delivery_without_hope_says_nothing_about_its_endpoint(catalog: Catalog) -> None:
    enqueue(catalog, owed("a"))
    fail(catalog, claim(catalog)[0], Outcome(delivered=False, error="too large", hopeless=True), None)

    assert statuses(catalog) == {"a": "dead"}
    assert read_endpoint_states(catalog)["ops"].failing == ()


def test_a_person_disables_and_enables_an_endpoint(catalog: Catalog) -> None:
    enqueue(catalog, owed("a"))
    disable_endpoint(catalog, "ops", "maintenance")
    assert (claim(catalog), statuses(catalog)) == ([], {"a": "held"})

    enable_endpoint(catalog, "ops")

    assert ids(claim(catalog)) == ["a"]


def test_what_waits_for_an_endpoint_that_is_gone_is_cancelled(catalog: Catalog) -> None:
    enqueue(catalog, owed("a", "a"), owed("b", "b"), owed("c", "c", endpoint="desk"))
    (under_way,) = claim(catalog, 1)

    assert cancel_deliveries(catalog, ["desk"]) == 2

    assert not note(catalog, under_way, TAKEN, None)
    assert statuses(catalog) == {"a": "cancelled", "b": "cancelled", "c": "pending"}
    assert cancel_deliveries(catalog, []) == 1


def test_a_replay_has_the_same_id_and_bytes_and_a_whole_schedule(catalog: Catalog) -> None:
    enqueue(catalog, owed("a"))
    (first,) = claim(catalog)
    assert note(catalog, first, TAKEN, None)

    replay_delivery(catalog, "a-ops", BOTH)

    (again,) = claim(catalog)
    assert (again.id, again.body, again.attempts) == (first.id, first.body, 0)
    assert not note(catalog, first, TAKEN, None)


def test_a_replay_of_a_range_takes_what_ended_in_it(catalog: Catalog) -> None:
    enqueue(catalog, owed("old", "1"), owed("dead", "2"), owed("waits", "3"), owed("x", "4", endpoint="desk"))
    old, dead, _ = claim(catalog)
    assert note(catalog, old, TAKEN, None)
    fail(catalog, dead, pause=None)
    now = datetime.now(UTC)
    hour = timedelta(hours=1)

    assert replay_deliveries(catalog, DeliveryFilter(since=now + hour), BOTH) == 0
    assert replay_deliveries(catalog, DeliveryFilter(until=now - hour), BOTH) == 0
    assert replay_deliveries(catalog, DeliveryFilter(trigger="other"), BOTH) == 0
    assert replay_deliveries(catalog, DeliveryFilter(status=DeliveryStatus.DEAD, since=now - hour), BOTH) == 1
    assert (
        replay_deliveries(catalog, DeliveryFilter(endpoint="ops", since=now - hour, until=now + hour), BOTH)
        == 1
    )
    assert statuses(catalog) == {"old": "pending", "dead": "pending", "waits": "sending", "x": "pending"}


def test_a_replay_of_what_is_unknown_or_has_not_ended_is_refused_until_it_has(catalog: Catalog) -> None:
    enqueue(catalog, owed("a"))

    with pytest.raises(CallError) as unknown:
        replay_delivery(catalog, "b-ops", BOTH)
    with pytest.raises(CallError) as waiting:
        replay_delivery(catalog, "a-ops", BOTH)

    assert unknown.value.slug == "unknown-delivery"
    assert [record.id for _, record in read_deliveries(catalog, EVERYTHING, 10)] == ["a-ops"]
    assert waiting.value.slug == "delivery-not-ended"
    assert note(catalog, claim(catalog)[0], TAKEN, None)
    with pytest.raises(CallError) as gone:
        replay_delivery(catalog, "a-ops", ["desk"])
    assert (gone.value.slug, replay_deliveries(catalog, EVERYTHING, ["desk"])) == ("endpoint-gone", 0)
    replay_delivery(catalog, "a-ops", BOTH)


def test_what_is_replayed_to_a_disabled_endpoint_is_held(catalog: Catalog) -> None:
    enqueue(catalog, owed("a"))
    assert note(catalog, claim(catalog)[0], TAKEN, None)
    disable_endpoint(catalog, "ops", "a person did it")

    replay_delivery(catalog, "a-ops", BOTH)

    assert statuses(catalog) == {"a": "held"}
    assert enable_endpoint(catalog, "ops") == 1
    assert ids(claim(catalog)) == ["a"]


def test_what_ended_is_forgotten_after_its_time_and_what_waits_is_not(catalog: Catalog) -> None:
    enqueue(catalog, owed("a", "1"), owed("b", "2"))
    assert note(catalog, claim(catalog, 1)[0], TAKEN, None)
    assert forget_deliveries(catalog, timedelta(days=30)) == 0
    pass_time(catalog, timedelta(days=31))

    assert count_forgettable(catalog, timedelta(days=30)) == 1
    assert forget_deliveries(catalog, timedelta(days=30)) == 1
    assert count_forgettable(catalog, timedelta(days=30)) == 0
    assert statuses(catalog) == {"b": "pending"}


def test_deliveries_are_listed_newest_first_in_parts(catalog: Catalog) -> None:
    enqueue(catalog, *(owed(f"d{i}", str(i)) for i in range(5)))

    first = read_deliveries(catalog, EVERYTHING, 2)
    second = read_deliveries(catalog, EVERYTHING, 2, after=first[-1][0])

    assert [record.event_id for _, record in (*first, *second)] == ["d4", "d3", "d2", "d1"]


def test_the_next_delivery_that_is_due_is_known(catalog: Catalog) -> None:
    assert find_next_due(catalog, ["ops"]) is None
    enqueue(catalog, owed("a"))
    fail(catalog, claim(catalog)[0], pause=3600)

    due = find_next_due(catalog, ["ops", "desk"])

    assert due is not None
    assert timedelta(minutes=59) < due - datetime.now(UTC) < timedelta(minutes=61)


def test_two_senders_never_have_one_delivery(shared_address: str) -> None:
    first = open_catalog(shared_address)
    enqueue(first, *(owed(f"d{i}", str(i % 7)) for i in range(60)))
    catalogs = [open_catalog(shared_address) for _ in range(4)]

    def work(catalog: Catalog) -> list[str]:
        done: list[str] = []
        while claims := claim(catalog, 5):
            for one in claims:
                assert note(catalog, one, TAKEN, None)
                done.append(one.event_id)
        return done

    with ThreadPoolExecutor(4) as pool:
        sent = [name for names in pool.map(work, catalogs) for name in names]

    for catalog in catalogs:
        catalog.close()
    left = [name for name, status in statuses(first).items() if status != "delivered"]
    for name in left:  # a sender may stop while the last of a key are with another
        assert name not in sent
    assert len(sent) == len(set(sent)) >= 50
    first.close()
