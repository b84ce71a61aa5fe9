"""`doctor --adopt` refuses calls without sense, before it writes anything and without Spark."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from strandline.app.doctor import examine
from strandline.lake.log import list_versions, read_entries
from strandline.model.metadata import to_json
from tests.unit.cli.lake_builder import Written, write_lake


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return write_lake(tmp_path_factory.mktemp("written") / "shop")


@pytest.fixture
def lake(written: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Written:
    monkeypatch.setattr("strandline.app.doctor.find_jars", lambda: ())
    monkeypatch.setattr("strandline.app.adopt.open_lake", lambda *_: pytest.fail("Spark was started"))
    shutil.copytree(written.folder, tmp_path / "shop")
    return Written(folder=tmp_path / "shop")


def append_by_hand(lake: Written, dataset: str, **more: pa.Array) -> None:
    data = pa.table({"id": pa.array([9], pa.int64()), "name": ["x"], **more})
    write_deltalake(str(lake.table(dataset)), data, mode="append", schema_mode="merge" if more else None)


def refusal(lake: Written, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The refusal of a call that did not commit anything."""
    before = {p.parent.name: list_versions(str(p.parent)) for p in lake.table("").glob("*/_delta_log")}

    assert lake.call("doctor", *words) == 2

    assert {
        p.parent.name: list_versions(str(p.parent)) for p in lake.table("").glob("*/_delta_log")
    } == before
    return capsys.readouterr().err


def test_where_nobody_else_wrote_there_is_nothing_to_adopt(
    lake: Written, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "[nothing-to-adopt]" in refusal(lake, capsys, "--adopt")
    append_by_hand(lake, "orders")

    refused = refusal(lake, capsys, "--adopt", "orders", "customer_totals")

    assert "`customer_totals` has no commits that are not Strandline's" in refused
    assert "[nothing-to-adopt]" in refused


def remove_received(lake: Written) -> str:
    DeltaTable(str(lake.table("order_events"))).delete("id = 1")
    return "order_events"


def remove_facts(lake: Written) -> str:
    DeltaTable(str(lake.table("orders_facts"))).delete("id = 1")
    return "orders_facts"


def add_a_column(lake: Written) -> str:
    append_by_hand(lake, "customer_totals", more=pa.array([1], pa.int64()))
    return "customer_totals"


def lose_a_column(lake: Written) -> str:
    write_deltalake(
        str(lake.table("customer_totals")), pa.table({"id": [1]}), mode="overwrite", schema_mode="overwrite"
    )
    return "customer_totals"


OBSTACLES: dict[str, tuple[Callable[[Written], str], str, str]] = {
    "rows removed from a source": (
        remove_received,
        "what was received is never changed",
        "Restore the table to version 1",
    ),
    "rows removed from facts": (
        remove_facts,
        "its readers look for rows that were added alone",
        "it rebuilds `orders_facts`",
    ),
    "another column": (
        add_a_column,
        "its columns are not those that Strandline wrote: `more`",
        "it rebuilds `customer_totals`",
    ),
    "a column less": (
        lose_a_column,
        "its columns are not those that Strandline wrote: `name`",
        "it rebuilds `customer_totals`",
    ),
}


@pytest.mark.parametrize("name", OBSTACLES)
def test_what_nobody_could_go_on_from_is_refused(
    lake: Written, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write, what, remedy = OBSTACLES[name]
    dataset = write(lake)

    refused = refusal(lake, capsys, "--adopt", dataset)

    assert f"`{dataset}` (version 2) can't be adopted" in refused
    assert what in refused
    assert remedy in refused
    assert refused.rstrip().endswith("[cannot-adopt]")


@pytest.mark.parametrize("column", ["_key", "_deleted"])
def test_rows_without_what_later_runs_go_by_are_refused(
    lake: Written, column: str, capsys: pytest.CaptureFixture[str]
) -> None:
    values = {"_key": pa.array([1], pa.int64()), "_deleted": pa.array([False])}
    metadata = next(e.metadata for e in read_entries(str(lake.table("orders")), 0) if e.metadata)
    ours = CommitProperties(custom_metadata={"userMetadata": to_json(metadata)})
    data = pa.table({"id": pa.array([1], pa.int64()), "name": ["n"], **values})
    write_deltalake(
        str(lake.table("orders")), data, mode="overwrite", schema_mode="overwrite", commit_properties=ours
    )
    append_by_hand(lake, "orders", **{**values, column: pa.array([None], values[column].type)})

    assert f"1 of its rows have no `{column}`" in refusal(lake, capsys, "--adopt", "orders")


def test_one_that_cannot_be_adopted_keeps_the_others_from_it(
    lake: Written, capsys: pytest.CaptureFixture[str]
) -> None:
    append_by_hand(lake, "orders")
    remove_facts(lake)

    assert "`orders_facts`" in refusal(lake, capsys, "--adopt")


def test_the_doctor_says_that_it_can_be_adopted(lake: Written) -> None:
    append_by_hand(lake, "orders")
    append_by_hand(lake, "order_events")

    remedies = [f.remedy for f in examine(lake.folder) if f.check == "foreign"]

    assert [
        "`strandline doctor --adopt order_events`" in remedies[0],
        "`strandline doctor --adopt orders`" in remedies[1],
    ] == [True, True]


def test_a_reason_without_an_adoption_is_a_mistake(lake: Written, capsys: pytest.CaptureFixture[str]) -> None:
    assert "[call]" in refusal(lake, capsys, "--reason", "why not")
