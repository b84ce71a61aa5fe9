"""Free memory goes back to the operating system."""

import platform
from pathlib import Path

import pytest

from strandline.lake.memory import return_free_memory


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc gives memory back when asked")
def test_what_is_free_between_things_that_are_in_use_is_given_back() -> None:
    kept = [bytes(1_000) for _ in range(100_000)]
    del kept[: len(kept) - 1]  # the last one is above all others, so they stay in the heap
    before = resident()

    return_free_memory()

    assert resident() < before - 50_000_000
