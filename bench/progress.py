"""What is being done, on stderr: the results alone go to stdout."""

import sys
import time

_STARTED = time.monotonic()


def say(text: str) -> None:
    print(f"{time.monotonic() - _STARTED:7.1f}  {text}", file=sys.stderr, flush=True)
