"""The messages that a connection has not sent yet: how many they may be, and how large."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from strandline.serve.subscriptions.outbox import MOST_BYTES, MOST_MESSAGES, Outbox, Ticket

TICKET = Ticket()
LETTERS = {"one byte": "x", "two bytes": "é", "four bytes": "😀"}


def make() -> tuple[Outbox, list[str]]:
    closed: list[str] = []
    return Outbox(lambda: closed.append("too far behind")), closed


def play(story: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(10):
            await story()

    asyncio.run(bounded())


def test_a_reader_may_be_1000_messages_behind_and_not_one_more() -> None:
    outbox, closed = make()

    assert all(outbox.push(TICKET, "x") for _ in range(MOST_MESSAGES))
    assert closed == []
    assert not outbox.push(TICKET, "x")
    assert not outbox.push(TICKET, "x")
    assert closed == ["too far behind"]


@pytest.mark.parametrize("letter", LETTERS.values(), ids=LETTERS)
def test_a_reader_may_be_1_mib_behind_and_not_one_byte_more(letter: str) -> None:
    outbox, closed = make()
    text = letter * (MOST_BYTES // 8 // len(letter.encode()))

    assert all(outbox.push(TICKET, text) for _ in range(8))
    assert closed == []
    assert not outbox.push(TICKET, "x")
    assert closed == ["too far behind"]


def test_what_was_sent_counts_no_more() -> None:
    async def story() -> None:
        outbox, closed = make()
        sent: list[str] = []

        async def send(text: str) -> None:
            sent.append(text)

        sending = asyncio.create_task(outbox.send_all(send))
        text = "é" * (MOST_BYTES // 4)
        for _ in range(20):
            assert outbox.push(TICKET, text)
            await asyncio.sleep(0)
        sending.cancel()

        assert sent == [text] * 20
        assert closed == []

    play(story)


def test_who_reads_gets_messages_of_any_size_that_can_wait() -> None:
    """Rows of a snapshot, changes after a cursor, and answers: they are sent when there is room."""

    async def story() -> None:
        outbox, closed = make()
        sent: list[str] = []

        async def send(text: str) -> None:
            await asyncio.sleep(0)
            sent.append(text)

        sending = asyncio.create_task(outbox.send_all(send))
        texts = [str(n) * size for n, size in enumerate((10, MOST_BYTES, MOST_BYTES // 3, 2 * MOST_BYTES, 5))]
        await asyncio.gather(*(outbox.put(TICKET, text) for text in texts))
        while len(sent) < len(texts):
            await asyncio.sleep(0)
        sending.cancel()

        assert sorted(sent) == sorted(texts)
        assert closed == []

    play(story)
