"""What the tests want besides `make setup`: the programs of a Postgres server. Called by `make test`.

Never fails: without them the tests that need them are skipped, and pytest says so.
"""

import os
import shutil
from pathlib import Path

from setup import apt_install, say

NO_CLUSTER = Path("/etc/postgresql-common/createcluster.conf")


def main() -> None:
    if find_initdb():
        return
    if os.geteuid() == 0:
        keep_debian_from_starting_a_server()
        if any(apt_install(package) and find_initdb() for package in ("postgresql-15", "postgresql")):
            return
    say(
        "no Postgres server found: its tests will be skipped "
        "(Debian, Ubuntu: sudo apt-get install postgresql)"
    )


def find_initdb() -> Path | None:
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    return installed[-1] if installed else Path(on_path) if on_path else None


def keep_debian_from_starting_a_server() -> None:
    """Debian's package makes and starts a cluster unless this file, which an administrator may have written, says no."""
    if shutil.which("apt-get") and not NO_CLUSTER.exists():
        NO_CLUSTER.parent.mkdir(parents=True, exist_ok=True)
        NO_CLUSTER.write_text("create_main_cluster = false\n")


if __name__ == "__main__":
    main()
