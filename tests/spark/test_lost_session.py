"""A JVM that dies takes its session with it. The next piece of work starts another."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

CODE = """
import os, signal, sys, time
from strandline.lake.location import Lake
from strandline.lake.lock import await_lake, hold_lake
from strandline.model.project import Settings
from strandline.spark.session import get_session

conf = {"spark.driver.memory": "1g"}
settings = Settings(lake=sys.argv[1], catalog="", spark_master="local[1]", spark_conf=conf)
first = get_session(settings)
hold_lake(first, Lake(root=sys.argv[1]), "now")
pid = first.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
os.kill(pid, signal.SIGKILL)
time.sleep(1)
await_lake(Lake(root=sys.argv[1]))
second = get_session(settings)
hold_lake(second, Lake(root=sys.argv[1]), "later")
print("rows", second.range(3).count(), second is not first)
"""


def test_work_after_the_death_of_the_jvm_gets_a_new_session_and_the_lake(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path / "lake")], capture_output=True, text=True, timeout=180
    )

    assert "rows 3 True" in ended.stdout, ended.stderr[-2000:]
