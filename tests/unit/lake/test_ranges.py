"""The ranges of a column in files, by checkpoints and entries. No file that may have a row is left out."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from strandline.lake.checkpoints import find_checkpoint
from strandline.lake.location import Lake
from strandline.lake.ranges import read_ranges
from strandline.model.own_clock import ColumnRange, OwnClock, WatchedBorder

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("at", pa.timestamp("us", "UTC")),
        ("on_day", pa.date32()),
        ("written", pa.string()),
        ("local_at", pa.timestamp("us")),
    ]
)
KEPT = {"delta.dataSkippingStatsColumns": "`at`,`on_day`,`written`,`local_at`"}
UNKNOWN = ColumnRange(low=None, high=None, rows=1)


def day(number: int) -> datetime:
    return datetime(2024, 3, number, 12, 0, 0, 123456, tzinfo=UTC)


def add(lake: Lake, *days: int | None, properties: Mapping[str, str] | None = None) -> str:
    """Append one file with a row for each day. None is a row without times."""
    rows = [
        {
            "id": number,
            "at": day(number) if number else None,
            "on_day": day(number).date() if number else None,
            "written": "x" * 40,
            "local_at": day(number).replace(tzinfo=None) if number else None,
        }
        for number in days
    ]
    uri = lake.table("t")
    write_deltalake(
        uri,
        pa.Table.from_pylist(rows, schema=SCHEMA),
        mode="append",
        configuration=dict(KEPT if properties is None else properties),
    )
    return uri


def ranges_of(lake: Lake, column: str) -> set[ColumnRange]:
    table = DeltaTable(lake.table("t"))
    return set(read_ranges(lake, "t", table.version(), [column])[column])


def spans(lake: Lake, column: str) -> set[tuple[int | None, int | None]]:
    return {(r.low.day if r.low else None, r.high.day if r.high else None) for r in ranges_of(lake, column)}


def test_times_and_dates_are_read_with_and_without_a_checkpoint(tmp_path: Path) -> None:
    lake = Lake(root=str(tmp_path))
    uri = add(lake, 1, 3)
    add(lake, 5)
    for column in ("at", "on_day", "local_at"):
        assert spans(lake, column) == {(1, 3), (5, 5)}

    DeltaTable(uri).create_checkpoint()
    add(lake, 7)

    for column in ("at", "on_day", "local_at"):
        assert spans(lake, column) == {(1, 3), (5, 5), (7, 7)}
    found = find_checkpoint(uri, 5)
    assert found is not None
    assert (found.version, len(found.statistics)) == (1, 2)


def test_a_log_whose_old_entries_are_gone_is_read_from_its_checkpoint(tmp_path: Path) -> None:
    lake = Lake(root=str(tmp_path))
    uri = add(lake, 1)
    add(lake, 2)
    DeltaTable(uri).create_checkpoint()
    add(lake, 3)
    (Path(uri) / "_delta_log" / f"{0:020}.json").unlink()

    assert spans(lake, "at") == {(1, 1), (2, 2), (3, 3)}


def test_a_checkpoint_that_cannot_be_read_is_done_without(tmp_path: Path) -> None:
    lake = Lake(root=str(tmp_path))
    uri = add(lake, 1)
    DeltaTable(uri).create_checkpoint()
    log = Path(uri) / "_delta_log"

    assert find_checkpoint(uri, -1) is None, "one of a later version"
    (log / "_last_checkpoint").write_text('{"version": 0, "parts": 2}')
    assert find_checkpoint(uri, 0) is None, "its parts are missing"
    (log / "_last_checkpoint").write_text('{"version": 0, "v2Checkpoint": {}}')
    assert find_checkpoint(uri, 0) is None
    (log / "_last_checkpoint").write_text("{")
    assert find_checkpoint(uri, 0) is None
    assert spans(lake, "at") == {(1, 1)}


def test_a_file_without_any_value_reaches_nothing_and_one_without_statistics_everything(
    tmp_path: Path,
) -> None:
    lake = Lake(root=str(tmp_path))
    add(lake, 1)
    add(lake, None)

    border = WatchedBorder(dataset="t", column="at", steps=())
    clock = OwnClock(every=None, timezone="UTC", borders=(border,))
    band, files = (day(1), day(2)), ranges_of(lake, "at")
    assert [f.empty for f in clock.find_reached(border, *band, files)] == [False]
    unknown = replace(border, steps=None)
    assert len(clock.find_reached(unknown, *band, files)) == 2, "a border may be NULL itself: NULL <=> NULL"
    assert ranges_of(lake, "id") == {UNKNOWN}, "the table keeps no statistics of it, and it is no time"
    assert ranges_of(lake, "written") == {UNKNOWN}, "texts do not sort as the times that they name"
    assert "missing" not in read_ranges(lake, "t", 1, ["at", "missing"])


def test_a_table_that_keeps_a_column_later_has_unknown_files_until_they_are_written_again(
    tmp_path: Path,
) -> None:
    lake = Lake(root=str(tmp_path))
    uri = add(lake, 1, properties={"delta.dataSkippingStatsColumns": "`id`"})
    assert ranges_of(lake, "at") == {UNKNOWN}

    DeltaTable(uri).alter.set_table_properties(KEPT)
    add(lake, 2)

    assert spans(lake, "at") == {(None, None), (2, 2)}


def test_a_file_with_a_deletion_vector_keeps_its_range(tmp_path: Path) -> None:
    """Its statistics are those of all its rows: too wide, never too narrow."""
    lake = Lake(root=str(tmp_path))
    uri = add(lake, 1, 9)
    log = Path(uri) / "_delta_log"
    (entry,) = (
        action
        for line in (log / f"{0:020}.json").read_text().splitlines()
        if "add" in (action := json.loads(line))
    )
    vector = {
        "storageType": "i",
        "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
        "sizeInBytes": 40,
        "cardinality": 1,
    }
    marked = entry["add"] | {"deletionVector": vector}
    removed = {"path": marked["path"], "dataChange": True, "deletionTimestamp": 1}
    (log / f"{1:020}.json").write_text(
        json.dumps({"remove": removed}) + "\n" + json.dumps({"add": marked}) + "\n"
    )

    assert spans(lake, "at") == {(1, 9)}


def test_a_renamed_column_is_found_by_the_name_that_its_files_have(tmp_path: Path) -> None:
    lake = Lake(root=str(tmp_path))
    uri = add(lake, 4)
    entry = Path(uri) / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in entry.read_text().splitlines()]
    for action in lines:
        if "metaData" in action:
            schema = json.loads(action["metaData"]["schemaString"])
            for number, field in enumerate(schema["fields"]):
                field["metadata"] = {
                    "delta.columnMapping.id": number + 1,
                    "delta.columnMapping.physicalName": field["name"],
                }
                field["name"] = {"at": "sent_at", "on_day": "at"}.get(field["name"], field["name"])
            action["metaData"]["schemaString"] = json.dumps(schema)
            action["metaData"]["configuration"] |= {"delta.columnMapping.mode": "name"}
        if "protocol" in action:
            features = ["columnMapping", "timestampNtz"]
            action["protocol"] = {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": features,
                "writerFeatures": features,
            }
    entry.write_text("".join(json.dumps(line) + "\n" for line in lines))

    (renamed,), (other,) = ranges_of(lake, "sent_at"), ranges_of(lake, "at")

    assert isinstance(renamed.low, datetime)
    assert other.low == date(2024, 3, 4)


def test_statistics_are_cut_to_milliseconds_and_the_row_beyond_is_still_reached() -> None:
    """The greatest time in the log may lie before the greatest time in the file."""
    in_log = datetime(2024, 3, 4, 12, 0, 0, 123000, tzinfo=UTC)
    file = ColumnRange(low=in_log, high=in_log, rows=1)
    border = WatchedBorder(dataset="t", column="at", steps=())
    clock = OwnClock(every=None, timezone="UTC", borders=(border,))
    just_before, at_it = in_log.replace(microsecond=123400), in_log.replace(microsecond=123456)

    assert clock.find_reached(border, just_before, at_it, [file]) == [file]
