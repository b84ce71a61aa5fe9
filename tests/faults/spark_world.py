"""The world of the fault suite on Spark and real Delta tables, with the engine's own workers.

Project, story and laws are the same.
"""

import shutil
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from strandline.app import run as running
from strandline.dispatch import workers
from strandline.lake.log import list_versions
from strandline.lake.table import get_table
from strandline.model.project import Settings
from strandline.spark.session import get_session

from .fate import LAKE_USERS, Fate
from .table_log import Row
from .world import Ledger, PublishingDesk, Rooms, World


def shared_session() -> SparkSession:
    return get_session(Settings(lake="", catalog="", spark_master="local[2]", spark_conf={}))


class SparkFate(Fate):
    """Kills between the steps of a run; what Spark was asked to do before is done."""

    sends_late = False

    def install(self, patch: pytest.MonkeyPatch) -> None:
        super().install(patch)
        patch.setattr(running, "load_workers", lambda: workers)
        for module in LAKE_USERS:
            patch.setattr(module, "open_lake", lambda *_: shared_session)


class SparkWorld(World):
    """The engine's own workers write it."""

    copy_file: Callable[[Any, Any], object] = staticmethod(shutil.copy2)
    needs_new_folder = True
    """Delta remembers a table by its path for as long as the JVM lives."""

    def rows(self, dataset: str, version: int | None = None) -> list[Row]:
        uri = self.lake.table(dataset)
        if not list_versions(uri):
            return []
        return get_table(uri, version).ask("SELECT * FROM t").to_pylist()  # type: ignore[no-any-return]

    def compact(self, dataset: str) -> None:
        if list_versions(self.lake.table(dataset)):
            shared_session().sql(f"OPTIMIZE delta.`{self.lake.table(dataset)}`")


class SparkLedger(SparkWorld, Ledger):
    """The world of timelines."""

    kinds = Ledger.kinds


class SparkRooms(SparkWorld, Rooms):
    """The world of entities."""

    kinds = Rooms.kinds


class SparkDesk(SparkWorld, PublishingDesk):
    """The world of what is published."""

    kinds = PublishingDesk.kinds
