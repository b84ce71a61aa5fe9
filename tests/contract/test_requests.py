"""Requests on SQLite and Postgres: each is executed by one server at a time, and ends once."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import select, update

from strandline.catalog import (
    Catalog,
    add_request,
    claim_request,
    find_request,
    finish_request,
    forget_requests,
    give_back_requests,
    list_requests,
    open_catalog,
    renew_claims,
)
from strandline.catalog.tables import audit_log, requests
from strandline.model.errors import ConflictError
from strandline.model.requests import RequestStatus

HERE, THERE = "here:1", "there:2"


def add(catalog: Catalog, *names: str) -> None:
    for name in names:
        add_request(catalog, name, "run", {"select": "größe \x00"}, "ci")


def claimed(catalog: Catalog, server: str = HERE, seconds: float = 60) -> str | None:
    claim = claim_request(catalog, server, seconds)
    return claim.record.request if claim else None


def run_out(catalog: Catalog) -> None:
    """As if the claims had been made long ago."""
    with catalog.writing() as connection:
        for row in connection.execute(select(requests.c.number, requests.c.claimed_until)).all():
            if row.claimed_until is not None:
                past = row.claimed_until - timedelta(hours=1)
                change = update(requests).where(requests.c.number == row.number)
                connection.execute(change.values(claimed_until=past))


def test_a_request_is_pending_then_running_then_done(catalog: Catalog) -> None:
    added = add_request(catalog, "r1", "run", {"$": "RunRequest", "reason": "größe \x00"}, "ci")
    assert (added.status, added.started_at, added.ended_at) == (RequestStatus.PENDING, None, None)
    assert added.arguments == {"$": "RunRequest", "reason": "größe \x00"}
    assert find_request(catalog, "r1") == added

    claim = claim_request(catalog, HERE, 60)
    assert claim is not None
    assert claim.record.status is RequestStatus.RUNNING
    assert claim.record.started_at is not None
    assert claim.record.started_at >= added.created_at

    ended = finish_request(catalog, claim, result={"rows": [1]})
    assert ended is not None
    assert (ended.status, ended.result, ended.error) == (RequestStatus.DONE, {"rows": [1]}, None)
    assert ended.ended_at is not None
    assert find_request(catalog, "r1") == ended
    assert claimed(catalog) is None


def test_a_request_that_failed_says_why(catalog: Catalog) -> None:
    add(catalog, "r1")
    claim = claim_request(catalog, HERE, 60)
    assert claim is not None

    error = {"slug": "call", "message": "wrong", "remedy": "", "exit_code": 2}
    ended = finish_request(catalog, claim, error=error)

    assert ended is not None
    assert (ended.status, ended.error, ended.result) == (RequestStatus.FAILED, error, None)
    assert ended.status.is_over


def test_the_oldest_is_claimed_first_and_nothing_twice(catalog: Catalog) -> None:
    add(catalog, "r3", "r1", "r2")

    assert [claimed(catalog, server) for server in (HERE, THERE, HERE, THERE)] == ["r3", "r1", "r2", None]


def test_a_name_is_used_once(catalog: Catalog) -> None:
    add(catalog, "r1")

    with pytest.raises(ConflictError):
        add(catalog, "r1")

    assert len(list_requests(catalog, 10)) == 1


def test_who_asked_is_in_the_audit_log(catalog: Catalog) -> None:
    add(catalog, "r1")

    with catalog.reading() as connection:
        (row,) = connection.execute(select(audit_log)).all()
    assert (row.verb, row.detail) == ("run", {"request": "r1", "actor": "ci"})


def test_a_claim_that_ran_out_is_given_to_another_and_its_old_holder_ends_nothing(catalog: Catalog) -> None:
    add(catalog, "r1")
    first = claim_request(catalog, HERE, 60)
    run_out(catalog)

    second = claim_request(catalog, THERE, 60)

    assert first is not None
    assert second is not None
    assert (first.token, second.token) == (1, 2)
    assert finish_request(catalog, first, result="old") is None
    ended = finish_request(catalog, second, result="new")
    assert ended is not None
    assert ended.result == "new"
    assert finish_request(catalog, second, result="again") is None


def test_a_server_keeps_what_it_renews(catalog: Catalog) -> None:
    add(catalog, "r1")
    assert claimed(catalog) == "r1"
    run_out(catalog)

    renew_claims(catalog, THERE, 60)
    renew_claims(catalog, HERE, 60)

    assert claimed(catalog, THERE) is None


def test_what_a_dead_server_was_doing_waits_again_in_its_old_place(catalog: Catalog) -> None:
    add(catalog, "r1", "r2", "r3")
    assert [claimed(catalog), claimed(catalog, THERE)] == ["r1", "r2"]

    assert give_back_requests(catalog, HERE) == 1
    assert claimed(catalog, "new") == "r1"
    assert give_back_requests(catalog) == 2
    assert [claimed(catalog), claimed(catalog), claimed(catalog)] == ["r1", "r2", "r3"]


def test_requests_are_listed_newest_first_in_pages(catalog: Catalog) -> None:
    names = [f"r{number}" for number in range(5)]
    add(catalog, *names)

    first = list_requests(catalog, 2)
    second = list_requests(catalog, 2, first[-1].request)
    last = list_requests(catalog, 2, second[-1].request)

    assert [r.request for r in (*first, *second, *last)] == names[::-1]
    assert list_requests(catalog, 2, last[-1].request) == ()
    assert list_requests(catalog, 2, "nobody") == ()
    assert find_request(catalog, "nobody") is None


def test_only_what_ended_long_ago_is_forgotten(catalog: Catalog) -> None:
    add(catalog, "r1", "r2")
    claim = claim_request(catalog, HERE, 60)
    assert claim is not None
    finish_request(catalog, claim)

    assert forget_requests(catalog, timedelta(days=1)) == 0
    assert forget_requests(catalog, timedelta(days=-1)) == 1
    assert [r.request for r in list_requests(catalog, 10)] == ["r2"]


def test_servers_that_claim_at_once_share_the_requests(shared_address: str) -> None:
    catalog = open_catalog(shared_address)
    names = [f"r{number:02}" for number in range(24)]
    add(catalog, *names)

    def take_all(server: str) -> list[str]:
        own = open_catalog(shared_address)
        taken = list(iter(lambda: claimed(own, server), None))
        own.close()
        return [name for name in taken if name]

    with ThreadPoolExecutor(4) as pool:
        shares = list(pool.map(take_all, ["a", "b", "c", "d"]))
    catalog.close()

    assert sorted(name for share in shares for name in share) == names
