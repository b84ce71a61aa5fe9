"""The primitives of the lake: each write is one commit with token and metadata; reads are exact."""

import json
import os
import random
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from strandline.lake import writes
from strandline.lake.ahead import find_snapshot, take_tokens
from strandline.lake.location import Lake
from strandline.lake.log import LogEntry, list_versions, read_entries
from strandline.lake.reads import SIGN, read_added, read_feed, read_table
from strandline.lake.small import SmallTables
from strandline.lake.staging import find_counts, read_counts, stage
from strandline.lake.state import read_token
from strandline.lake.table import get_table
from strandline.lake.writes import Ticket
from strandline.model.commits import CommitMetadata, Operation
from strandline.model.errors import ConflictError, OutsideError
from strandline.model.metadata import to_json
from strandline.model.project import Settings
from strandline.model.scope import Keys
from strandline.model.scope_json import scope_to_json
from strandline.model.thresholds import Thresholds
from strandline.spark.session import get_session

pytestmark = pytest.mark.spark

SCHEMA = "_key bigint, id string, value int, rank int, _deleted boolean"
Rows = list[tuple[object, ...]]
START: Rows = [(1, "a", 10, 0, False), (2, "b", 20, 0, False), (3, "c", 30, 0, True)]


@pytest.fixture(scope="module")
def session() -> SparkSession:
    return get_session(Settings(lake="", catalog="", spark_master="local[2]", spark_conf={}))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(root=str(tmp_path / "lake"))


def metadata(token: int, operation: Operation = Operation.APPEND) -> CommitMetadata:
    return CommitMetadata.bare(run="run", node="t", token=token, operation=operation, as_of="")


def ticket(token: int, operation: Operation = Operation.APPEND) -> Ticket:
    return Ticket(dataset="t", token=token, metadata=to_json(metadata(token, operation)))


def frame(session: SparkSession, rows: Rows, schema: str = SCHEMA) -> DataFrame:
    return session.createDataFrame(rows, schema)


def start(session: SparkSession, lake: Lake) -> None:
    writes.overwrite(frame(session, START), lake, ticket(1, Operation.OVERWRITE))


def rows_of(session: SparkSession, lake: Lake) -> list[tuple[object, ...]]:
    return sorted(tuple(r) for r in session.read.format("delta").load(lake.table("t")).collect())


def newest(lake: Lake) -> LogEntry:
    return list(read_entries(lake.table("t"), -1))[-1]


def _append(session: SparkSession, lake: Lake, token: int, rows: DataFrame | None = None) -> None:
    writes.append(frame(session, [(4, "d", 40, 0, False)]) if rows is None else rows, lake, ticket(token))


def _insert_new(session: SparkSession, lake: Lake, token: int, rows: DataFrame | None = None) -> None:
    source = (
        frame(session, [(4, None, 40, 0, False), (4, None, 40, 0, False), (1, "a", 99, 0, False)])
        if rows is None
        else rows
    )
    own = session.read.format("delta").option("versionAsOf", 0).load(lake.table("t"))
    writes.insert_new(writes.only_new(source, own, ["_key", "id"]), lake, ticket(token, Operation.INSERT_NEW))


def _replace_keys(session: SparkSession, lake: Lake, token: int, rows: DataFrame | None = None) -> None:
    source = (
        frame(session, [(2, "b", 21, 0, False), (2, "b", 22, 0, False), (4, "d", 40, 0, False)])
        if rows is None
        else rows
    )
    writes.replace_keys(source, lake, ticket(token, Operation.REPLACE_KEYS))


def _replace_partitions(session: SparkSession, lake: Lake, token: int, rows: DataFrame | None = None) -> None:
    source = (
        frame(session, []) if rows is None else rows
    )  # no rows: those that match the condition are removed (L4)
    writes.replace_where(source, lake, ticket(token, Operation.REPLACE_PARTITIONS), condition="value >= 20")


def _overwrite(session: SparkSession, lake: Lake, token: int, rows: DataFrame | None = None) -> None:
    writes.overwrite(
        frame(session, [(9, "z", 90, 0, False)]) if rows is None else rows,
        lake,
        ticket(token, Operation.OVERWRITE),
    )


def _purge(session: SparkSession, lake: Lake, token: int, rows: DataFrame | None = None) -> None:
    writes.purge(session, lake, ticket(token, Operation.PURGE))


def _fence(session: SparkSession, lake: Lake, token: int, rows: DataFrame | None = None) -> None:
    writes.commit_nothing(session, lake, ticket(token, Operation.FENCE))


Primitive = Callable[[SparkSession, Lake, int, DataFrame | None], None]
A, B, C = START
EXPECTED: dict[Primitive, Rows] = {
    _append: [A, B, C, (4, "d", 40, 0, False)],
    _insert_new: [A, B, C, (4, None, 40, 0, False)],
    _replace_keys: [A, (2, "b", 21, 0, False), (2, "b", 22, 0, False), C, (4, "d", 40, 0, False)],
    _replace_partitions: [A],
    _overwrite: [(9, "z", 90, 0, False)],
    _purge: [A, B],
    _fence: [A, B, C],
}


@pytest.mark.parametrize("write", EXPECTED, ids=lambda w: w.__name__.strip("_"))
def test_a_write_is_one_commit_with_token_and_metadata_and_an_old_token_changes_nothing(
    session: SparkSession, lake: Lake, write: Primitive
) -> None:
    """L6 and L7: data and state are one commit. The storage skips a token that is not above the table's."""
    start(session, lake)

    write(session, lake, 7, None)

    assert list_versions(lake.table("t")) == [0, 1]
    assert rows_of(session, lake) == sorted(EXPECTED[write], key=lambda r: (r[0], r[2]))
    entry = newest(lake)
    assert entry.tokens == {"t": 7}
    assert entry.metadata is not None
    assert (entry.metadata.task, entry.metadata.token) == ("run/t/7", 7)
    assert read_token(lake, "t") == 7
    assert entry.changes_rows is (write not in (_purge, _fence))

    write(session, lake, 7, None)
    write(session, lake, 3, None)

    assert list_versions(lake.table("t")) == [0, 1], "an equal and a smaller token were skipped"
    assert read_token(lake, "t") == 7


def count_jobs(session: SparkSession) -> int:
    return int(session.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


def forget_tables(session: SparkSession) -> None:
    assert session.sparkContext._jvm is not None
    session.sparkContext._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def test_which_tokens_a_table_has_seen_is_read_beside_its_log_without_a_job(
    session: SparkSession, lake: Lake
) -> None:
    """L7: they are those that Delta finds by a job over the log."""
    start(session, lake)
    _append(session, lake, 5)
    staged = stage(frame(session, [(4, "d", 40, 0, False)]), f"{lake.root}/rows", {"n": F.count(F.lit(1))})
    forget_tables(session)
    before = count_jobs(session)

    take_tokens(session, lake.table("t"))

    snapshot = find_snapshot(session, lake.table("t"))
    taken = {name: snapshot.transactions().apply(name) for name in ("t",)}
    assert count_jobs(session) == before
    by_job = snapshot.setTransactions()
    assert count_jobs(session) > before
    found = [by_job.apply(nth) for nth in range(by_job.length())]
    assert taken == {one.appId(): one.version() for one in found} == {"t": 5}
    assert snapshot.transactions().size() == 1

    forget_tables(session)
    before = count_jobs(session)
    writes.append(staged.read(session), lake, ticket(6))
    assert count_jobs(session) == before + 1, "the one that writes the rows"
    assert newest(lake).tokens == {"t": 6}


def test_without_sums_beside_the_log_a_commit_looks_for_the_tokens_itself(
    session: SparkSession, lake: Lake
) -> None:
    start(session, lake)
    _append(session, lake, 5)
    for file in (Path(lake.table("t")) / "_delta_log").glob("*.crc"):
        file.unlink()
    forget_tables(session)

    _append(session, lake, 5)
    _append(session, lake, 6)

    assert list_versions(lake.table("t")) == [0, 1, 2]
    assert read_token(lake, "t") == 6


def test_insert_new_keys_are_null_safe_against_the_table_and_among_themselves(
    session: SparkSession, lake: Lake
) -> None:
    """L5: a NULL in a unique key does not make rows distinct."""
    writes.append(frame(session, [(0, None, 1, 0, False), (0, "x", 1, 0, False)]), lake, ticket(1))
    again = frame(
        session, [(0, None, 2, 0, False), (0, "x", 2, 0, False), (0, "y", 2, 0, False), (0, "y", 2, 0, False)]
    )

    own = session.read.format("delta").load(lake.table("t"))
    writes.insert_new(writes.only_new(again, own, ["id"]), lake, ticket(2, Operation.INSERT_NEW))

    rows = session.read.format("delta").load(lake.table("t")).select("id", "value").collect()
    assert {tuple(r) for r in rows} == {(None, 1), ("x", 1), ("y", 2)}
    assert len(rows) == 3


def test_tables_have_the_properties_they_are_promised_with(session: SparkSession, lake: Lake) -> None:
    """L1: the storage itself refuses to change what was received."""
    writes.append(
        frame(session, START), lake, Ticket(dataset="received", token=1, metadata=""), received=True
    )
    writes.append(frame(session, START), lake, ticket(1))

    received = get_table(lake.table("received")).properties
    owned = get_table(lake.table("t")).properties

    for table in (received, owned):
        assert table["delta.enableChangeDataFeed"] == table["delta.enableInCommitTimestamps"] == "true"
        assert table["delta.logRetentionDuration"] == "interval 36500 days"
    assert received["delta.appendOnly"] == "true"
    assert (owned["delta.enableDeletionVectors"], owned["delta.isolationLevel"]) == ("true", "Serializable")
    assert "delta.appendOnly" not in owned
    with pytest.raises(Exception, match="DELTA_CANNOT_MODIFY_APPEND_ONLY"):
        session.sql(f"DELETE FROM delta.`{lake.table('received')}` WHERE value = 10")
    assert list_versions(lake.table("received")) == [0]


def test_tasks_are_not_sent_the_settings_of_yarn(session: SparkSession, lake: Lake) -> None:
    """Every scan and write of files sends Hadoop's settings, and half of them were YARN's."""
    start(session.newSession(), lake)
    assert rows_of(session, lake)

    left = session.sparkContext._jsc.hadoopConfiguration()

    assert left.getValByRegex("^yarn").isEmpty()
    assert left.size() > 100


class Gate:
    """A source of rows that signals when Spark reads it, and then waits.

    At that moment the writer's transaction is open.
    """

    def __init__(self, folder: Path) -> None:
        self.reached, self.go = folder / "reached", folder / "go"

    def rows(self, session: SparkSession, rows: Rows) -> DataFrame:
        reached, go = str(self.reached), str(self.go)

        def wait(given: Iterable[tuple[object, ...]]) -> Iterator[tuple[object, ...]]:
            import time
            from pathlib import Path

            Path(reached).touch()
            for _ in range(3000):
                if Path(go).exists():
                    break
                time.sleep(0.01)
            yield from given

        return session.createDataFrame(session.sparkContext.parallelize(rows, 1).mapPartitions(wait), SCHEMA)

    def race(self, slow: Callable[[], None], quick: Callable[[], None]) -> BaseException | None:
        """Let `quick` happen in the middle of `slow`. Returns what `slow` raised."""
        raised: list[BaseException] = []

        def work() -> None:
            try:
                slow()
            except BaseException as error:  # noqa: BLE001 the test looks at it
                raised.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        for _ in range(3000):
            if self.reached.exists() or not thread.is_alive():
                break
            threading.Event().wait(0.01)
        assert self.reached.exists(), f"the source was never read: {raised}"
        quick()
        self.go.touch()
        thread.join(60)
        assert not thread.is_alive()
        return raised[0] if raised else None


@pytest.mark.parametrize("write", [_replace_partitions, _overwrite], ids=lambda w: w.__name__.strip("_"))
def test_a_replace_that_raced_another_commit_is_refused(
    session: SparkSession, lake: Lake, tmp_path: Path, write: Primitive
) -> None:
    """Step 4 of the commit protocol: Delta's Serializable isolation refuses it, even against an append."""
    start(session, lake)
    gate = Gate(tmp_path)
    mine = gate.rows(session, [(2, "b", 25, 0, False)])
    theirs = frame(session, [(2, "b", 77, 0, False)])

    refused = gate.race(
        lambda: write(session, lake, 7, mine),
        lambda: theirs.write.format("delta").mode("append").save(lake.table("t")),
    )

    assert isinstance(refused, ConflictError), refused
    assert list_versions(lake.table("t")) == [0, 1], "theirs alone"
    assert (2, "b", 77, 0, False) in rows_of(session, lake)
    assert (2, "b", 25, 0, False) not in rows_of(session, lake)
    assert read_token(lake, "t") == 1


def test_a_replace_of_keys_that_raced_another_commit_is_refused(
    session: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    """The same for `replaceOn`, which reads its source before its transaction begins.

    A gate in the source would therefore open too early. The other commit is prepared on a copy of the table.
    It is put in place once the first file of ours exists, because by then ours has read the table.
    """
    start(session, lake)
    table, copy = Path(lake.table("t")), tmp_path / "copy"
    shutil.copytree(table, copy)
    frame(session, [(2, "b", 77, 0, False)]).write.format("delta").mode("append").save(str(copy))
    for theirs in copy.glob("*.parquet"):
        shutil.copy2(theirs, table)
    raised: list[Exception] = []

    def work() -> None:
        try:
            _replace_keys(session, lake, 7, frame(session, [(2, "b", 25, 0, False)]))
        except Exception as error:  # noqa: BLE001 the test looks at it
            raised.append(error)

    before = set(table.iterdir())
    thread = threading.Thread(target=work)
    thread.start()
    wait_until(lambda: set(table.iterdir()) != before)
    os.link(copy / "_delta_log" / f"{1:020}.json", table / "_delta_log" / f"{1:020}.json")
    thread.join(60)

    assert [type(error) for error in raised] == [ConflictError], raised
    assert list_versions(lake.table("t")) == [0, 1], "theirs alone"
    assert rows_of(session, lake) == sorted([*START, (2, "b", 77, 0, False)])
    assert read_token(lake, "t") == 1


def wait_until(happened: Callable[[], bool]) -> None:
    for _ in range(60_000):
        if happened():
            return
        threading.Event().wait(0.001)
    pytest.fail("it did not happen within a minute")


def test_a_purge_leaves_what_an_earlier_commit_of_another_wrote(session: SparkSession, lake: Lake) -> None:
    """A purge does not read a source, so it cannot be interrupted in the middle.

    It uses the table as its own transaction sees it.
    """
    start(session, lake)
    theirs = frame(session, [(5, "e", 50, 0, False), (6, "f", 60, 0, True)])
    theirs.write.format("delta").mode("append").save(lake.table("t"))

    _purge(session, lake, 7)

    assert rows_of(session, lake) == [A, B, (5, "e", 50, 0, False)]


def test_a_writer_in_flight_is_refused_once_a_newer_token_stands(
    session: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    """L7: a zombie that is already writing when the fence lands cannot commit, not even an append."""
    start(session, lake)
    gate = Gate(tmp_path)
    zombie = gate.rows(session, [(8, "zombie", 1, 0, False)])

    refused = gate.race(lambda: _append(session, lake, 5, zombie), lambda: _fence(session, lake, 6))

    assert isinstance(refused, ConflictError), refused
    assert newest(lake).tokens == {"t": 6}
    assert rows_of(session, lake) == START


def changes(session: SparkSession, lake: Lake, after: int, upto: int) -> list[tuple[object, ...]]:
    feed = read_feed(session, lake, "t", after, upto)
    return sorted(tuple(r) for r in feed.select("id", "value", SIGN).collect())


def test_the_feed_gives_net_changes_across_rewrites_purges_and_compaction(
    session: SparkSession, lake: Lake
) -> None:
    """L2 downstream: each removed and added row is read once, whatever the commits did to the files."""
    schema = "_key bigint, id string, value int, _source_at int, _deleted boolean"

    def put(token: int, rows: Rows) -> None:
        writes.replace_keys(frame(session, rows, schema), lake, ticket(token, Operation.REPLACE_KEYS))

    first: Rows = [(1, "a", 10, 0, False), (2, "b", 20, 0, False), (3, "c", 30, 0, False)]
    writes.overwrite(frame(session, first, schema), lake, ticket(1, Operation.OVERWRITE))  # version 0
    put(2, [(1, "a", 10, 5, False)])  # 1: only a rank moves
    put(3, [(2, "b", 21, 1, False)])  # 2: a value moves
    put(4, [(3, None, None, 1, True)])  # 3: a key vanishes
    _purge(session, lake, 5)  # 4
    session.sql(f"OPTIMIZE delta.`{lake.table('t')}`")  # 5
    put(6, [(2, "b", 20, 2, False), (4, "d", 40, 0, False)])  # 6: a value moves back, a key comes

    assert list_versions(lake.table("t"))[-1] == 6
    assert changes(session, lake, 0, 1) == []
    assert changes(session, lake, 0, 2) == [("b", 20, -1), ("b", 21, 1)]
    assert changes(session, lake, 2, 3) == [("c", 30, -1)]
    assert changes(session, lake, 3, 5) == [], "a purge and a compaction are nothing to a reader"
    assert changes(session, lake, 0, 6) == [("c", 30, -1), ("d", 40, 1)], "there and back again is no change"
    assert changes(session, lake, -1, 6) == [("a", 10, 1), ("b", 20, 1), ("d", 40, 1)]


def test_added_rows_are_those_of_the_range_and_compaction_gives_none_twice(
    session: SparkSession, lake: Lake
) -> None:
    """L10: each accepted fact counts once, even where OPTIMIZE moved it to another file.

    A column that is added later is NULL in older rows.
    """
    schema = "id string, value int"
    writes.append(frame(session, [("a", 1)], schema), lake, ticket(1))  # 0
    writes.append(frame(session, [("b", 2), ("b", 2)], schema), lake, ticket(2))  # 1
    _fence(session, lake, 3)  # 2
    session.sql(f"OPTIMIZE delta.`{lake.table('t')}`")  # 3
    writes.append(frame(session, [("c", 3, "new")], f"{schema}, more string"), lake, ticket(4))  # 4

    def added(after: int, upto: int) -> list[tuple[object, ...]]:
        return sorted(tuple(r) for r in read_added(session, lake, "t", after, upto).collect())

    assert added(-1, 0) == [("a", 1)]
    assert added(0, 3) == [("b", 2), ("b", 2)]
    assert added(1, 3) == []
    assert added(-1, 4) == [("a", 1, None), ("b", 2, None), ("b", 2, None), ("c", 3, "new")]
    assert added(3, 4) == [("c", 3, "new")]


WIDE = (
    "_key bigint, k string, n bigint, price decimal(38,9), at timestamp, day date, ok boolean, x double, "
    "raw binary, "
    "place struct<name:string,part:int,deep:struct<n:bigint>>, tags array<string>, _deleted boolean"
)


def random_row(chance: random.Random, key: int) -> tuple[object, ...]:
    def maybe(value: object) -> object:
        return None if chance.random() < 0.25 else value

    return (
        key,
        maybe(chance.choice(["", "a", "ü'\"\n", "NULL"])),
        maybe(chance.choice([0, -(2**63), 2**63 - 1, 9007199254740993])),
        maybe(Decimal(chance.randint(-(10**28), 10**28)).scaleb(-9)),
        maybe(
            datetime(
                chance.choice([1900, 1969, 2024, 9999]),
                2,
                28,
                23,
                59,
                59,
                chance.randint(0, 999_999),
                tzinfo=UTC,
            )
        ),
        maybe(datetime(chance.choice([1, 1582, 2024]), 12, 31, tzinfo=UTC).date()),
        maybe(chance.random() < 0.5),
        maybe(chance.choice([0.1, -0.0, 1e300, float("inf")])),
        maybe(bytes([0, 255])),
        maybe((maybe("p"), maybe(chance.randint(0, 9)), maybe((chance.randint(0, 9),)))),
        maybe([maybe("t"), "u"]),
        chance.random() < 0.2,
    )


def test_small_tables_give_what_spark_reads_at_every_version_of_a_random_table(
    session: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L2 on every read path: delta-rs applies deletion vectors, NULLs and types as Spark does.

    The same holds where some keys are looked up.
    """
    chance = random.Random(7)
    writes.overwrite(
        frame(session, [random_row(chance, k) for k in range(20)], WIDE), lake, ticket(1, Operation.OVERWRITE)
    )
    for token in range(2, 8):
        rows = [
            random_row(chance, k) for k in chance.sample(range(26), 5) for _ in range(chance.randint(1, 2))
        ]
        writes.replace_keys(
            frame(session, rows, WIDE).coalesce(1), lake, ticket(token, Operation.REPLACE_KEYS)
        )
    _purge(session, lake, 8)
    session.sql(f"OPTIMIZE delta.`{lake.table('t')}`")
    versions = list_versions(lake.table("t"))
    small = SmallTables(lake=lake, folder=f"{lake.root}/_staging/small")

    assert any(
        "deletionVector" in path.read_text() for path in Path(lake.table("t"), "_delta_log").glob("*.json")
    )
    rows_at = {}
    for version in versions:
        by_spark = read_table(session, lake, "t", version)
        rows_at[version] = by_spark.collect()
        by_delta_rs = small.find(session, "t", version)
        assert by_delta_rs is not None
        assert by_delta_rs.schema.simpleString() == by_spark.schema.simpleString()
        assert sorted(map(repr, by_delta_rs.collect())) == sorted(map(repr, rows_at[version])), (
            f"version {version}"
        )
    assert small.find_rows(session, "t", versions[-1], "_key", [1]) is None, "it is small: read once for all"
    middling = replace(small, thresholds=Thresholds(small_table_bytes=10))
    for version in versions:
        wanted = [*chance.sample(range(26), 6), 99]
        listed = ", ".join(map(str, wanted))
        by_key = middling.find_rows(session, "t", version, "_key", wanted)
        by_condition = middling.find_where(session, "t", version, "_key", f'"_key" IN ({listed})')
        for looked_up in (by_key, by_condition):
            assert looked_up is not None
            assert looked_up.schema.simpleString() == by_spark.schema.simpleString()
            assert sorted(map(repr, looked_up.collect())) == sorted(
                repr(r) for r in rows_at[version] if r["_key"] in wanted
            ), f"version {version}"
    live = read_table(session, lake, "t", versions[-1]).where(~F.col("_deleted")).count()
    assert get_table(lake.table("t")).live_rows == live


def test_a_large_table_is_left_to_spark(session: SparkSession, lake: Lake) -> None:
    start(session, lake)
    thresholds = Thresholds(small_table_bytes=10, looked_up_table_bytes=20)
    tables = SmallTables(lake=lake, folder=f"{lake.root}/_staging/small", thresholds=thresholds)

    assert tables.find(session, "t", 0) is None
    assert tables.find_rows(session, "t", 0, "_key", [1]) is None


def test_metadata_reads_back_from_the_log_whatever_it_holds(session: SparkSession, lake: Lake) -> None:
    """L6: quotes, line breaks and other scripts survive Spark's options and Delta's log."""
    written = replace(
        metadata(1, Operation.OVERWRITE),
        scope=Keys(count=2, of="a'b\"c\\d\ne, `x` = ü € 鍵 ${x} {y}"),
        counts={"offered": 2**53 + 1},
    )

    writes.overwrite(frame(session, START), lake, Ticket(dataset="t", token=1, metadata=to_json(written)))

    assert newest(lake).metadata == written
    assert json.loads(to_json(written))["scope"] == scope_to_json(written.scope)


def test_staged_rows_are_counted_also_where_there_are_none(session: SparkSession, tmp_path: Path) -> None:
    counts = {"rows": F.count(F.lit(1)), "sum": F.sum("id")}
    rows = session.range(10).groupBy("id").count()
    assert stage(rows, f"{tmp_path}/some", counts, F.col("id") > 7).counts == {"rows": 10, "sum": 45}
    assert stage(rows.where("id > 100"), f"{tmp_path}/none", counts).counts == {"rows": 0, "sum": 0}


def test_counts_that_spark_lost_are_an_error_and_not_taken_for_no_rows_l13(
    session: SparkSession, tmp_path: Path
) -> None:
    """Adaptive planning drops a counter below an empty stage, although ten rows were counted."""
    session.range(10).write.parquet(f"{tmp_path}/rows")
    counter = Observation()
    counted = session.read.parquet(f"{tmp_path}/rows").observe(counter, F.count(F.lit(1)).alias("rows"))
    counted.where("id > 100").groupBy("id").count().join(session.range(3), "id").write.parquet(
        f"{tmp_path}/none"
    )
    assert find_counts(counter) is None
    with pytest.raises(OutsideError) as raised:
        read_counts(counter, ["rows"])
    assert raised.value.slug == "counts-lost"
