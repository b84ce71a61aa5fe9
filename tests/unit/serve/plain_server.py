"""The command line with plain workers instead of those of Spark."""

import sys

from strandline.app import invalidate as invalidating
from strandline.app import run as running
from strandline.app import serving
from strandline.cli.entry import main
from tests.faults import plain_workers
from tests.faults.fate import _no_spark


def install() -> None:
    running.load_workers = lambda: plain_workers
    for module in (running, invalidating, serving):
        module.open_lake = lambda *_: _no_spark  # type: ignore[attr-defined]


if __name__ == "__main__":
    install()
    sys.exit(main())
