"""The last test of the fault suite, and the project that tests of the protocol and of damage share."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.faults.faulty import YAML, Fail, Faulty, message
from tests.faults.world import make_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The test that looks back on all others runs after them."""
    items.sort(key=lambda item: item.path.name == "test_points.py")


@pytest.fixture(scope="module")
def session() -> "SparkSession":
    from tests.faults.spark_world import shared_session

    return shared_session()


@pytest.fixture(scope="module")
def worlds() -> Iterator[Path]:
    """Where plain worlds are played. The path stays the same, so that their project is loaded once."""
    with make_folder() as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Faulty:
    """Two runs: every table has a build and an increment. Never changed; tests work on copies."""
    project = Faulty.create(tmp_path_factory.mktemp("built") / "project", YAML)
    assert isinstance(project, Faulty)
    (project.folder / "data").mkdir()
    project.send(message("a", 1, "x"), message("b", 1, "x"), message("c", 1, "y"))
    project.run()
    project.send(message("b", 2, "y"), message("d", 1, "x"))
    project.run()
    return project


@pytest.fixture
def project(built: Faulty, tmp_path: Path) -> Faulty:
    return built.copy(tmp_path / "project")


@pytest.fixture
def fail(monkeypatch: pytest.MonkeyPatch) -> Fail:
    """Ask for failpoints; with "" for none."""
    return lambda text: (
        monkeypatch.setenv("STRANDLINE_FAILPOINTS", text)
        if text
        else monkeypatch.delenv("STRANDLINE_FAILPOINTS", False)
    )
