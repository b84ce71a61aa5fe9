"""Fixtures for every test. One Spark session per process, started by the first test that needs it."""

import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from strandline.spark.session import is_started
from tests.harness import TestProject

_SUMMARY_LINE = "summary line"
settings.register_profile("suite", deadline=None)  # an example may take long on a busy machine
settings.load_profile("suite")
SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


_WITHOUT_SPARK = "no Spark"
_FIRST = (
    _WITHOUT_SPARK,
    "tests/scenario/test_property_tax.py",
    "tests/scenario/test_chain.py",
    "tests/scenario/test_trades.py",
    "tests/faults/test_protocol.py",
    "tests/faults/test_damage.py",
    "tests/spark/test_real_timelines.py",
    "tests/spark/test_modes.py",
    "tests/spark/test_jobs.py",
    "tests/spark/test_facts.py",
    "tests/spark/test_real_data.py",
    "tests/spark/test_real_publishing.py",
    "tests/types/test_every_type.py",
    "tests/property/test_equivalence.py",
    "tests/spark/test_timeline_bad_input.py",
    "tests/types/test_types_of_sources.py",
    "tests/spark/test_real_chains.py",
    "tests/spark/test_ingest.py",
    "tests/spark/test_configurations.py",
)
"""What takes longest, in this order. The rest follows."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> "SparkByFile":
    return SparkByFile(config, log)


class SparkByFile(LoadScopeScheduling):
    """With `-n 2` one process runs all files that do not need Spark, the other those that do, file by file.

    The first stays one unit, because `tests/faults/test_points.py` counts what its own process has reached.
    When it has ended, it takes a share of the remaining Spark files, with a session of its own.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return file if _needs_spark(file) else _WITHOUT_SPARK

    def _assign_work_unit(self, node: WorkerController) -> None:
        """Long files go first, so that both processes end at nearly the same time."""
        first = min(self.workqueue, key=lambda scope: _FIRST.index(scope) if scope in _FIRST else len(_FIRST))
        self.workqueue.move_to_end(first, last=False)
        super()._assign_work_unit(node)


@functools.cache
def _needs_spark(file: str) -> bool:
    return "pytest.mark.spark" in Path(__file__).parents[1].joinpath(file).read_text()


@pytest.fixture
def say(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """A line for the summary at the end."""
    return lambda line: record_property(_SUMMARY_LINE, line)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [r for kind in ("passed", "failed") for r in terminalreporter.stats.get(kind, [])]
    for line in [
        value for report in reports for name, value in report.user_properties if name == _SUMMARY_LINE
    ]:
        terminalreporter.write_line(str(line))


@pytest.fixture(scope="session", autouse=True)
def _same_everywhere() -> None:
    """Spark uses two cores, and no terminal width wraps the output."""
    os.environ.setdefault("STRANDLINE_SPARK_MASTER", "local[2]")
    os.environ.pop("COLUMNS", None)


@pytest.fixture(autouse=True)
def _forget_tables(request: pytest.FixtureRequest) -> Iterator[None]:
    """Delta keeps the state of each table for an hour, and almost every test has tables of its own.

    Java's collector would go through all of them again and again.
    """
    yield
    if request.node.get_closest_marker("spark") is not None and is_started():
        from pyspark import SparkContext  # only where Spark runs

        jvm = SparkContext._jvm
        assert jvm is not None
        jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


@pytest.fixture
def make_project(tmp_path: Path) -> Callable[[str], TestProject]:
    """A project in its own folder, from the text of its `strandline.yaml`."""
    return lambda yaml: TestProject.create(tmp_path / "project", yaml)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Published data beside the project. It is never copied into the project."""
    if not SHARED_DATA.exists():
        pytest.skip("the shared data is not beside the project")
    return SHARED_DATA
