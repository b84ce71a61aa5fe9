"""A table that also contains heads and superseded rows, each in a partition, is a table like any other.

Whatever lists, reads, counts, compacts or cleans tables works on it, and readers see its live rows alone. The
kind of this test writes what it is told, so that the layout is tested and no computation.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import ClassVar

import pytest
from pyspark.sql import SparkSession

from strandline.app.doctor import examine
from strandline.app.finding import Result
from strandline.app.fresh import query_spark
from strandline.app.maintain import maintain_tables
from strandline.app.query import KnownAt, parse_known_at, pin_tables, query, query_pinned
from strandline.app.rebuild_catalog import rebuild_catalog
from strandline.app.status import read_status
from strandline.app.workspace import Workspace, open_workspace
from strandline.declare import sections
from strandline.declare.loading import Loading
from strandline.declare.section import Section
from strandline.declare.spec_types import Strict
from strandline.dispatch.workers import WORKERS
from strandline.lake.files import list_stored, read_files
from strandline.lake.log import LogEntry, count_added, read_entries
from strandline.lake.reads import SIGN, read_added, read_added_rows, read_feed, read_table
from strandline.lake.small import SmallTables
from strandline.lake.table import get_table
from strandline.lake.work import Expected, Prepared, Work, Write
from strandline.lake.writes import Superseding
from strandline.model.columns import DELETED, ROLE, Role
from strandline.model.commits import Operation
from strandline.model.errors import CallError, OutsideError, Place
from strandline.model.hashing import make_config
from strandline.model.kind import NodeKind
from strandline.model.maintained import Maintained
from strandline.model.node import Input, NewRows, Node
from strandline.model.plan import Status
from strandline.model.project import Settings
from strandline.model.scope import EVERYTHING, Keys
from strandline.model.traits import Part, Traits
from strandline.spark.session import get_session
from strandline.sql.known_columns import Known
from tests.harness import TestProject

pytestmark = pytest.mark.spark

HEAD = "struct<watermark_on: date, status: string, superseded_by: bigint, replaces: bigint>"
SCHEMA = (
    "account string, date date, amount int, epoch bigint,"
    f" _key bigint, _deleted boolean, _role string, _head {HEAD}"
)
Row = tuple[object, ...]


# --- the kind ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    kind: ClassVar[NodeKind] = NodeKind("ledger")
    source: str


class LedgerSpec(Strict):
    of: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerDraft:
    name: str
    place: Place
    spec: LedgerSpec
    guessed: Collection[str] = ()

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.spec.of,)

    def settle(self, _: Loading) -> "LedgerDraft":
        return self

    def build(self, loading: Loading) -> None:
        columns = {"account": "string", "date": "date", "amount": "int", "epoch": "bigint"}
        loading.known[self.name] = Known(
            types=dict(columns), complete=True, names=frozenset(columns), unique=(("account", "date"),)
        )
        loading.names[self.name] = (self.name,)
        loading.nodes.append(
            Node(
                name=self.name,
                inputs=(Input(name=self.spec.of, dataset=self.spec.of, relation=NewRows()),),
                definition=Ledger(source=self.spec.of),
                config=make_config({"of": self.spec.of}, frozenset()),
                traits=Traits(
                    how="It is written as it is told.",
                    key=("account", "date"),
                    key_is_named_by="it is told",
                    runs_code=False,
                    keeps_deleted=True,
                    partitioned=True,
                    parts=(
                        Part(
                            name="accounts_state",
                            role=Role.HEAD,
                            columns=("account", "epoch"),
                            details=("watermark_on", "status"),
                        ),
                        Part(name="accounts_epochs", role=Role.EPOCH, details=("superseded_by",)),
                    ),
                ),
                columns=tuple(columns),
            )
        )


def load(ledgers: Mapping[str, LedgerSpec], loading: Loading) -> None:
    for name, spec in ledgers.items():
        place = loading.document.place("ledgers", name)
        if loading.registry.claim(name, "ledger", place):
            loading.tables[name] = name
            loading.drafts[name] = LedgerDraft(name=name, place=place, spec=spec)


LEDGERS = Section(key="ledgers", spec=LedgerSpec, load=load, counted_as="ledger")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one task writes."""

    rows: tuple[Row, ...]
    superseding: Superseding | None = None
    live_rows: int


class Script:
    """A worker that writes one step after the other."""

    def __init__(self, steps: Iterable[Step]) -> None:
        self._steps = iter(steps)

    def prepare(self, work: Work) -> Prepared:
        step = next(self._steps)
        path = f"{work.staging}/told"
        work.session.createDataFrame(step.rows, SCHEMA).write.parquet(path)
        rows = work.session.read.schema(SCHEMA).parquet(path)
        operation = Operation.REPLACE_KEYS if step.superseding else Operation.OVERWRITE
        return Prepared(
            write=Write(operation=operation, rows=rows, superseding=step.superseding),
            scope=Keys(count=1) if step.superseding else EVERYTHING,
            rows_written=len(step.rows),
            live_rows=step.live_rows,
            whole=True,
        )

    def expect(self, work: Work) -> Expected:
        raise NotImplementedError


# --- its steps ---


def on(day: int) -> date:
    return date(2024, 1, day)


def row(account: str | None, day: int, amount: int, key: int, epoch: int = 0) -> Row:
    return (account, on(day), amount, epoch, key, False, "row", None)


def head(account: str | None, key: int, epoch: int = 0, status: str = "CURRENT", *, old: bool = False) -> Row:
    watermark = on(3) if status == "FAILED" else None
    return (account, None, None, epoch, key, True, "head", (watermark, status, None, key if old else None))


def superseded(account: str | None, day: int, amount: int, key: int, by: int, epoch: int = 0) -> Row:
    return (account, on(day), amount, epoch, None, True, "epoch", (None, None, by, key))


SAME_HASH = 12
"""The hash of account A on the second day, and of account B on it too."""
STEPS = (
    Step(
        rows=(
            row("A", 1, 10, 11), row("A", 2, 20, SAME_HASH), row("A", 3, 30, 13), head("A", 10),
            row("B", 1, 1, 21), row("B", 2, 2, SAME_HASH), head("B", 20),
            row(None, 2, 7, 31), head(None, 30),
        ),
        live_rows=6,
    ),
    Step(
        rows=(
            row("A", 2, 25, SAME_HASH, epoch=1), superseded("A", 2, 20, SAME_HASH, by=1),
            row("A", 4, 40, 14, epoch=1), head("A", 10, epoch=1, old=True),
            superseded(None, 2, 7, 31, by=1), head(None, 30, epoch=1, old=True),
        ),
        superseding=Superseding(key=("account",), dates=((on(2), on(2)),)),
        live_rows=6,
    ),
    Step(
        rows=(head("B", 20, status="FAILED", old=True),),
        superseding=Superseding(key=("account",)),
        live_rows=6,
    ),
)  # fmt: skip
ROWS = (
    {("A", on(1), 10, 0), ("A", on(2), 20, 0), ("A", on(3), 30, 0), ("B", on(1), 1, 0), ("B", on(2), 2, 0),
     (None, on(2), 7, 0)},
    {("A", on(1), 10, 0), ("A", on(2), 25, 1), ("A", on(3), 30, 0), ("A", on(4), 40, 1), ("B", on(1), 1, 0),
     ("B", on(2), 2, 0)},
)  # fmt: skip
"""What readers see after the first and the second step. The third changes a head alone."""
STATE = {("A", 1, None, "CURRENT"), ("B", 0, on(3), "FAILED"), (None, 1, None, "CURRENT")}
EPOCHS = {("A", on(2), 20, 0, 1), (None, on(2), 7, 0, 1)}


# --- a lake in which they were written ---

YAML = """
    project: bank
    sources:
      events: {files: "data/*.jsonl"}
    ledgers:
      accounts: {of: events}
    jobs:
      - name: totals
        input_datasets: [accounts]
        output_dataset: totals
        incremental: {mode: keyed, key: [account]}
        sql: SELECT account, sum(amount) AS total FROM accounts GROUP BY account
"""


@dataclass(frozen=True)
class Bank(TestProject):
    __test__ = False

    @property
    def table(self) -> str:
        return str(self.folder / ".strandline" / "lake" / "accounts")

    def entries(self) -> list[LogEntry]:
        return list(read_entries(self.table, -1))

    def maintain(self, keep: timedelta) -> Maintained:
        with open_workspace(self.folder) as workspace:
            project = replace(workspace.project, settings=replace(workspace.project.settings, keep=keep))
            (done,) = maintain_tables(replace(workspace, project=project), "accounts", lambda _: None).tables
        assert not done.error, done.error
        return done


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bank]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sections, "SECTIONS", (*sections.SECTIONS, LEDGERS))
        patched.setitem(WORKERS, Ledger.kind, Script(STEPS))
        made = Bank(TestProject.create(tmp_path_factory.mktemp("bank"), YAML).folder)
        for nth, _ in enumerate(STEPS):
            made.lines(f"data/{nth}.jsonl", {"step": nth})
            made.run()
        yield made


@pytest.fixture
def workspace(bank: Bank) -> Iterator[Workspace]:
    with open_workspace(bank.folder) as opened:
        yield opened


@pytest.fixture(scope="module")
def session() -> SparkSession:
    return get_session(Settings(lake="", catalog="", spark_master="local[2]", spark_conf={}))


def test_each_task_is_one_commit_with_its_token_and_metadata(bank: Bank) -> None:
    entries = bank.entries()

    operations = [e.metadata.operation for e in entries if e.metadata]
    assert operations == [Operation.OVERWRITE, Operation.REPLACE_KEYS, Operation.REPLACE_KEYS]
    assert [e.tokens["accounts"] for e in entries] == [e.metadata.token for e in entries if e.metadata]
    assert get_table(bank.table).partitioned_by == (DELETED, ROLE)


def test_a_row_is_replaced_by_the_one_that_names_it_and_no_other(bank: Bank) -> None:
    assert bank.rows("accounts") == ROWS[1]
    assert bank.rows("accounts_state") == STATE
    assert bank.rows("accounts_epochs") == EPOCHS


def test_files_of_other_dates_and_superseded_rows_are_not_touched(bank: Bank) -> None:
    """A commit names the files of which it removes rows, by their new deletion vectors."""
    log = sorted((Path(bank.table) / "_delta_log").glob("*.json"))
    removed = [
        [json.loads(line)["remove"]["path"].rpartition("/")[0] for line in file.read_text().splitlines()
         if "remove" in json.loads(line)]
        for file in log
    ]  # fmt: skip

    assert set(removed[1]) == {"_deleted=false/_role=row", "_deleted=true/_role=head"}
    assert set(removed[2]) == {"_deleted=true/_role=head"}


def test_rows_are_counted_without_heads_and_superseded_rows(bank: Bank, workspace: Workspace) -> None:
    table = get_table(bank.table)
    observed = workspace.observe()

    assert table.live_rows == 6
    assert table.rows == 8, "by statistics: two rows are hidden by deletion vectors"
    assert get_table(bank.table, 0).rows == 6
    assert observed.tables["accounts"].rows == 8
    assert [e.summary().rows_added for e in bank.entries()] == [6, 2, 0]
    assert count_added(bank.table, 0, 2) == 2
    assert observed.view.nodes["accounts"].row_count == 6
    assert {d.dataset: d.rows for d in read_status(workspace)[0]}["accounts"] == 6


def test_readers_get_changes_of_live_rows_alone(
    bank: Bank, workspace: Workspace, session: SparkSession
) -> None:
    feed = read_feed(session, workspace.lake, "accounts", 0, 2)

    changes = {(r[SIGN], r["account"], r["date"], r["amount"]) for r in feed.collect()}
    assert changes == {
        (-1, "A", on(2), 20),
        (1, "A", on(2), 25),
        (1, "A", on(4), 40),
        (-1, None, on(2), 7),
    }
    assert bank.rows("totals") == {("A", 105), ("B", 3)}
    bank.assert_verified("totals")


def test_both_engines_read_the_same_rows_at_every_version(
    workspace: Workspace, session: SparkSession, tmp_path: Path
) -> None:
    small = SmallTables(lake=workspace.lake, folder=str(tmp_path))

    for version in range(3):
        by_spark = read_table(session, workspace.lake, "accounts", version)
        by_delta_rs = small.find(session, "accounts", version)

        assert by_delta_rs is not None
        assert by_delta_rs.columns == by_spark.columns
        assert sorted(map(str, by_delta_rs.collect())) == sorted(map(str, by_spark.collect()))


def test_rows_are_read_from_added_files_with_their_partition(
    workspace: Workspace, session: SparkSession
) -> None:
    expected = [(r[4], str(r[5]).lower(), r[6]) for r in STEPS[1].rows]

    by_spark = read_added(session, workspace.lake, "accounts", 0, 1)
    by_arrow = read_added_rows(workspace.lake, "accounts", 0, 1, ["_key", DELETED, ROLE])

    rows = [(r["_key"], str(r[DELETED]).lower(), r[ROLE]) for r in by_spark.collect()]
    assert sorted(rows, key=str) == sorted(expected, key=str)
    assert sorted((tuple(r.values()) for r in by_arrow.to_pylist()), key=str) == sorted(expected, key=str)


def test_the_past_of_each_part_can_be_queried(workspace: Workspace) -> None:
    first = parse_known_at(workspace.project, "accounts_state=0")

    assert set(query(workspace, "select * from accounts", KnownAt(versions={"accounts": 0})).rows) == ROWS[0]
    state = query(workspace, "select account, epoch, status from accounts_state", first)
    assert set(state.rows) == {("A", 0, "CURRENT"), ("B", 0, "CURRENT"), (None, 0, "CURRENT")}
    assert state.version == {"accounts": 0}
    assert query(workspace, "select * from accounts_epochs", first).rows == ()
    then = KnownAt(at=datetime.now(UTC), versions={})
    assert set(query(workspace, "select * from accounts_epochs", then).rows) == EPOCHS


def test_spark_gives_the_same_parts(workspace: Workspace) -> None:
    for name, rows in (("accounts_state", STATE), ("accounts_epochs", EPOCHS), ("accounts", ROWS[1])):
        by_spark = query_spark(workspace, f"select * from {name}", None)

        assert set(by_spark.rows) == rows
        assert by_spark.columns == query(workspace, f"select * from {name}").columns


def test_a_null_of_a_part_stands_for_what_the_caller_says(workspace: Workspace) -> None:
    sql = "select account, watermark_on from accounts_state where watermark_on >= date '2024-01-04'"
    pinned = pin_tables(workspace, sql, None)

    tables = tuple(replace(table, defaults={"watermark_on": on(5)}) for table in pinned)

    assert set(query_pinned(workspace.project, sql, tables).rows) == {("A", on(5)), (None, on(5))}


def test_a_name_that_is_nearly_that_of_a_part_is_mended(workspace: Workspace) -> None:
    with pytest.raises(CallError, match="Did you mean `accounts_epochs`") as refused:
        query(workspace, "select * from accounts_epoch")

    assert refused.value.slug == "unknown-table"


def test_a_catalog_is_filled_again_from_its_log(bank: Bank) -> None:
    rebuild_catalog(bank.folder)

    with open_workspace(bank.folder) as workspace:
        assert workspace.observe().view.nodes["accounts"].row_count == 6
    assert [t.node for t in bank.plan().tasks] == ["totals"], (
        "no commit says that it saw the change of a head"
    )
    assert [r.status for r in bank.run().results] == [Status.UNCHANGED]


def test_damage_in_a_partition_is_found(bank: Bank) -> None:
    """Nothing is found where nothing is wrong, and a hidden-looking folder hides nothing."""
    live = {file.path for file in read_files(bank.table, -1).live}
    path = next(p for p in sorted(live) if p.startswith("_deleted=true/_role=epoch"))
    file = Path(bank.table) / path
    written = file.read_bytes()

    assert not find_wrong(bank)
    try:
        file.write_bytes(written[:50] + bytes([written[50] ^ 1]) + written[51:])
        damaged = find_wrong(bank)
        with pytest.raises(OutsideError) as refused:
            bank.rows("accounts_epochs")
        file.unlink()
        missing = find_wrong(bank)
    finally:
        file.write_bytes(written)

    assert damaged == [("files", f"`accounts`: file {path} does not have the bytes that were written.")]
    assert refused.value.slug == "file-damaged"
    assert missing == [("files", f"`accounts`: file {path} is missing.")]
    assert not find_wrong(bank)


def find_wrong(bank: Bank) -> list[tuple[str, str]]:
    return [(f.check, f.what) for f in examine(bank.folder, deep=True) if f.result is Result.WRONG]


def test_a_table_is_compacted_and_cleaned_by_partition(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    orphan = Path(bank.table) / "_deleted=false" / "_role=row" / "part-orphan.parquet"
    orphan.write_bytes(b"nobody named it")

    compacted = bank.maintain(timedelta(days=30))

    assert compacted.files_after == 3 < compacted.files_before
    assert (compacted.removed_files, orphan.exists()) == (0, True), "somebody may be writing it"
    parts = (bank.rows("accounts"), bank.rows("accounts_state"), bank.rows("accounts_epochs"))
    assert parts == (ROWS[1], STATE, EPOCHS)
    assert get_table(bank.table).rows == get_table(bank.table).live_rows == 6
    assert bank.plan().tasks == ()
    with monkeypatch.context() as patched:
        patched.setattr("strandline.app.maintain.open_lake", lambda *_: pytest.fail("Spark was asked"))
        bank.maintain(timedelta(days=30))

    cleaned = bank.maintain(timedelta(0))

    assert "`totals` has read it up to version 2" in cleaned.kept_because
    assert {file.path for file in list_stored(bank.table)} == read_files(bank.table, 2).needed
    assert cleaned.removed_files > 0
    assert not orphan.exists()
    parts = (bank.rows("accounts"), bank.rows("accounts_state"), bank.rows("accounts_epochs"))
    assert parts == (ROWS[1], STATE, EPOCHS)
    assert not find_wrong(bank)
