"""What the JVM writes: nothing of it goes to stdout, which is for data, and no greetings go to stderr."""

import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from .interrupts import stopping

_NOISE = re.compile(
    rb"WARNING: (Using incubator modules|package sun\.|A restricted|A terminally|sun\.misc)"
    rb"|WARNING: (Please consider|Use --enable|Restricted)"
    rb"|^Using Spark's default log4j profile|^Setting (Spark|default) log level to"
    rb"|^To adjust logging level use"
    rb"|Unable to load native-hadoop library|Your hostname, .* resolves to a loopback"
    rb"|Set SPARK_LOCAL_IP if you need"
    rb"|^SLF4J:|^Picked up JAVA_TOOL_OPTIONS|^\s*$"
)


class SparkOutput:
    """While it is open, processes that are started get a pipe instead of stdout and stderr.

    The lines of the pipe go to stderr unless they are noise. Only the JVM is started while it is open. The
    JVM keeps the pipe, and the thread that reads it lives as long as this process.
    """

    def __init__(self) -> None:
        self._kept: tuple[int, int] | None = None

    def open(self) -> None:
        if self._kept is not None:
            return
        sys.stdout.flush()
        sys.stderr.flush()
        out, err = os.dup(1), os.dup(2)
        reading, writing = os.pipe()
        os.dup2(writing, 1)
        os.dup2(writing, 2)
        os.close(writing)
        threading.Thread(
            target=_forward, args=(reading, os.dup(err)), daemon=True, name="spark-output"
        ).start()
        self._kept = (out, err)

    def close(self) -> None:
        if self._kept is None:
            return
        sys.stdout.flush()
        sys.stderr.flush()
        for number, original in zip((1, 2), self._kept, strict=True):
            os.dup2(original, number)
            os.close(original)
        self._kept = None


@contextmanager
def quiet_spark() -> Iterator[SparkOutput]:
    """For a whole call that starts Spark and prints nothing meanwhile."""
    output = SparkOutput()
    output.open()
    try:
        yield output
    finally:
        output.close()


def _forward(reading: int, stderr: int) -> None:
    with os.fdopen(reading, "rb") as lines, os.fdopen(stderr, "wb", buffering=0) as output:
        for line in lines:
            if not _NOISE.search(line) and not stopping.is_set():
                output.write(line)
