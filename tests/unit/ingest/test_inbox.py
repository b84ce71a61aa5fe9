"""The inbox of an HTTP source: a post is kept whole or not at all, and once for each key."""

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.ingest.inbox import (
    Head,
    KeyTakenError,
    begin,
    clean,
    count_forgettable,
    keep,
    list_inbox,
    locate,
    make_key,
    open_post,
    put_away,
    remembers_all,
)
from strandline.model.files import Content

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def head(key: str, body: bytes, content: Content = Content.JSON, at: datetime = NOON) -> Head:
    return Head(
        key=key,
        chosen=True,
        content=content,
        messages=1,
        first_place=1,
        digest=hashlib.sha256(body).hexdigest(),
        posted_ns=int(at.timestamp()) * 10**9,
    )


def post(inbox: Path, key: str, body: bytes, at: datetime = NOON) -> bool:
    """Whether it is a duplicate."""
    return keep(inbox, head(key, body, at=at), body, at).duplicate


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    return tmp_path / "lake" / "_inbox" / "pushed"


def bodies(inbox: Path) -> list[bytes]:
    return sorted(open_post(locate(inbox, seen.path))[1] for seen in list_inbox(inbox))


def test_a_post_is_kept_byte_by_byte(inbox: Path) -> None:
    body = b'{"n": 1.000000000000000000001,\r\n "n": 2}'

    assert not post(inbox, "k", body)

    (seen,) = list_inbox(inbox)
    assert seen.path.startswith("_inbox/pushed/")
    assert open_post(locate(inbox, seen.path)) == (head("k", body), body)


def test_the_same_post_again_is_a_duplicate_before_and_after_it_was_received(inbox: Path) -> None:
    post(inbox, "k", b"1")

    assert post(inbox, "k", b"1")

    put_away(inbox, [seen.path for seen in list_inbox(inbox)], NOON)

    assert list_inbox(inbox) == ()
    assert post(inbox, "k", b"1", NOON + timedelta(days=7))
    assert list_inbox(inbox) == ()


@pytest.mark.parametrize("received", [False, True])
def test_another_body_with_the_same_key_is_refused_and_changes_nothing(inbox: Path, received: bool) -> None:
    post(inbox, "k", b"1")
    if received:
        put_away(inbox, [seen.path for seen in list_inbox(inbox)], NOON)
    before = bodies(inbox)

    with pytest.raises(KeyTakenError) as refused:
        post(inbox, "k", b"2")

    assert refused.value.slug == "idempotency-key-taken"
    assert bodies(inbox) == before
    assert not post(inbox, "another", b"2")  # what the remedy says
    assert post(inbox, "k", b"1")


def test_lines_and_an_array_of_the_same_bytes_are_different_posts(inbox: Path) -> None:
    post(inbox, "k", b"[1]")

    with pytest.raises(KeyTakenError):
        keep(inbox, head("k", b"[1]", Content.LINES), b"[1]", NOON)


def test_a_key_is_forgotten_a_week_after_its_post_was_received_and_not_before(inbox: Path) -> None:
    begin(inbox)
    post(inbox, "k", b"1")
    received_at = NOON + timedelta(days=30)  # the server was down: what waits is remembered
    assert post(inbox, "k", b"1", received_at)
    put_away(inbox, [seen.path for seen in list_inbox(inbox)], received_at)

    week = received_at + timedelta(days=7)
    assert (count_forgettable(inbox, week), clean(inbox, week), remembers_all(inbox)) == (0, 0, True)
    assert post(inbox, "k", b"1", week)
    later = received_at + timedelta(days=8)
    assert count_forgettable(inbox, later) == 1
    assert clean(inbox, later) == 1
    assert not remembers_all(inbox)
    assert not post(inbox, "k", b"2", later)


def test_a_waiting_post_is_never_cleaned_away(inbox: Path) -> None:
    post(inbox, "k", b"1")

    clean(inbox, NOON + timedelta(days=1000))

    assert bodies(inbox) == [b"1"]


def test_two_posts_with_one_key_at_once_are_received_once(inbox: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        duplicates = list(pool.map(lambda _: post(inbox, "k", b"1"), range(40)))

    assert duplicates.count(False) == 1
    assert bodies(inbox) == [b"1"]


def test_a_post_that_is_put_away_meanwhile_is_still_received_once(inbox: Path) -> None:
    """Many posters repeat their posts while received ones are moved."""

    def play(n: int) -> int:
        kept = 0
        for key in range(30):
            kept += not post(inbox, f"k{key}", b"1")
            if n == 0:
                put_away(inbox, [seen.path for seen in list_inbox(inbox)], NOON)
        return kept

    with ThreadPoolExecutor(4) as pool:
        kept = sum(pool.map(play, range(4)))

    assert kept == 30


@given(st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=200))
def test_any_visible_key_names_a_file_inside_of_the_inbox(key: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        inbox = Path(folder) / "_inbox" / "pushed"

        post(inbox, key, b"1")

        (seen,) = list_inbox(inbox)
        file = locate(inbox, seen.path)
        assert file.parent == inbox
        assert open_post(file)[0].key == key


def test_keys_that_differ_in_case_alone_are_two(inbox: Path) -> None:
    post(inbox, "a", b"1")

    assert not post(inbox, "A", b"2")


def test_made_keys_never_repeat_and_sort_by_time() -> None:
    keys = [make_key(NOON + timedelta(microseconds=n // 10)) for n in range(1000)]

    assert len(set(keys)) == 1000
    assert sorted(k.split("-")[0] for k in keys) == [k.split("-")[0] for k in keys]


WRITER = """
import sys
from pathlib import Path
from tests.unit.ingest.test_inbox import post
inbox = Path(sys.argv[1])
n = 0
while True:
    n += 1
    body = (str(n) * 200_000).encode()
    post(inbox, f"k{n}", body)
    print(n, flush=True)
"""


def test_a_process_that_is_killed_while_it_writes_leaves_whole_posts_alone(inbox: Path) -> None:
    """Every answered post is there, and no half of one. The next process goes on with the same keys."""
    answered = 0
    for _ in range(3):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(inbox)], stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]
        )
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(0.15)
        writer.kill()
        lines = writer.stdout.read().split()
        writer.wait()
        answered = max([answered, 1, *map(int, lines[:-1])])

        found = [open_post(locate(inbox, seen.path)) for seen in list_inbox(inbox)]

        assert {f"k{n}" for n in range(1, answered + 1)} <= {head.key for head, _ in found}
        assert all(body == (head.key[1:] * 200_000).encode() for head, body in found)


def test_what_a_dead_process_was_writing_is_removed_after_a_day(inbox: Path) -> None:
    post(inbox, "k", b"1")
    half = inbox / "writing" / "half.post"
    half.write_bytes(b"{")
    os.utime(half, (NOON.timestamp(), NOON.timestamp()))

    clean(inbox, NOON + timedelta(hours=23))
    assert half.exists()
    clean(inbox, NOON + timedelta(hours=25))

    assert not half.exists()
    assert bodies(inbox) == [b"1"]


@pytest.mark.parametrize("damage", [b"", b"{}\n1", b'{"key": "k"}\n1', b"\xff\n"])
def test_a_damaged_file_is_not_taken_for_a_post(inbox: Path, damage: bytes) -> None:
    post(inbox, "k", b"1")
    (seen,) = list_inbox(inbox)
    locate(inbox, seen.path).write_bytes(damage)

    with pytest.raises(ValueError, match="first line"):
        open_post(locate(inbox, seen.path))


def test_a_changed_body_is_not_taken_for_a_post(inbox: Path) -> None:
    post(inbox, "k", b"1")
    (seen,) = list_inbox(inbox)
    with locate(inbox, seen.path).open("ab") as file:
        file.write(b"2")

    with pytest.raises(ValueError, match="not what was posted"):
        open_post(locate(inbox, seen.path))


def test_after_its_table_is_gone_what_is_still_kept_is_listed_again(inbox: Path) -> None:
    post(inbox, "old", b"1")
    put_away(inbox, [seen.path for seen in list_inbox(inbox)], NOON)
    post(inbox, "new", b"2")

    assert len(list_inbox(inbox)) == 1
    again = list_inbox(inbox, again=True)
    assert [open_post(locate(inbox, seen.path))[0].key for seen in again if "received" in seen.path] == [
        "old"
    ]
    assert len(again) == 2

    put_away(inbox, [seen.path for seen in again], NOON + timedelta(days=6))
    assert post(inbox, "old", b"1", NOON + timedelta(days=13))  # remembered from when it was received again
