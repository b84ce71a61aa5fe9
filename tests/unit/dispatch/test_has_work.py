"""A task ends as unchanged only if nothing is left of its scope when it is known which inputs moved (L14).

No Spark: a task that is worked on asks for workers, and that is where these tests stop it.
"""

from pathlib import Path
from typing import Never

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from strandline.catalog import open_catalog
from strandline.dispatch.attempt import attempt
from strandline.dispatch.desk import Desk, Pins
from strandline.lake.location import Lake
from strandline.lake.small import SmallTables
from strandline.lake.work import Shared
from strandline.model.condition_json import from_row_filter
from strandline.model.plan import Cause, Cursor, PlannedInput, Status, Strategy, Task
from strandline.model.project import Job
from strandline.model.scope import (
    EVERYTHING,
    NOTHING,
    ClockMove,
    Everything,
    Increment,
    Keys,
    Partitions,
    Scope,
)
from tests.golden.cases import AS_OF, tell

COMING = Increment(dataset="sale", coming=True)
CLOCK = ClockMove(before="2024-01-01", now="2024-01-02")


class WorkedOnError(Exception):
    pass


def ask_for_workers() -> Never:
    raise WorkedOnError


@pytest.fixture
def sale(tmp_path: Path) -> Cursor:
    folder = str(tmp_path / "lake" / "sale")
    for _ in range(2):
        write_deltalake(folder, pa.table({"shop_id": ["a"]}), mode="append")
    return Cursor(table_id=str(DeltaTable(folder).metadata().id), version=1)


def make_desk(tmp_path: Path, sale: Cursor) -> Desk:
    lake = Lake(root=str(tmp_path / "lake"))
    return Desk(
        project=tell(("project shop",)).project,
        catalog=open_catalog("sqlite://"),
        lake=lake,
        run="r",
        holder="test",
        as_of=AS_OF,
        now=lambda: AS_OF,
        session=ask_for_workers,
        workers=ask_for_workers,
        pins=Pins(_cursors={"sale": sale}, _rows={}),
        shared=Shared(small=SmallTables(lake, str(tmp_path / "small"))),
        scratch=str(tmp_path / "scratch"),
        accept_guard=frozenset(),
    )


def make_task(scope: Scope, sale: Cursor, *, read_up_to: int) -> Task:
    after = Cursor(table_id=sale.table_id, version=read_up_to)
    return Task(
        node="pieces",
        kind=Job.kind,
        cause=Cause.NEW_INPUT,
        strategy=Strategy.FULL if isinstance(scope, Everything) else Strategy.RECOMPUTE,
        reason="",
        scope=scope,
        inputs=(PlannedInput(name="sale", dataset="sale", after=after, changes=True),),
    )


@pytest.mark.parametrize(
    "scope",
    [
        Keys(origins=(CLOCK,)),
        Keys(origins=(COMING, CLOCK)),
        Keys(where=from_row_filter({"shop_id": "a"})),
        Partitions(names=("0-10",)),
        EVERYTHING,
        Everything(origins=(COMING, CLOCK)),
    ],
)
def test_what_the_clock_or_a_person_asks_for_is_worked_on_although_no_input_has_moved(
    scope: Scope, tmp_path: Path, sale: Cursor
) -> None:
    with pytest.raises(WorkedOnError):
        attempt(make_desk(tmp_path, sale), make_task(scope, sale, read_up_to=1))


@pytest.mark.parametrize("scope", [NOTHING, Keys(origins=(COMING,)), Everything(origins=(COMING,))])
def test_a_task_that_follows_inputs_ends_as_unchanged_if_none_has_moved(
    scope: Scope, tmp_path: Path, sale: Cursor
) -> None:
    result = attempt(make_desk(tmp_path, sale), make_task(scope, sale, read_up_to=1))

    assert (result.status, result.covered) == (Status.UNCHANGED, None)


@pytest.mark.parametrize("scope", [Keys(origins=(COMING,)), Everything(origins=(COMING,))])
def test_a_task_that_follows_inputs_is_worked_on_if_one_has_moved(
    scope: Scope, tmp_path: Path, sale: Cursor
) -> None:
    with pytest.raises(WorkedOnError):
        attempt(make_desk(tmp_path, sale), make_task(scope, sale, read_up_to=0))
