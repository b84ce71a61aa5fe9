"""What is posted is received once, by the code that receives files (L1, L10)."""

import json
import shutil
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from strandline.app.doctor import examine
from strandline.app.finding import Result
from strandline.app.fresh import query_fresh
from strandline.app.maintain import maintain_tables, preview_tables
from strandline.app.rebuild_catalog import rebuild_catalog
from strandline.app.receiving import Posted, Receipt, receive
from strandline.app.workspace import open_workspace
from strandline.catalog import find_node
from strandline.ingest.inbox import list_inbox
from strandline.model.files import Content, FileRead
from strandline.model.plan import Status
from tests.follower import Follower
from tests.harness import TestProject, result_of
from tests.spark.counts import assert_conserved
from tests.spark.test_real_publishing import FILES, PRODUCTS
from tests.unit.serve.served_world import wait_until
from tests.unit.serve.serving import Server, serving

pytestmark = pytest.mark.spark

Make = Callable[[str], TestProject]

YAML = """
    project: posts
    sources:
      pushed: {http: {}}
    datasets:
      item:
        from: pushed
        where: "kind = 'item'"
        columns: {id: id, n: {path: n, type: bigint}}
        record_set: {key: [id], order_by: [n]}
      part:
        from: pushed
        explode: parts
        columns: {id: id, part: item.name, weight: {path: item.weight, type: "decimal(38,20)"}}
        event_stream: {identity: [id, part]}
"""
POSITIONS = (
    "select _source_position['name'], _source_position['part'], _source_position['place'], _payload"
    " from pushed"
)


def post(
    project: TestProject,
    body: object,
    key: str | None = None,
    *,
    to: str = "pushed",
    content: Content = Content.JSON,
    at: datetime | None = None,
) -> Receipt:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    with open_workspace(project.folder) as workspace:
        return receive(workspace, Posted(source=to, key=key, content=content, body=data), at)


def item(id_: str, n: object) -> dict[str, object]:
    return {"kind": "item", "id": id_, "n": n}


def inbox(project: TestProject) -> Path:
    return project.folder / ".strandline" / "lake" / "_inbox" / "pushed"


def files(project: TestProject) -> dict[str, FileRead]:
    with open_workspace(project.folder) as workspace:
        record = find_node(workspace.catalog, "pushed")
    assert record is not None
    return dict(record.files)


def set_back(project: TestProject, days: int) -> None:
    """As if what was received had been received so many days earlier."""
    for day in (inbox(project) / "received").iterdir():
        earlier = datetime.fromisoformat(day.name) - timedelta(days=days)
        day.rename(day.parent / earlier.date().isoformat())


def test_what_is_posted_is_received_once_with_its_text_and_position(make_project: Make) -> None:
    project = make_project(YAML)
    project.run()  # an empty table, so that readers exist
    raw = b'{"kind":"item",  "id":"b","n":1, "x":1.00000000000000000000001}'
    twice = b'{"kind": "item", "id": "e", "n": 1, "n": 2}'
    post(
        project,
        b"[" + raw + b',\n{"id": "p", "parts": [{"name": "x", "weight": 1.00000000000000000001}]}]',
        "a/1",
    )
    post(project, b'\n{"kind": "item", "id": "c", "n": "bad"}\n"scalar"\n', "a/2", content=Content.LINES)
    post(project, item("d", 1), "a/3")
    post(project, [], "a/4")
    post(project, twice, "a/5")

    outcome = project.run()

    assert sorted(project.query(POSITIONS)) == [
        ("a/1", 1, 1, raw.decode()),
        ("a/1", 1, 2, '{"id": "p", "parts": [{"name": "x", "weight": 1.00000000000000000001}]}'),
        ("a/2", 1, 2, '{"kind": "item", "id": "c", "n": "bad"}'),
        ("a/2", 1, 3, '"scalar"'),
        ("a/3", 1, 1, '{"kind": "item", "id": "d", "n": 1}'),
        ("a/5", 1, 1, twice.decode()),  # kept as it came, and refused by what decodes it
    ]
    assert result_of(outcome, "pushed").counts == {"received": 6}
    assert {id_ for id_, _ in project.rows("item", "id", "n")} == {"b", "d"}
    ((weight,),) = project.query("select weight from part")
    assert str(weight) == "1.00000000000000000001"
    assert_conserved(project, "item", "part")
    project.assert_verified()
    assert project.plan().tasks == ()

    assert post(project, item("d", 1), "a/3").duplicate
    assert project.plan().tasks == ()
    assert list_inbox(inbox(project)) == ()


def test_the_catalog_knows_one_file_for_a_source_however_many_were_posted(make_project: Make) -> None:
    project = make_project(YAML)
    for round_ in range(2):
        for n in range(40):
            post(project, item(str(n), round_))
        project.run()

        assert [(f.path, f.rows) for f in files(project).values()] == [("_inbox/pushed", 40 * (round_ + 1))]

    counts = assert_conserved(project, "item")
    assert counts["item"]["offered"] == 80


def test_a_task_that_dies_before_its_posts_are_put_away_receives_them_once(
    make_project: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_project(YAML)
    post(project, [item("a", 1), item("b", 1)], "k1")
    post(project, item("c", 1))
    with monkeypatch.context() as patched:
        patched.setenv("STRANDLINE_FAILPOINTS", "after-record:pushed=raise")
        project.run(ok=False)
    assert len(list_inbox(inbox(project))) == 2  # received, and not put away
    assert post(project, [item("a", 1), item("b", 1)], "k1").duplicate
    post(project, item("d", 1), "k2")

    outcome = project.run()

    assert project.rows("item", "id", "n") == {("a", 1), ("b", 1), ("c", 1), ("d", 1)}
    assert any("2 posts had been received" in note for note in result_of(outcome, "pushed").notes)
    assert assert_conserved(project, "item")["item"]["offered"] == 4
    assert list_inbox(inbox(project)) == ()
    project.assert_verified()


def test_a_catalog_that_is_rebuilt_receives_nothing_again(make_project: Make) -> None:
    project = make_project(YAML)
    post(project, item("a", 1), "k1")
    project.run()
    before = files(project)
    post(project, item("b", 1), "k2")
    (project.folder / ".strandline" / "catalog.db").unlink()

    rebuild_catalog(project.folder)

    assert files(project) == before
    assert post(project, item("a", 1), "k1").duplicate
    project.run()
    assert project.rows("item", "id", "n") == {("a", 1), ("b", 1)}
    project.assert_verified()


def test_a_key_that_is_used_again_after_a_week_has_positions_of_its_own(make_project: Make) -> None:
    project = make_project(YAML)
    now = datetime.now(UTC)
    post(project, item("a", 1), "k", at=now - timedelta(days=9))
    project.run()
    with open_workspace(project.folder) as workspace:
        assert preview_tables(workspace, "pushed").tables[0].notes == ()
    set_back(project, 9)
    with open_workspace(project.folder) as workspace:
        previewed = preview_tables(workspace, "pushed").tables[0]
        maintained = maintain_tables(workspace, None, lambda _: None).tables[0]
    # The table's row must look as old as its post is.
    assert previewed.notes == maintained.notes == ("1 posts that were received more than a week ago",)
    assert list((inbox(project) / "received").iterdir()) == []

    again = post(project, item("a", 2), "k", at=now + timedelta(days=9))
    project.run()

    assert not again.duplicate
    assert sorted(row[:3] for row in project.query(POSITIONS)) == [("k", 1, 1), ("k", 2, 1)]
    assert project.rows("item", "id", "n") == {("a", 2)}
    project.assert_verified()


def test_a_damaged_post_is_refused_alone(make_project: Make) -> None:
    project = make_project(YAML)
    post(project, item("a", 1), "k1")
    (seen,) = list_inbox(inbox(project))
    damaged = inbox(project) / Path(seen.path).name
    damaged.write_bytes(damaged.read_bytes()[:-3])
    post(project, item("b", 1), "k2")

    outcome = project.run(ok=False)

    result = result_of(outcome, "pushed")
    assert (result.status, result.slug, result.partly) == (Status.FAILED, "file-unreadable", True)
    assert project.rows("item", "id", "n") == {("b", 1)}
    damaged.unlink()  # what the remedy says
    post(project, item("a", 1), "k1")
    project.run()
    assert project.rows("item", "id", "n") == {("a", 1), ("b", 1)}


def test_a_fresh_query_folds_in_what_waits_and_receives_nothing(make_project: Make) -> None:
    project = make_project(YAML)
    post(project, item("a", 1), "k1")
    project.run()
    post(project, item("b", 1), "k2")

    with open_workspace(project.folder) as workspace:
        fresh = query_fresh(workspace, "select id from item order by id")

    assert list(fresh.rows) == [("a",), ("b",)]
    assert project.rows("item", "id") == {("a",)}
    assert len(list_inbox(inbox(project))) == 1
    project.run()
    assert project.rows("item", "id") == {("a",), ("b",)}


def test_a_source_whose_table_was_moved_away_receives_again_what_is_kept(make_project: Make) -> None:
    project = make_project(YAML)
    post(project, item("a", 1), "k1")
    project.run()
    for table in ("pushed", "item_facts", "item"):
        shutil.rmtree(project.folder / ".strandline" / "lake" / table)
    post(project, item("b", 1), "k2")

    project.run()

    assert project.rows("item", "id") == {("a",), ("b",)}
    assert post(project, item("a", 1), "k1").duplicate
    project.assert_verified()


def test_doctor_and_maintain_take_the_inbox_for_no_table(make_project: Make) -> None:
    project = make_project(YAML)
    post(project, item("a", 1), "k1")
    project.run()
    post(project, item("b", 1), "k2")

    findings = examine(project.folder, deep=True)
    with open_workspace(project.folder) as workspace:
        maintained = maintain_tables(workspace, None, lambda _: None)

    assert [f for f in findings if f.result is Result.WRONG] == []
    assert "_inbox" not in {table.dataset for table in maintained.tables}
    assert len(list_inbox(inbox(project))) == 1
    project.run()
    assert project.rows("item", "id") == {("a",), ("b",)}


def post_over_http(server: Server, source: str, line: str) -> None:
    request = urllib.request.Request(
        f"{server.url}/v1/facts/{source}", line.encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        assert json.load(answer)["received"] == 1


def _shown(rows: dict[str, dict[str, Any]]) -> dict[str, tuple[Any, ...]]:
    """By id: name, description and weight, as a query gives them."""
    return {key: (row["name"], row["description"], row["weight"]) for key, row in rows.items()}


@pytest.mark.real_data
def test_a_subscriber_of_change_messages_posted_one_by_one_ends_with_the_table_of_each_system(
    make_project: Make, tmp_path: Path, shared_data: Path
) -> None:
    """As it does when they come in files."""
    folder = shared_data / "4_live_changes/cdc_envelopes"
    from_files = make_project(PRODUCTS)
    posted = PRODUCTS
    for system in FILES:
        line = next(line for line in PRODUCTS.splitlines() if f"{system}_messages:" in line)
        posted = posted.replace(line, f"{line.partition(':')[0]}: {{http: {{}}}}")
    over_http = TestProject.create(tmp_path / "posted", posted)
    messages = {system: (folder / name).read_text().splitlines() for system, name in FILES.items()}
    for system, lines in messages.items():
        from_files.write(f"{system}/all.jsonl", "".join(f"{line}\n" for line in lines))
    columns = ("id", "name", "description", "weight")

    from_files.run()
    with serving(over_http.folder) as server:
        followers = {system: Follower(system, columns, "id", lambda: server.port) for system in FILES}
        for part in range(3):
            for system, lines in messages.items():
                third = len(lines) // 3 + 1
                for line in lines[part * third : (part + 1) * third]:
                    post_over_http(server, f"{system}_messages", line)
            over_http.run()
            if part == 0:
                for follower in followers.values():
                    follower.start()
                wait_until(lambda: all(f.cursor for f in followers.values()), "the first rows")
        expected = {
            system: {str(row[0]): row[1:] for row in over_http.rows(system, *columns)} for system in FILES
        }
        wait_until(
            lambda: {system: _shown(f.rows) for system, f in followers.items()} == expected,
            "the rows of each subscriber",
        )
        for follower in followers.values():
            follower.stop()

    assert [f.broken for f in followers.values()] == [[]] * 4
    assert sum(f.messages for f in followers.values()) > sum(map(len, expected.values()))
    for system in FILES:
        assert over_http.rows(system, *columns) == from_files.rows(system, *columns) != set()
        facts = f"select id, name, description, weight, _source_ts from {system}_facts"
        assert sorted(over_http.query(facts), key=str) == sorted(from_files.query(facts), key=str)
    over_http.assert_verified()
