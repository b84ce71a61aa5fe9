"""`doctor --adopt` on Spark: a foreign commit counts as ours from then on.

This holds for the planner, for readers and for a rebuilt catalog.
"""

from collections.abc import Sequence

import pytest
from pyspark.sql import SparkSession

from strandline.app.adopt import adopt_foreign
from strandline.app.doctor import examine
from strandline.app.finding import Result
from strandline.app.rebuild_catalog import rebuild_catalog
from strandline.app.workspace import open_workspace
from strandline.dispatch.adopt import Adopted
from strandline.lake.table import Table, get_table
from strandline.model.catalog_records import NodeRecord
from strandline.model.commits import Operation
from strandline.model.errors import ConflictError
from strandline.model.plan import Status
from tests.faults.faulty import Fail, Faulty, append_by_hand, message
from tests.harness import result_of

pytestmark = [pytest.mark.spark, pytest.mark.faults]


def adopt(project: Faulty, *names: str) -> tuple[Adopted, ...]:
    with open_workspace(project.folder) as workspace:
        return adopt_foreign(workspace, names, reason="checked by hand")


def known(project: Faulty, node: str) -> Sequence[object]:
    """What the catalog knows of a table, but for when."""
    record: NodeRecord = project.view().nodes[node]
    return (
        record.table_id,
        record.table_version,
        record.row_count,
        record.configs,
        dict(record.cursors),
        dict(record.counts),
        record.as_of,
    )


@pytest.mark.parametrize(("node", "behind"), [("item_facts", ["item"]), ("item", ["names"]), ("names", [])])
def test_an_adopted_commit_is_ours_from_then_on(
    project: Faulty, session: SparkSession, node: str, behind: list[str]
) -> None:
    """L6: also for a catalog that is made anew. What reads the table follows as it follows any commit."""
    version = append_by_hand(session, project, node)
    cursors = dict(project.view().nodes[node].cursors)

    (adopted,) = adopt(project, node)

    assert (adopted.dataset, adopted.versions, adopted.table_version) == (node, (version,), version + 1)
    entry = project.entries(node)[-1]
    assert entry.metadata is not None
    assert (entry.metadata.operation, entry.metadata.adopted, entry.changes_rows) == (
        Operation.ADOPT,
        (version,),
        False,
    )
    record = project.view().nodes[node]
    assert record.row_count == adopted.rows == get_table(project.lake.table(node)).live_rows
    assert dict(record.cursors) == cursors
    assert [f.check for f in examine(project.folder) if f.result is Result.WRONG] == []
    before = known(project, node)
    rebuild_catalog(project.folder)
    assert known(project, node) == before
    tasks = project.plan().tasks
    assert [(t.node, t.cause) for t in tasks if t.node == node or t.node in behind] == [
        (n, "new_input") for n in behind
    ]

    project.run()

    assert project.plan().tasks == ()


def test_readers_take_adopted_rows_as_changes_and_verify_says_what_is_so(
    project: Faulty, session: SparkSession
) -> None:
    """A row that no fact gave is counted, and told by those who compare with the facts."""
    session.sql(f"UPDATE delta.`{project.lake.table('item')}` SET name = 'z' WHERE id = 'a'")
    adopt(project)

    outcome = project.run()

    assert [(r.node, r.status) for r in outcome.results] == [("names", Status.DONE)]
    assert project.rows("names") == {("x", 1), ("y", 2), ("z", 1)}
    assert {d.dataset: d.result for d in project.verify("item").datasets}["item"] == "different"
    project.send(message("a", 9, "y"))
    project.run()
    assert project.rows("names") == {("x", 1), ("y", 3)}, "a newer fact wins over what was adopted"
    project.assert_verified()


def test_an_adoption_that_the_catalog_was_not_told_of_stands(
    project: Faulty, session: SparkSession, fail: Fail
) -> None:
    append_by_hand(session, project, "names")
    fail("before-record:names=raise")
    with pytest.raises(Exception, match="failpoint before-record of names"):
        adopt(project)
    fail("")

    assert project.plan().tasks == (), "nobody rebuilds it"

    project.send(message("e", 1, "w"))
    outcome = project.run()
    assert result_of(outcome, "names").cause == "new_input"
    assert project.view().nodes["names"].row_count == get_table(project.lake.table("names")).live_rows == 4
    assert project.plan().tasks == ()


def test_what_someone_writes_while_it_is_adopted_stays_foreign(
    project: Faulty, session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L13: nothing is taken that was not looked at."""
    first = append_by_hand(session, project, "names")
    written: list[int] = []

    def open_meanwhile(uri: str, version: int | None = None) -> Table:
        if version is not None and not written and version >= first:
            written.append(append_by_hand(session, project, "names"))
        return get_table(uri, version)

    monkeypatch.setattr("strandline.dispatch.adopt.get_table", open_meanwhile)
    with pytest.raises(ConflictError, match=f"version {first + 1} of `names`"):
        adopt(project, "names")
    monkeypatch.undo()

    (task,) = project.plan().tasks

    assert written == [first + 1]
    assert task.cause == "gap"
    assert f"version {first + 1} (WRITE)" in task.reason
    assert f"version {first} " not in task.reason
    (again,) = adopt(project)
    assert again.versions == (first + 1,)
    assert project.plan().tasks == ()
