"""What every test may use. One Spark session serves the whole suite: it is started by the first test that works with the lake."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness import TestProject

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session", autouse=True)
def _two_cores() -> None:
    os.environ.setdefault("STRANDLINE_SPARK_MASTER", "local[2]")


@pytest.fixture
def make_project(tmp_path: Path) -> Callable[[str], TestProject]:
    """A project in a folder of its own, from the text of its `strandline.yaml`."""
    return lambda yaml, name="project": TestProject.create(tmp_path / name, yaml)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real data that nobody here wrote; it lies beside the project and is never copied into it."""
    if not SHARED_DATA.exists():
        pytest.skip("the shared data is not beside the project")
    return SHARED_DATA
