"""The plain table log and Delta through Spark behave alike, so a proof on one holds on the other."""

import os
import shutil
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from strandline.lake import writes
from strandline.lake.location import Lake
from strandline.lake.log import LogEntry, list_versions, read_entries
from strandline.lake.state import find_state, read_token
from strandline.lake.table import get_table
from strandline.lake.writes import Ticket
from strandline.model.commits import CommitMetadata, Operation
from strandline.model.errors import ConflictError
from strandline.model.metadata import to_json
from strandline.model.scope import Keys

from . import table_log
from .processes import all_faults
from .table_log import Rows, put_if_absent, read_snapshot

pytestmark = pytest.mark.faults

Record = tuple[int, str, int, bool]
COLUMNS = ("_key", "id", "value", "_deleted")
A, B, GONE = (1, "a", 10, False), (2, "b", 20, False), (3, "c", 30, True)


@dataclass(frozen=True)
class Plain:
    """The table log."""

    lake: Lake
    patch: pytest.MonkeyPatch

    def write(self, primitive: str, token: int, rows: Sequence[Record], keys: tuple[int, ...] = ()) -> None:
        ticket, given = _ticket(token, primitive), self._rows(rows)
        match primitive:
            case "append" | "first":
                table_log.append(given, self.lake, ticket, first=primitive == "first")
            case "replace_keys":
                table_log.replace_keys(given, self.lake, ticket)
            case "replace_where":
                table_log.replace_where(given, self.lake, ticket, lambda row: row["_key"] in keys)
            case "overwrite":
                table_log.overwrite(given, self.lake, ticket)
            case "fence":
                table_log.commit_nothing(self.lake, ticket)
            case "purge":
                table_log.purge(self.lake, ticket)
            case "compact":
                table_log.compact(self.lake, "t")
            case "foreign":
                table_log.append(given, self.lake, Ticket(dataset="t", token=0, metadata=""))

    def _rows(self, rows: Sequence[Record]) -> Rows:
        types = (pa.int64(), pa.string(), pa.int64(), pa.bool_())
        return Rows(
            schema=pa.schema(list(zip(COLUMNS, types, strict=True))),
            rows=[dict(zip(COLUMNS, r, strict=True)) for r in rows],
        )

    def rows(self) -> list[Record]:
        return sorted(tuple(r[c] for c in COLUMNS) for r in read_snapshot(self.lake.table("t")).rows())

    def race(self, slow: Callable[["Plain"], None], quick: Callable[["Plain"], None]) -> BaseException | None:
        """`quick` commits after `slow` has read the table and before it commits; what `slow` raised."""
        with self.patch.context() as patch:

            def meanwhile(*_: object) -> None:
                patch.undo()
                quick(self)

            patch.setattr(table_log, "between", meanwhile)
            return _raised(lambda: slow(self))


@dataclass(frozen=True)
class Delta:
    """Delta through Spark."""

    lake: Lake
    session: Any

    def write(self, primitive: str, token: int, rows: Sequence[Record], keys: tuple[int, ...] = ()) -> None:
        ticket = _ticket(token, primitive)
        given = self.session.createDataFrame(
            list(rows), "_key bigint, id string, value bigint, _deleted boolean"
        )
        match primitive:
            case "append" | "first":
                writes.append(given, self.lake, ticket, first=primitive == "first")
            case "replace_keys":
                writes.replace_keys(given, self.lake, ticket)
            case "replace_where":
                writes.replace_where(
                    given, self.lake, ticket, condition=f"_key IN ({', '.join(map(str, keys))})"
                )
            case "overwrite":
                writes.overwrite(given, self.lake, ticket)
            case "fence":
                writes.commit_nothing(self.session, self.lake, ticket)
            case "purge":
                writes.purge(self.session, self.lake, ticket)
            case "compact":
                self.session.sql(f"OPTIMIZE delta.`{self.lake.table('t')}`")
            case "foreign":
                given.coalesce(1).write.format("delta").mode("append").save(self.lake.table("t"))

    def rows(self) -> list[Record]:
        return sorted(
            tuple(r) for r in self.session.read.format("delta").load(self.lake.table("t")).collect()
        )

    def race(self, slow: Callable[["Delta"], None], quick: Callable[["Delta"], None]) -> BaseException | None:
        """Prepare `quick` on a copy, and put it in place once the first file of `slow` exists.

        By then `slow` has read the table.
        """
        table, copy = Path(self.lake.table("t")), Path(self.lake.table("copy/t"))
        table.mkdir(parents=True, exist_ok=True)
        shutil.copytree(table, copy)
        quick(Delta(Lake(root=self.lake.table("copy")), self.session))
        for file in copy.rglob("*.parquet"):
            if not (table / file.name).exists():
                shutil.copy2(file, table)
        shutil.copytree(
            copy, table, dirs_exist_ok=True, ignore=shutil.ignore_patterns("_delta_log", "*.parquet", "*.crc")
        )
        raised: list[BaseException | None] = []
        before = set(table.iterdir())
        newest = f"{max(list_versions(str(table)), default=-1) + 1:020}.json"
        thread = threading.Thread(target=lambda: raised.append(_raised(lambda: slow(self))))
        thread.start()
        for _ in range(60_000):
            if set(table.iterdir()) != before or not thread.is_alive():
                break
            threading.Event().wait(0.001)
        (table / "_delta_log").mkdir(exist_ok=True)
        os.link(copy / "_delta_log" / newest, table / "_delta_log" / newest)
        thread.join(60)
        assert not thread.is_alive()
        return raised[0]


def _raised(act: Callable[[], None]) -> BaseException | None:
    try:
        act()
    except BaseException as error:  # noqa: BLE001 the test looks at it
        return error
    return None


def _ticket(token: int, primitive: str) -> Ticket:
    return Ticket(dataset="t", token=token, metadata=to_json(_metadata(token, primitive)))


def _metadata(token: int, primitive: str) -> CommitMetadata:
    operation = Operation(primitive) if primitive in set(Operation) else Operation.APPEND
    bare = CommitMetadata.bare(run="run", node="t", token=token, operation=operation, as_of="")
    return replace(bare, scope=Keys(count=2, of="a'b\"c\\d\ne ü € 鍵 ${x}"), counts={"offered": 2**53 + 1})


Tables = Plain | Delta


@pytest.fixture(params=["plain", pytest.param("delta", marks=[pytest.mark.spark, all_faults])])
def tables(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tables:
    lake = Lake(root=str(tmp_path / "lake"))
    if request.param == "plain":
        return Plain(lake, monkeypatch)
    from strandline.model.project import Settings
    from strandline.spark.session import get_session

    return Delta(lake, get_session(Settings(lake="", catalog="", spark_master="local[2]", spark_conf={})))


def versions(tables: Tables) -> list[int]:
    return list_versions(tables.lake.table("t"))


def entries(tables: Tables) -> list[LogEntry]:
    return list(read_entries(tables.lake.table("t"), -1))


def start(tables: Tables) -> None:
    tables.write("overwrite", 1, [A, B, GONE])


WRITES: tuple[tuple[str, list[Record], tuple[int, ...], list[Record]], ...] = (
    ("append", [(4, "d", 40, False)], (), [A, B, GONE, (4, "d", 40, False)]),
    ("append", [], (), [A, B, GONE]),
    (
        "replace_keys",
        [(2, "b", 21, False), (2, "b", 22, False)],
        (),
        [A, (2, "b", 21, False), (2, "b", 22, False), GONE],
    ),
    ("replace_keys", [(9, "new", 1, False)], (), [A, B, GONE, (9, "new", 1, False)]),
    ("replace_where", [(1, "a", 11, False)], (1, 2), [(1, "a", 11, False), GONE]),
    ("replace_where", [], (1, 2), [GONE]),
    ("overwrite", [(5, "e", 50, False)], (), [(5, "e", 50, False)]),
    ("overwrite", [], (), []),
    ("fence", [], (), [A, B, GONE]),
    ("purge", [], (), [A, B]),
)
IDS = [f"{name} {'some' if rows else 'nothing'} {n}" for n, (name, rows, _, _) in enumerate(WRITES)]


@pytest.mark.parametrize("write", WRITES, ids=IDS)
def test_a_write_is_one_version_that_carries_its_token_and_says_what_it_is(
    tables: Tables, write: tuple[str, list[Record], tuple[int, ...], list[Record]]
) -> None:
    primitive, rows, keys, expected = write
    start(tables)

    tables.write(primitive, 5, rows, keys)

    assert versions(tables) == [0, 1]
    assert tables.rows() == expected
    newest = entries(tables)[-1]
    assert (newest.tokens, newest.metadata) == ({"t": 5}, _metadata(5, primitive))
    assert read_token(tables.lake, "t") == 5
    assert get_table(tables.lake.table("t")).live_rows == sum(not r[3] for r in expected)
    assert newest.data_change == (sorted(expected) != [A, B, GONE])
    times = [e.committed_at for e in entries(tables)]
    assert None not in times
    assert times == sorted(times, key=str)


@pytest.mark.parametrize("write", WRITES, ids=IDS)
@pytest.mark.parametrize("token", [4, 5])
def test_a_token_that_is_not_above_the_recorded_one_is_passed_over_without_a_word(
    tables: Tables, write: tuple[str, list[Record], tuple[int, ...], list[Record]], token: int
) -> None:
    primitive, rows, keys, _ = write
    start(tables)
    tables.write("fence", 5, [])

    tables.write(primitive, token, rows, keys)

    assert versions(tables) == [0, 1]
    assert tables.rows() == [A, B, GONE]
    tables.write(primitive, 6, rows, keys)
    assert versions(tables) == [0, 1, 2], "a larger one is not"


RACING: tuple[tuple[str, list[Record], tuple[int, ...]], ...] = (
    ("append", [(4, "d", 40, False)], ()),
    ("replace_keys", [(2, "b", 25, False)], ()),
    ("replace_where", [(2, "b", 25, False)], (2,)),
    ("overwrite", [(2, "b", 25, False)], ()),
)


@pytest.mark.parametrize("write", RACING, ids=lambda w: w[0])
def test_only_an_append_passes_rows_that_came_while_it_was_writing(
    tables: Tables, write: tuple[str, list[Record], tuple[int, ...]]
) -> None:
    start(tables)
    theirs = (2, "b", 77, False)

    refused = tables.race(
        lambda t: t.write(write[0], 7, write[1], write[2]), lambda t: t.write("foreign", 0, [theirs])
    )

    if write[0] == "append":
        assert refused is None
        assert versions(tables) == [0, 1, 2]
        assert tables.rows() == sorted([A, B, GONE, theirs, *write[1]])
        return
    assert isinstance(refused, ConflictError), refused
    assert versions(tables) == [0, 1], "theirs alone"
    assert tables.rows() == sorted([A, B, GONE, theirs])
    assert read_token(tables.lake, "t") == 1


@pytest.mark.parametrize("write", RACING, ids=lambda w: w[0])
@pytest.mark.parametrize("token", [3, 9], ids=["a smaller token", "a larger token"])
def test_nothing_passes_another_commit_with_a_token_of_the_same_table(
    tables: Tables, write: tuple[str, list[Record], tuple[int, ...]], token: int
) -> None:
    """L7: a writer in flight when the fence lands is refused, also an append."""
    start(tables)

    refused = tables.race(
        lambda t: t.write(write[0], 7, write[1], write[2]), lambda t: t.write("fence", token, [])
    )

    assert isinstance(refused, ConflictError), refused
    assert versions(tables) == [0, 1]
    assert tables.rows() == [A, B, GONE]
    assert read_token(tables.lake, "t") == token


@pytest.mark.parametrize("token", [3, 9], ids=["a smaller token", "a larger token"])
def test_a_table_is_made_once(tables: Tables, token: int) -> None:
    """L7: nothing can fence a table before its first commit.

    The later of two writers that would create it is refused, or skipped because of its token.
    """
    tables.write("first", 7, [A])

    refused = _raised(lambda: tables.write("first", token, [B]))

    assert refused is None if token < 7 else isinstance(refused, ConflictError), refused
    assert versions(tables) == [0]
    assert tables.rows() == [A]


@pytest.mark.parametrize("primitive", ["first", "overwrite"])
def test_a_table_that_appears_while_it_is_being_made_is_in_the_way(tables: Tables, primitive: str) -> None:
    refused = tables.race(lambda t: t.write(primitive, 7, [B]), lambda t: t.write("first", 3, [A]))

    assert isinstance(refused, ConflictError), refused
    assert versions(tables) == [0]
    assert tables.rows() == [A]


@pytest.mark.parametrize("write", RACING, ids=lambda w: w[0])
def test_a_compaction_is_in_the_way_of_replaces_alone(
    tables: Tables, write: tuple[str, list[Record], tuple[int, ...]]
) -> None:
    start(tables)
    tables.write("append", 2, [(6, "f", 60, False)])

    refused = tables.race(
        lambda t: t.write(write[0], 7, write[1], write[2]), lambda t: t.write("compact", 0, [])
    )

    assert refused is None if write[0] == "append" else isinstance(refused, ConflictError), refused
    compacted = entries(tables)[2]
    assert (compacted.metadata, compacted.data_change, compacted.removes_rows) == (None, False, True)
    before = [A, B, GONE, (6, "f", 60, False)]
    assert tables.rows() == sorted([*before, *(write[1] if refused is None else [])])


def test_the_state_that_planners_read_is_the_same_kind_of_thing(tables: Tables) -> None:
    start(tables)
    tables.write("append", 2, [(6, "f", 60, False)])

    state = find_state(tables.lake, "t", None)

    assert state is not None
    assert (state.version, state.rows, state.earliest) == (1, 4, 0)
    assert [(c.changes_rows, c.rows_added, c.foreign) for c in state.commits] == [
        (True, 3, False),
        (True, 1, False),
    ]
    assert state.columns == (("_key", "long"), ("id", "string"), ("value", "long"), ("_deleted", "boolean"))
    configuration = get_table(tables.lake.table("t")).properties
    assert {k: v for k, v in configuration.items() if k in writes.OWNED_TABLE} == writes.OWNED_TABLE


def test_a_version_is_put_once(tmp_path: Path) -> None:
    target = tmp_path / "0.json"
    put_if_absent(target, "first")

    with pytest.raises(FileExistsError):
        put_if_absent(target, "second")

    assert [p.name for p in tmp_path.iterdir()] == ["0.json"]
    assert target.read_text() == "first"


def test_of_many_writers_of_one_version_each_gets_one_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Appends of different applications never lose each other."""
    tables = Plain(Lake(root=str(tmp_path / "lake")), monkeypatch)
    start(tables)
    threads = [
        threading.Thread(target=lambda n=n: tables.write("foreign", 0, [(n, "x", n, False)]))
        for n in range(10, 18)
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert versions(tables) == list(range(9))
    assert len(tables.rows()) == 11


@pytest.mark.spark
def test_spark_reads_what_the_table_log_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from strandline.model.project import Settings
    from strandline.spark.session import get_session

    plain = Plain(Lake(root=str(tmp_path / "lake")), monkeypatch)
    start(plain)
    plain.write("replace_keys", 2, [(2, "b", 21, False)])
    plain.write("compact", 0, [])
    plain.write("purge", 3, [])

    delta = Delta(
        plain.lake, get_session(Settings(lake="", catalog="", spark_master="local[2]", spark_conf={}))
    )

    assert delta.rows() == plain.rows() == [A, (2, "b", 21, False)]
    delta.write("replace_keys", 4, [(1, "a", 11, False)])
    assert delta.rows() == [(1, "a", 11, False), (2, "b", 21, False)], "and goes on from there"
