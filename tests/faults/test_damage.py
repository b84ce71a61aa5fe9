"""Tables and catalogs damaged from outside: a run ends in the correct state, or refuses with a remedy.

It never loses rows silently, and never shows a row that nobody sent.
"""

import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from strandline.app.doctor import examine
from strandline.app.finding import Finding, Result
from strandline.app.planning import RunRequest
from strandline.dispatch.failpoints import hits
from strandline.lake.files import read_files
from strandline.lake.log import list_versions
from strandline.model.errors import OutsideError, StrandlineError
from tests.faults.faulty import NODES, Fail, Faulty, message, standing_at
from tests.harness import result_of

pytestmark = [pytest.mark.spark, pytest.mark.faults]

NAMES = {("x", 2), ("y", 2)}


def said_by(work: Callable[[], object]) -> str:
    """What is said of work that is refused, or of a run that does not end well; nothing if it does."""
    try:
        outcome = work()
    except StrandlineError as error:
        return str(error)
    results = getattr(outcome, "results", ())
    return "\n".join(r.error for r in results if r.error and r.slug != "blocked")


def run_and_listen(project: Faulty) -> str:
    return said_by(lambda: project.run(ok=False))


def assert_named(project: Faulty, node: str, said: str) -> None:
    """A refusal names the table, itself or by a file of it, and what to do, and ends with its slug."""
    assert (
        f"`{node}`" in said or f"{project.table(node)}`"[1:] in said or f"{project.table(node)}/"[1:] in said
    ), said
    assert "\n  " in said, said
    assert said.rstrip().endswith("]"), said


def found_by_doctor(project: Faulty, *, deep: bool = False) -> list[Finding]:
    return [f for f in examine(project.folder, deep=deep) if f.result is Result.WRONG]


def entry(project: Faulty, node: str, version: int) -> Path:
    return project.table(node) / "_delta_log" / f"{version:020}.json"


def newest(project: Faulty, node: str) -> Path:
    return entry(project, node, list_versions(project.lake.table(node))[-1])


def forget(session: SparkSession) -> None:
    """A Spark that has read the table before would not look at its log again."""
    jvm = session.sparkContext._jvm
    assert jvm is not None
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def move_away(project: Faulty, node: str) -> None:
    """What `doctor` advises for a table that cannot be read."""
    project.table(node).rename(project.folder / f"{node}.away")


def cut_in_a_line(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-40])


def cut_between_lines(file: Path) -> None:
    """A file after a power loss: what was not written yet is missing, and the rest can be read."""
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:1]))


def empty(file: Path) -> None:
    file.write_bytes(b"")


@pytest.mark.parametrize("node", NODES)
@pytest.mark.parametrize("cut", [cut_in_a_line, cut_between_lines, empty])
def test_a_truncated_last_log_entry_is_refused(
    project: Faulty, node: str, cut: Callable[[Path], None]
) -> None:
    """Without its last entry's files a table has fewer rows, and all that reads it would follow."""
    cut(newest(project, node))

    said, answered = run_and_listen(project), said_by(lambda: project.query(f"select count(*) from {node}"))

    assert_named(project, node, said)
    assert_named(project, node, answered)
    assert [f.check for f in found_by_doctor(project)][:1] == ["log"]


@pytest.mark.parametrize("node", ["events", "names"])
def test_a_table_with_a_truncated_log_is_made_again_once_it_is_moved_away(project: Faulty, node: str) -> None:
    """The remedy that `doctor` gives."""
    cut_in_a_line(newest(project, node))
    wrong = found_by_doctor(project)
    assert [f.what.startswith(f"`{node}`: entry ") for f in wrong] == [True]
    assert f"move `{project.table(node)}` away and run" in wrong[0].remedy
    move_away(project, node)

    project.run()

    assert project.rows("names") == NAMES
    project.assert_right()


@pytest.mark.parametrize("node", NODES)
def test_a_log_entry_missing_in_the_middle_is_refused(
    project: Faulty, session: SparkSession, node: str
) -> None:
    session.sql(f"OPTIMIZE delta.`{project.lake.table(node)}`")
    entry(project, node, list_versions(project.lake.table(node))[-2]).unlink()

    said = run_and_listen(project)

    assert_named(project, node, said)
    assert [f.check for f in found_by_doctor(project)] == ["log"]


@pytest.mark.parametrize("node", ["item_facts", "names"])
def test_a_computed_table_that_lost_its_last_log_entry_is_computed_again(project: Faulty, node: str) -> None:
    newest(project, node).unlink()

    said = run_and_listen(project)

    if said:
        assert_named(project, node, said)
        move_away(project, node)
        project.run()
    assert project.rows("names") == NAMES
    project.assert_right(verified=False)


def test_a_source_that_lost_its_last_log_entry_is_not_taken_for_what_was_received(project: Faulty) -> None:
    """L1, L13: its readers would be rebuilt without rows whose files the catalog takes for received."""
    newest(project, "events").unlink()

    said = run_and_listen(project)

    assert_named(project, "events", said)
    assert project.rows("names") == NAMES, "what was published stays"
    assert found_by_doctor(project)
    move_away(project, "events")
    project.run()
    assert project.rows("names") == NAMES
    project.assert_right(verified=False)


@pytest.mark.parametrize("rows", [0, 1])
def test_a_source_deleted_and_made_again_by_someone_else_is_not_taken_for_what_was_received(
    project: Faulty, session: SparkSession, rows: int
) -> None:
    """L1, L13: every file counts as received, and this table has none of them."""
    stranger = session.read.format("delta").load(project.lake.table("events")).limit(rows).localCheckpoint()
    shutil.rmtree(project.table("events"))
    forget(session)
    stranger.write.format("delta").save(project.lake.table("events"))

    said = run_and_listen(project)

    assert_named(project, "events", said)
    assert project.rows("names") == NAMES, "what was published stays"
    assert "recreated" in [f.check for f in found_by_doctor(project)]
    move_away(project, "events")
    project.run()
    assert project.rows("names") == NAMES
    project.assert_right(verified=False)


def test_a_source_restored_by_hand_is_not_taken_for_what_was_received(
    project: Faulty, session: SparkSession
) -> None:
    """Delta lets it pass, append-only or not: the next who reads all of it would find fewer rows."""
    last = list_versions(project.lake.table("events"))[-1]
    session.sql(f"RESTORE TABLE delta.`{project.lake.table('events')}` TO VERSION AS OF 0")

    said = run_and_listen(project)

    assert_named(project, "events", said)
    assert "[source-lost]" in said
    assert "foreign" in [f.check for f in found_by_doctor(project)]
    session.sql(f"RESTORE TABLE delta.`{project.lake.table('events')}` TO VERSION AS OF {last}")
    project.run()
    assert project.rows("names") == NAMES


def test_facts_restored_by_hand_are_decoded_again(project: Faulty, session: SparkSession) -> None:
    session.sql(f"RESTORE TABLE delta.`{project.lake.table('item_facts')}` TO VERSION AS OF 0")

    outcome = project.run()

    assert result_of(outcome, "item_facts").cause == "gap"
    assert project.rows("names") == NAMES
    project.assert_right(verified=False)


def test_a_checkpoint_that_is_gone_is_told_with_its_remedy(project: Faulty, session: SparkSession) -> None:
    """Every entry of the log is still there, so nothing is lost."""
    jvm = session.sparkContext._jvm
    assert jvm is not None
    jvm.org.apache.spark.sql.delta.DeltaLog.forTable(
        session._jsparkSession, project.lake.table("item")
    ).checkpoint()
    log = project.table("item") / "_delta_log"
    assert (log / "_last_checkpoint").exists()
    for file in log.glob("*.checkpoint*.parquet"):
        file.unlink()
    forget(session)
    project.send(message("e", 1, "z"))

    said = run_and_listen(project)

    assert_named(project, "item", said)
    wrong = found_by_doctor(project)
    assert [f.check for f in wrong] == ["checkpoint"]
    assert f"Remove `{log / '_last_checkpoint'}`" in wrong[0].remedy
    (log / "_last_checkpoint").unlink()
    project.run()
    assert project.rows("names") == NAMES | {("z", 1)}
    project.assert_right()


def live_files(project: Faulty, node: str) -> list[Path]:
    return [
        project.table(node) / path
        for path in DeltaTable(project.lake.table(node))
        .get_add_actions(flatten=True)
        .column("path")
        .to_pylist()
    ]


def flip(file: Path, place: int) -> None:
    data = bytearray(file.read_bytes())
    data[place] ^= 0x01
    file.write_bytes(bytes(data))


WORD = "quicksilver"


def flip_a_letter(project: Faulty, node: str) -> None:
    """A byte of a value, so that nothing but a checksum can tell."""
    places = [
        (file, place)
        for file in live_files(project, node)
        if (place := file.read_bytes().find(WORD.encode())) >= 0
    ]
    assert places, f"no file of {node} holds the word as it is written"
    for file, place in places:
        flip(file, place + 2)


@pytest.mark.parametrize(
    ("node", "ahead"), [("events", "events"), ("item_facts", "events item_facts"), ("item", "events item")]
)
def test_a_flipped_byte_in_a_table_that_is_read_is_told_and_never_believed(
    project: Faulty, session: SparkSession, node: str, ahead: str
) -> None:
    """A value that nobody sent is as bad as a row that is missing."""
    project.send(message("e", 1, WORD))
    project.run(RunRequest(select=ahead))
    flip_a_letter(project, node)
    forget(session)

    said = run_and_listen(project)

    if said:
        assert_named(project, node, said)
        assert "`strandline doctor --deep`" in said
        assert [f.check for f in found_by_doctor(project, deep=True)][:1] == ["files"]
    else:
        assert project.rows("names") == NAMES | {(WORD, 1)}


def test_a_flipped_byte_in_rows_that_are_read_again_is_told_and_never_believed(
    project: Faulty, session: SparkSession
) -> None:
    """A row of a key that changes, of a small table: it is not in the increment, and is counted with it."""
    project.send(message("e", 1, WORD))
    project.run()
    flip_a_letter(project, "item")
    forget(session)
    project.send(message("f", 1, WORD))

    said = run_and_listen(project)

    if said:
        assert_named(project, "item", said)
        assert "`strandline doctor --deep`" in said
    else:
        assert project.rows("names") == NAMES | {(WORD, 2)}


def test_a_byte_flipped_anywhere_in_a_file_never_gives_other_rows(project: Faulty) -> None:
    """Readers are told, or see what was written; of a deletion vector too."""
    expected = project.rows("names")
    vectors = [
        project.table("names") / file.vector
        for file in read_files(project.lake.table("names"), -1).live
        if file.vector
    ]
    assert vectors, "rows of the first run are hidden by the second"
    lies: list[int] = []
    for file in (*live_files(project, "names"), *vectors):
        whole = file.read_bytes()
        for place in range(0, len(whole), 11):
            flip(file, place)
            try:
                if set(project.query("select * from names")) != expected:
                    lies.append(place)
            except StrandlineError:
                pass
            file.write_bytes(whole)

    assert not lies


@pytest.mark.parametrize("node", ["item_facts", "item"])
def test_a_data_file_that_is_gone_is_told(project: Faulty, session: SparkSession, node: str) -> None:
    project.send(message("e", 1, "z"), message("a", 2, "z"))
    project.run(RunRequest(select="events item_facts"))
    added = [file.path for e in project.entries(node) for file in e.added]
    (project.table(node) / added[-1]).unlink()
    forget(session)

    said = run_and_listen(project)

    if said:
        assert_named(project, node, said)
        assert [f.check for f in found_by_doctor(project)][:1] == ["files"]
        move_away(project, node)
        project.run()
    assert project.rows("names") == {("x", 1), ("y", 2), ("z", 2)}
    project.assert_right(verified=False)


def vacuum(session: SparkSession, project: Faulty, node: str) -> None:
    """By hand, and of everything that the newest version does not need."""
    own = session.newSession()
    own.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    own.conf.set(
        "spark.sql.sources.parallelPartitionDiscovery.parallelism", "1"
    )  # it lists with ten thousand tasks otherwise
    own.sql(f"OPTIMIZE delta.`{project.lake.table(node)}`")
    own.sql(f"VACUUM delta.`{project.lake.table(node)}` RETAIN 0 HOURS")


def test_vacuum_by_hand_is_nothing_to_those_who_have_read(project: Faulty, session: SparkSession) -> None:
    for node in NODES:
        vacuum(session, project, node)

    assert project.plan().tasks == ()
    project.send(message("e", 1, "x"))
    project.run()

    assert project.rows("names") == {("x", 3), ("y", 2)}
    project.assert_right()


@pytest.mark.parametrize(("node", "ahead"), [("events", "events"), ("item", "events item")])
def test_vacuum_by_hand_of_what_has_yet_to_be_read_is_told_with_its_remedy(
    project: Faulty, session: SparkSession, node: str, ahead: str
) -> None:
    """The changes that a reader's cursor waits for are gone; the rows are not."""
    project.send(message("e", 1, "z"))
    project.run(RunRequest(select=ahead))
    project.send(message("a", 2, "z"))
    project.run(RunRequest(select=ahead))
    vacuum(session, project, node)
    forget(session)

    said = run_and_listen(project)

    if said:
        assert_named(project, node, said)
        remedies = [f.remedy for f in found_by_doctor(project) if f.check == "history"]
        readers = ["item_facts", "item_quarantine"] if node == "events" else ["names"]
        for reader in readers:
            assert any(f"`strandline backfill {reader} --all`" in remedy for remedy in remedies), remedies
            project.run(RunRequest(backfill=reader))
        project.run()
    assert project.rows("names") == {("x", 1), ("y", 2), ("z", 2)}
    project.assert_right(verified=False)


def test_a_catalog_put_back_from_yesterday_receives_and_computes_nothing_twice(
    project: Faulty, tmp_path: Path
) -> None:
    """L6: what it does not know stands in the tables, and is settled."""
    catalog = project.folder / ".strandline" / "catalog.db"
    shutil.copy(catalog, tmp_path / "yesterday.db")
    project.send(message("e", 1, "z"))
    project.run()
    before = {node: len(project.entries(node)) for node in NODES}
    shutil.copy(tmp_path / "yesterday.db", catalog)
    assert [f.check for f in found_by_doctor(project)] == ["catalog-behind"]
    project.send(message("f", 1, "z"))

    outcome = project.run()

    assert all(
        any("commit(s) of ours that the catalog did not know" in n for n in result_of(outcome, node).notes)
        for node in NODES
    )
    assert {node: len(project.entries(node)) - before[node] for node in NODES} == dict.fromkeys(NODES, 2), (
        "a fence and the new message"
    )
    assert project.rows("names") == NAMES | {("z", 2)}
    project.assert_right()


HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.readline()
"""


@contextmanager
def locked(project: Faulty) -> Iterator[subprocess.Popen[str]]:
    """The catalog, held by another process until it is told to end, or the block does."""
    command = [sys.executable, "-c", HOLD, str(project.folder / ".strandline" / "catalog.db")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process


def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRANDLINE_CATALOG", "sqlite:///.strandline/catalog.db?timeout=0.3")


def test_a_catalog_locked_for_too_long_is_told_and_nothing_was_done(
    project: Faulty, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {node: list_versions(project.lake.table(node)) for node in NODES}
    project.send(message("e", 1, "z"))
    impatient(monkeypatch)

    with (
        locked(project),
        pytest.raises(
            OutsideError, match="Another process holds the catalog's lock; end it or wait"
        ) as refused,
    ):
        project.run()

    assert refused.value.slug == "catalog-unreachable"
    assert {node: list_versions(project.lake.table(node)) for node in NODES} == before
    project.run()
    assert project.rows("names") == NAMES | {("z", 1)}


def test_a_catalog_locked_in_the_middle_of_a_run_leaves_what_the_next_run_settles(
    project: Faulty, fail: Fail, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The commit stands in the table, and the catalog can't be told."""
    project.send(message("e", 1, "z"))
    impatient(monkeypatch)

    with ExitStack() as until_told:
        with standing_at(
            "before-record:item_facts", fail, tmp_path, lambda: project.run(ok=False)
        ) as running:
            until_told.enter_context(locked(project))
        said = said_by(running.result)

    assert "Another process holds the catalog's lock" in said
    assert "[catalog-unreachable]" in said
    outcome = project.run()
    assert any("found 1 commit(s) of ours" in note for note in result_of(outcome, "item_facts").notes)
    assert project.rows("names") == NAMES | {("z", 1)}
    project.assert_right(verified=False)


def test_a_catalog_locked_for_a_moment_is_waited_for(project: Faulty, fail: Fail, tmp_path: Path) -> None:
    project.send(message("e", 1, "z"))

    with standing_at("before-record:item_facts", fail, tmp_path, project.run) as running, locked(project):
        recorded = hits["after-record:item_facts"]
        (tmp_path / "go").touch()
        threading.Event().wait(1)
        assert hits["after-record:item_facts"] == recorded, "it waits"

    assert running.result().exit_code == 0
    assert project.rows("names") == NAMES | {("z", 1)}
    project.assert_right(verified=False)
