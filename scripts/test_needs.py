"""What the tests need besides `make setup`: the programs of a Postgres server. Called by `make test`.

It never fails. Without these programs pytest skips the tests that need them, and says so.
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
    """Keep Debian's package from creating and starting a cluster, unless an administrator configured it."""
    if shutil.which("apt-get") and not NO_CLUSTER.exists():
        NO_CLUSTER.parent.mkdir(parents=True, exist_ok=True)
        NO_CLUSTER.write_text("create_main_cluster = false\n")


if __name__ == "__main__":
    main()
