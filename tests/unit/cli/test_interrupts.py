"""Ctrl-C and SIGTERM, sent to real processes: a call ends in time with a message and an exit code."""

import signal
import subprocess
import sys
import time

import pytest

from strandline.cli.interrupts import GRACE, SENTENCE

PROCESS = """
import sys, threading, time
from strandline.cli import entry, main

def call(words):
    print("ready", flush=True)
{body}

entry._call = call
sys.argv = ["strandline", "run"]
sys.exit(main())
"""
ASLEEP = "    time.sleep(60)"
WITH_A_THREAD = "    threading.Thread(target=time.sleep, args=(60,)).start()\n    time.sleep(60)"
DEAF = """
    while True:
        try:
            time.sleep(60)
        except KeyboardInterrupt:
            pass
"""


def stop(body: str, *signals: signal.Signals) -> tuple[int, float, list[str]]:
    """Start a call and send it signals a tenth of a second apart.

    Returns its exit code, the seconds until it ended, and its output.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", PROCESS.format(body=body)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.3)  # it has not reached its sleep yet
    started = time.monotonic()
    for number in signals:
        process.send_signal(number)
        time.sleep(0.1)
    _, err = process.communicate(timeout=30)
    return process.returncode, time.monotonic() - started, err.splitlines()


@pytest.mark.parametrize("body", [ASLEEP, WITH_A_THREAD], ids=["asleep", "with a thread that goes on"])
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
def test_a_signal_ends_a_call_at_once_where_nothing_has_to_be_stopped(
    body: str, number: signal.Signals, code: int
) -> None:
    ended, seconds, lines = stop(body, number)

    assert (ended, lines) == (code, [SENTENCE])
    assert seconds < 3


def test_a_call_that_does_not_listen_is_ended_in_time_and_says_that_it_is_being_stopped() -> None:
    ended, seconds, lines = stop(DEAF, signal.SIGINT)

    assert (ended, lines) == (130, ["Stopping ... once more ends it at once.", SENTENCE])
    assert GRACE - 0.5 < seconds < 5


def test_a_second_signal_ends_a_call_that_does_not_listen_at_once() -> None:
    ended, seconds, lines = stop(DEAF, signal.SIGINT, signal.SIGINT)

    assert (ended, lines) == (130, [SENTENCE])
    assert seconds < 3
