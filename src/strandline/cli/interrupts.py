"""Ctrl-C and SIGTERM: a call ends within seconds wherever it is, and at once on the second signal.

The first signal raises KeyboardInterrupt in the main thread, which stops Spark's jobs and gives leases back.
Code that cannot be interrupted (Spark, Arrow, a Python job in another thread) may prevent that, so a thread
of our own ends the process after a moment. That is safe anywhere: a commit is complete or does not exist, and
the next run fences and settles what an unclean end left (docs: commit protocol).
"""

import logging
import os
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from types import FrameType
from typing import NoReturn

GRACE = 4.0
"""Seconds from the first signal to the end of the process."""
SERVER_GRACE = 28.0
"""The same for a server, which interrupts its work and closes its connections first."""
PATIENCE = 0.5
"""Seconds after which a waiting person is told that it is being stopped."""
SENTENCE = "Interrupted. What was committed is kept and nothing is lost; the next run continues from there."

_grace = GRACE
_sentence = SENTENCE

stopping = threading.Event()
"""Set from the first signal on. What Spark then reports about being stopped is not worth showing."""


class Terminated(KeyboardInterrupt):
    """SIGTERM. Whatever handles Ctrl-C handles it too."""


def exit_code(number: int) -> int:
    """The shell's exit code for a process that a signal ended: 130 for Ctrl-C, 143 for SIGTERM."""
    return 128 + number


def install() -> None:
    """Let a signal end this process from here on.

    Only for the main thread of a process that is the command line and nothing else.
    """
    reading, writing = socket.socketpair()
    writing.setblocking(False)
    # Python writes here as soon as a signal comes, also while the main thread is in code that does not
    # return.
    signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGTERM, _terminate)
    # py4j logs whatever interrupts a call to the JVM, with its trace.
    logging.getLogger().addFilter(lambda record: not (stopping.is_set() or _is_interrupt(record)))
    # While Spark starts, stderr is a pipe from which its lines are read.
    stderr = os.dup(sys.stderr.fileno())
    threading.Thread(target=_watch, args=(reading, writing, stderr), daemon=True, name="interrupts").start()


def allow(seconds: float) -> None:
    """Let this process take longer than others to end."""
    global _grace  # signals are of the process, and so is this
    _grace = seconds


def say_at_end(sentence: str) -> None:
    """What to say when this call is interrupted, if it is not the usual."""
    global _sentence
    _sentence = sentence


def sentence() -> str:
    return _sentence


def leave(code: int) -> NoReturn:
    """End now, without waiting for threads or Spark. Its JVM ends by itself when this process is gone."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise Terminated


def _watch(reading: socket.socket, writing: socket.socket, stderr: int) -> None:
    """Wait for signals. `writing` is kept open for as long as signals may come."""
    number = _next_signal(reading, None)
    assert number is not None
    started = time.monotonic()
    stopping.set()
    again = _next_signal(reading, PATIENCE)
    if again is None:
        _say(stderr, "Stopping ... once more ends it at once.")
        again = _next_signal(reading, started + _grace - time.monotonic())
    _say(stderr, _sentence)
    os._exit(exit_code(number))


def _is_interrupt(record: logging.LogRecord) -> bool:
    return record.exc_info is not None and isinstance(record.exc_info[1], KeyboardInterrupt)


def _next_signal(reading: socket.socket, seconds: float | None) -> int | None:
    """The next SIGINT or SIGTERM, or None when none comes in time."""
    until = None if seconds is None else time.monotonic() + seconds
    while True:
        reading.settimeout(None if until is None else max(0.001, until - time.monotonic()))
        try:
            number = reading.recv(1)[0]
        except TimeoutError:
            return None
        if number in (signal.SIGINT, signal.SIGTERM):
            return number


def _say(stderr: int, text: str) -> None:
    with suppress(OSError):
        os.write(stderr, f"{text}\n".encode())
