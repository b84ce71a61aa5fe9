"""`strict_incremental`: the dispatcher refuses marked tasks before it attempts anything.

The plan marks them. The table's log is enough, so no Spark is needed.
"""

from dataclasses import replace
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from strandline.catalog import open_catalog, start_run
from strandline.dispatch.desk import Desk, Pins, Workers
from strandline.dispatch.run import execute
from strandline.lake.location import Lake
from strandline.lake.small import SmallTables
from strandline.lake.work import Shared
from strandline.model.plan import Cursor, Plan, Status, Task
from tests.golden.cases import AS_OF, tell

STRICT = "edit output_dataset: turnover => output_dataset: turnover\\n    strict_incremental: true"


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Cursor]:
    """`price` has two commits that changed rows, `sale` has one."""
    cursors = {}
    for name in ("price", "price", "sale"):
        folder = str(tmp_path / "lake" / name)
        write_deltalake(folder, pa.table({"article": ["apple"]}), mode="append")
        table = DeltaTable(folder)
        cursors[name] = Cursor(table_id=str(table.metadata().id), version=table.version())
    return cursors


class _Idle:
    """Workers that compute nothing. Being asked to is an error; what is read ahead is not."""

    def read_ahead(self, desk: Desk, task: Task, written: frozenset[str]) -> None:
        pass

    def __getattr__(self, name: str) -> object:
        pytest.fail(f"workers were asked for {name}")


def make_desk(tmp_path: Path, tables: dict[str, Cursor]) -> Desk:
    lake = Lake(root=str(tmp_path / "lake"))
    desk = Desk(
        project=tell(("project shop", STRICT)).project,
        catalog=open_catalog("sqlite://"),
        lake=lake,
        run="r",
        holder="test",
        as_of=AS_OF,
        now=lambda: AS_OF,
        session=lambda: pytest.fail("Spark was asked for"),
        workers=lambda: cast(Workers, _Idle()),
        pins=Pins(_cursors=dict(tables), _rows={}),
        shared=Shared(small=SmallTables(lake, str(tmp_path / "small"))),
        scratch=str(tmp_path / "scratch"),
        accept_guard=frozenset(),
    )
    start_run(desk.catalog, "r", AS_OF.isoformat(), "run")
    return desk


def plan_turnover(tables: dict[str, Cursor], *, price_read_up_to: int) -> Task:
    """The plan if this run may change `price`. The cursors are those of the tables here."""
    world = tell(("project shop", STRICT, "built", "commit price_facts append 1 rows"))
    task = next(t for t in world.plan().tasks if t.node == "turnover")
    after = {**tables, "price": replace(tables["price"], version=price_read_up_to)}
    return replace(task, inputs=tuple(replace(i, after=after[i.dataset]) for i in task.inputs), needs=())


def test_a_changed_whole_input_fails_the_task_before_it_is_attempted(
    tmp_path: Path, tables: dict[str, Cursor]
) -> None:
    task = plan_turnover(tables, price_read_up_to=0)

    (result,) = execute(
        make_desk(tmp_path, tables), Plan(as_of=AS_OF, tasks=(task,)), lambda _: None, lambda _: None
    )

    assert (result.status, result.slug) == (Status.FAILED, "strict-incremental")
    assert "strandline backfill turnover --all" in result.error


@pytest.mark.parametrize(
    "remedy",
    [
        ("commit price replace_keys 1 rows", "ask backfill turnover --all"),
        ("edit strict_incremental: true => strict_incremental: false", "commit price replace_keys 1 rows"),
        ("edit price: whole => price: {via: sale, on: [article]}", "commit price replace_keys 1 rows"),
    ],
    ids=["backfill", "not strict", "related by the key"],
)
def test_every_remedy_of_the_refusal_gives_a_task_that_is_not_refused(remedy: tuple[str, ...]) -> None:
    """The remedies of `strict-incremental`."""
    refused = tell(("project shop", STRICT, "built", "commit price replace_keys 1 rows")).plan()

    settled = tell(("project shop", STRICT, "built", *remedy)).plan()

    assert [t.refuses for t in refused.tasks if t.node == "turnover"] == [("price",)]
    assert [t.refuses for t in settled.tasks if t.node == "turnover"] == [()]


def test_a_whole_input_that_proves_unchanged_refuses_nothing(
    tmp_path: Path, tables: dict[str, Cursor]
) -> None:
    task = plan_turnover(tables, price_read_up_to=1)

    (result,) = execute(
        make_desk(tmp_path, tables), Plan(as_of=AS_OF, tasks=(task,)), lambda _: None, lambda _: None
    )

    assert (result.status, result.error) == (Status.UNCHANGED, "")


def test_readers_of_a_refused_task_are_blocked(tmp_path: Path, tables: dict[str, Cursor]) -> None:
    task = plan_turnover(tables, price_read_up_to=0)
    reader = replace(task, node="best", needs=("turnover",), refuses=())

    results = execute(
        make_desk(tmp_path, tables), Plan(as_of=AS_OF, tasks=(task, reader)), lambda _: None, lambda _: None
    )

    assert [r.status for r in results] == [Status.FAILED, Status.BLOCKED]
