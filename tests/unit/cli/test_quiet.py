"""The output of a JVM passes through a pipe: greetings are dropped, the rest goes to stderr.

The pipe leaves nothing open.
"""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from strandline.cli.quiet import quiet_spark

SAYS = (
    "import sys; print('WARNING: Using incubator modules: x', 'a line of its own', sep=chr(10)); "
    "print('an error', file=sys.stderr)"
)


def test_lines_go_to_stderr_unless_they_are_greetings(capfd: pytest.CaptureFixture[str]) -> None:
    with quiet_spark():
        subprocess.run([sys.executable, "-c", SAYS], check=True)
    _wait_for_end()

    out, err = capfd.readouterr()

    assert out == ""
    assert sorted(err.splitlines()) == ["a line of its own", "an error"]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="handles are counted through /proc")
def test_a_call_leaves_no_handle_open() -> None:
    """Found by the soak: each call left one more open in a process that lives long."""
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 counted, not looked at

    for _ in range(5):
        with quiet_spark():
            pass
    _wait_for_end()

    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 as above


def _wait_for_end() -> None:
    """The thread that reads ends when nothing can write to the pipe any more."""
    for thread in [t for t in threading.enumerate() if t.name == "spark-output"]:
        thread.join(timeout=5)
