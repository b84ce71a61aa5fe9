"""A flipped byte is never read as a value: readers without Spark verify the checksums first."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from strandline.dispatch.outside import as_known
from strandline.lake import checksums
from strandline.lake.location import Lake
from strandline.lake.newest import read_newest
from strandline.lake.reads import read_added_rows
from strandline.lake.small import SmallTables
from strandline.lake.table import get_table
from strandline.model.errors import OutsideError
from strandline.model.thresholds import Thresholds
from tests.unit.cli.builders import Shop, make_shop, order, printed
from tests.unit.cli.damaging import add_checksum, flip

SOURCE = Path(checksums.__file__).parents[1]


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """Facts and orders, each in a file with its checksum."""
    shop = make_shop(tmp_path / "shop")
    shop.write("orders_facts", [order("A-1", "120.00", 9, 1), order("B-1", "80.00", 10, 3)])
    shop.write("orders", [order("A-1", "120.00", 9, 1), order("B-1", "80.00", 10, 3)])
    for dataset in ("orders", "orders_facts"):
        add_checksum(the_file(shop, dataset))
    return shop


def the_file(shop: Shop, dataset: str) -> Path:
    (file,) = (shop.folder / ".strandline" / "lake" / dataset).glob("*.parquet")
    return file


def lake_of(shop: Shop) -> Lake:
    return Lake(root=str(shop.folder / ".strandline" / "lake"))


CALLS = {"query": ("query", "select * from orders_facts"), "history": ("history", "orders", "A-1")}


@pytest.mark.parametrize("name", CALLS)
def test_a_byte_flipped_anywhere_is_refused(
    shop: Shop, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = the_file(shop, "orders_facts")
    whole = file.read_bytes()
    for place in range(0, len(whole), 97):
        flip(file, place)

        assert shop.call(*CALLS[name]) == 3, place

        output = capsys.readouterr().err
        assert f"`orders_facts` does not have the bytes that were written: {file.name}" in output
        assert "strandline doctor --deep" in output
        assert output.rstrip().endswith("[file-damaged]")
        file.write_bytes(whole)
    assert shop.call(*CALLS[name]) == 0


def _middling(lake: Lake) -> SmallTables:
    """Every table is looked up."""
    return SmallTables(
        lake=lake, folder=f"{lake.root}/_staging/r", thresholds=Thresholds(small_table_bytes=0)
    )


def rows_of_keys(lake: Lake) -> object:
    return _middling(lake).find_rows(None, "orders", 0, "_key", [1])  # type: ignore[arg-type]


def rows_where(lake: Lake) -> object:
    return _middling(lake).find_where(None, "orders", 0, "_key", "true")  # type: ignore[arg-type]


READS: dict[str, Callable[[Lake], object]] = {
    "rows of some keys": rows_of_keys,
    "rows by a condition": rows_where,
    "rows that commits added": lambda lake: read_added_rows(lake, "orders", -1, 0, ["customer"]),
    "the newest value": lambda lake: read_newest(lake, "orders", 0, "changed_at", []),
    "a count": lambda lake: get_table(lake.table("orders")).live_rows,
}


@pytest.mark.parametrize("name", READS)
def test_a_run_that_reads_without_spark_refuses_it_too(shop: Shop, name: str) -> None:
    flip(the_file(shop, "orders"))

    with pytest.raises(OutsideError) as refused:
        READS[name](lake_of(shop))

    assert refused.value.slug == "file-damaged"


def test_a_file_is_looked_at_once(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    add_up = checksums._add_up

    def look(data: bytes, step: int) -> tuple[int, bytes]:
        looked.append(len(data))
        return add_up(data, step)

    monkeypatch.setattr(checksums, "_add_up", look)

    for _ in range(3):
        assert shop.call("query", "select * from orders") == 0

    assert looked == [the_file(shop, "orders").stat().st_size]


def test_a_large_table_is_not_read_twice(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(checksums, "CHECKED_BYTES", 10)
    monkeypatch.setattr(checksums, "_add_up", lambda data, step: pytest.fail("read"))

    assert shop.call("query", "select count(*) as n from orders", "--output", "json") == 0

    assert printed(capsys)["rows"] == [[2]]


@pytest.mark.parametrize(
    "message",
    [
        (
            "org.apache.hadoop.fs.ChecksumException: Checksum error: "
            "file:/lake/orders/a.parquet at 0 exp: 1 got: 2"
        ),
        (
            "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///lake/orders/a.parquet. "
            "SQLSTATE: KD001"
        ),
        "could not verify page integrity, CRC checksum verification failed for page_ordinal 0",
        (
            "Kernel error: Deletion Vector error: CRC32 checksum mismatch for "
            "file:///lake/orders/deletion_vector_1.bin"
        ),
        "Parquet error: Invalid Parquet file. Corrupt footer",
    ],
)
def test_what_others_say_of_a_damaged_file_is_told_with_what_to_do(message: str) -> None:
    """Running again would read the same bytes."""
    reported = str(as_known(Exception(message)))

    assert "Run `strandline doctor --deep`" in reported
    assert reported.endswith("[file-damaged]")


def test_nobody_reads_rows_through_delta_rs_past_the_checksums() -> None:
    """`Table.register` verifies them, and only `lake.table` can register a table of delta-rs."""
    openers = [p.name for p in SOURCE.rglob("*.py") if re.search(r"\bDeltaTable\(", p.read_text())]

    assert openers == ["table.py"]
