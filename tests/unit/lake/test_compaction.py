"""Files stay narrow in the columns of windows: when they are merged, when they are sorted, and when left."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from strandline.lake.compaction import ROWS_A_FILE, SORTED_ROWS, Compaction, Step, find_compactions
from strandline.lake.files import LiveFile
from strandline.lake.narrowness import depth_of, enclose
from strandline.lake.statistics import (
    NOTHING_KNOWN,
    FileStatistics,
    find_kept,
    make_statistics,
    read_columns,
    spell_columns,
)

BYTES = 40
"""Of a row."""


def day(number: float) -> str:
    return f"{2000 + int(number) // 360}-{int(number) % 360:03}T{number % 1:.3f}"


def file(
    first: float, last: float, rows: int = 10_000, *, by: Sequence[str] = ("at",), **more: object
) -> LiveFile:
    statistics = FileStatistics(ranges=tuple((column, day(first), day(last)) for column in by))
    made = LiveFile(path=f"{first}-{last}-{rows}", bytes=rows * BYTES, rows=rows, statistics=statistics)
    return replace(made, **more)  # type: ignore[arg-type]


def daily(first: int, last: int, rows: int = 10_000) -> list[LiveFile]:
    return [file(d, d + 0.999, rows) for d in range(first, last)]


def sort(files: Sequence[LiveFile]) -> list[LiveFile]:
    """What sorting gives: files of equal size that follow each other."""
    ends = [f.statistics.find_range("at") for f in files]
    spans = sorted(float(str(low)[5:8]) + 360 * (int(str(low)[:4]) - 2000) for low, _ in filter(None, ends))
    rows = sum(f.rows for f in files)
    count = max(1, rows // SORTED_ROWS)
    cuts = [spans[len(spans) * n // count] for n in range(count)] + [spans[-1] + 1]
    return [file(cuts[n], cuts[n + 1] - 0.001, rows // count, sorted_by=("at",)) for n in range(count)]


def steps(files: Sequence[LiveFile], ranged: Sequence[str] = ("at",)) -> list[Step]:
    return [c.step for c in find_compactions(files, ranged)]


def test_a_thousand_daily_files_are_sorted_where_windows_read_them_and_only_merged_elsewhere() -> None:
    files = daily(0, 1_000)

    (sorting,) = find_compactions(files, ("at",))

    assert (sorting.step, sorting.files, sorting.sorted_by) == (Step.SORT, 1_000, ("at",))
    assert sorting.text == "1000 files sorted by at"
    assert steps(files, ()) == [Step.MERGE]
    assert steps(sort(files)) == [], "it is done"


def test_neighbours_that_fit_into_one_file_are_merged() -> None:
    old = sort(daily(0, 900))

    (merge,) = find_compactions([*old, *daily(900, 907)], ("at",))

    assert (merge.step, merge.files) == (Step.MERGE, 7)


def test_a_week_that_fills_two_files_is_merged_in_a_table_of_years() -> None:
    old = sort(daily(0, 900))

    assert steps([*old, *daily(900, 907, 60_000)]) == [Step.MERGE]


def test_small_files_far_from_each_other_are_left_until_enough_is_new() -> None:
    old = sort(daily(0, 900))
    far_apart = [file(10, 11, 10_000), file(890, 891, 10_000)]

    assert steps([*old, *far_apart]) == []
    assert steps([*old, *[file(n, n + 1, 60_000) for n in range(0, 900, 20)]]) == [Step.SORT]


def test_few_small_neighbours_are_merged_beside_a_larger_small_one_far_away() -> None:
    """Delta merges all files below a size, so the size is chosen."""
    old = sort(daily(0, 900))
    large = file(0, 5, ROWS_A_FILE // 2 - 1)

    (merge,) = find_compactions([large, *old, *daily(900, 906)], ("at",))

    assert (merge.step, merge.files) == (Step.MERGE, 6)
    assert merge.small_bytes < large.bytes


def test_files_with_rows_of_every_day_are_sorted_once_a_fifth_of_the_rows_is_new() -> None:
    """Changed records lie on any day."""
    old = sort(daily(0, 900))
    wide = [file(0, 900, ROWS_A_FILE) for _ in range(6)]

    assert steps([*old, *wide]) == []
    assert steps([*old, *wide, *wide]) == [Step.SORT]


def test_wide_small_files_are_merged_as_ever() -> None:
    old = sort(daily(0, 900))

    assert steps([*old, *[file(0, 900, 1_000) for _ in range(5)]]) == [Step.MERGE]


@pytest.mark.parametrize("by", [1, 2, 3])
def test_a_table_that_was_just_sorted_is_left_alone_however_its_files_overlap(by: int) -> None:
    """All rows may have one time: then sorting cannot help, and must not be tried for ever."""
    columns = tuple(f"c{n}" for n in range(by))
    files = [file(5, 5, ROWS_A_FILE, by=columns) for _ in range(40)]

    assert steps(files, columns) == [Step.SORT]
    assert steps([replace(f, sorted_by=columns) for f in files], columns) == []


def test_a_file_without_statistics_is_written_again_once() -> None:
    unknown = replace(file(3, 4), statistics=NOTHING_KNOWN)
    empty = replace(file(3, 4), statistics=FileStatistics(empty=("at",)))

    assert steps([unknown, *daily(5, 6, ROWS_A_FILE)]) == [Step.SORT]
    assert steps([unknown], ()) == []
    assert steps([replace(unknown, sorted_by=("at",))]) == []
    assert steps([empty]) == []
    assert steps([file(3, 4, by=("at", "changed"))], ("at", "changed")) == []
    assert steps([file(3, 4)], ("at", "changed")) == [Step.SORT], "of one column only"


def test_files_sorted_by_one_column_may_be_sorted_by_another_that_a_reader_needs_now() -> None:
    narrow = [
        replace(f, statistics=FileStatistics(ranges=(*f.statistics.ranges, ("changed", day(0), day(900)))))
        for f in sort(daily(0, 900))
    ]

    assert steps(narrow) == []
    assert steps(narrow, ("changed",)) == [Step.SORT]


def test_files_are_purged_one_by_one_where_they_have_to_stay_narrow() -> None:
    """Delta would merge two half-empty files of different years."""
    holed = [replace(f, deleted=f.rows // 2) for f in daily(0, 900, ROWS_A_FILE)[::300]]

    (narrow,), (wide,) = find_compactions(holed, ("at",)), find_compactions(holed)

    assert (narrow.step, narrow.files, narrow.file_bytes) == (Step.PURGE, 3, 1)
    assert (wide.step, wide.file_bytes) == (Step.PURGE, ROWS_A_FILE * BYTES)


def test_at_most_four_columns_are_sorted_by() -> None:
    columns = tuple(f"c{n}" for n in range(6))
    (sorting,) = find_compactions([file(0, 900, ROWS_A_FILE, by=columns) for _ in range(90)], columns)

    assert sorting.sorted_by == columns[:4]


def test_each_partition_is_judged_alone() -> None:
    a, b = (("role", "row"),), (("role", "head"),)
    files = [replace(f, partition=p) for f in daily(0, 3, ROWS_A_FILE) for p in (a, b)]

    assert steps(files) == [], "in each partition they follow each other"


def test_the_depth_is_the_number_of_files_that_a_value_reaches() -> None:
    rng = random.Random(7)
    files = [
        file(low, low + rng.randint(0, 9), rng.randint(1, 9))
        for low in (rng.randint(0, 60) for _ in range(30))
    ]
    unknown = replace(file(0, 1, 4), statistics=NOTHING_KNOWN)

    def count(value: object) -> int:
        return sum(
            found is None or found[0] <= value <= found[1]  # type: ignore[operator]
            for f in [*files, unknown]
            for found in [f.statistics.find_range("at")]
        )

    ends = [(f.rows, f.statistics.find_range("at")) for f in files]
    rows = sum(f.rows for f in files) + 4
    above = sum(n * (count(low) - 1 + count(high) - 1) / 2 for n, (low, high) in ends)  # type: ignore[misc]
    assert depth_of([*files, unknown], ["at"]) == pytest.approx(1 + above / rows)
    assert depth_of(daily(0, 9), ["at"]) == 1
    assert depth_of([replace(f, statistics=FileStatistics(empty=("at",))) for f in files], ["at"]) == 0


def test_a_merged_file_has_the_rows_of_all() -> None:
    files = [file(3, 4), file(1, 2), replace(file(0, 0), statistics=FileStatistics(empty=("at",)))]

    merged = enclose(files, ["at"])

    assert (merged.rows, merged.statistics.find_range("at")) == (30_000, (day(1), day(4)))
    assert enclose(files[2:], ["at"]).statistics.empty == ("at",)
    unknown = replace(files[0], statistics=NOTHING_KNOWN)
    assert not enclose([*files, unknown], ["at"]).statistics.knows("at")


def test_a_table_goes_on_keeping_what_it_keeps() -> None:
    columns = [("a`b", "timestamp"), ("on", "date"), ("tags", "array"), ("n", "long")]
    properties = {"delta.dataSkippingStatsColumns": "`n`, gone"}

    assert find_kept(properties, columns, ["a`b", "tags", "missing"]) == ("n", "a`b")
    assert find_kept(properties, columns, ["n", "tags", "missing"]) == ()
    assert find_kept({}, columns, ["on"]) == ("on",)
    assert read_columns(spell_columns(["a`b", "x,y", "z"])) == ("a`b", "x,y", "z")


def test_statistics_of_an_entry() -> None:
    known = make_statistics(
        {
            "numRecords": 2,
            "minValues": {"at": "x", "n": 1, "s": {"in": 1}},
            "maxValues": {"at": "y", "n": 2, "s": {"in": 2}},
            "nullCount": {"none": 2, "some": 1, "s": {"in": 0}},
        }
    )

    assert known == FileStatistics(ranges=(("at", "x", "y"), ("n", 1, 2)), empty=("none",))
    assert make_statistics({}) == NOTHING_KNOWN
    assert (
        Compaction(step=Step.PURGE, files=1, small_bytes=0, file_bytes=0).text
        == "1 file without deleted rows"
    )
