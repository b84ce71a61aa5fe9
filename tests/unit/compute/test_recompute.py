"""Rows whose doubles differ only by rounding are not differences."""

import random

from pyspark.sql import Row

from strandline.compute.recompute import _agree, _unpaired

COLUMNS = ["k", "x", "y"]


def row(k: str, x: str | None, y: str | None, surplus: int) -> Row:
    return Row(k=k, x=x, y=y, __expected=max(surplus, 0), __actual=max(-surplus, 0))


def test_rows_that_agree_to_twelve_digits_are_paired() -> None:
    rows = [
        row("a", "0.300000000000", "1", 1),
        row("a", "0.300000000001", "1", -1),
        row("b", "0.3", "1", 1),
        row("b", "0.4", "1", -1),
        row("c", "NaN", None, 1),
        row("c", "NaN", None, -1),
        row("d", "Infinity", "1", 2),
        row("d", "Infinity", "1", -1),
    ]

    left = _unpaired(rows, COLUMNS, ["x", "y"])

    assert [r["k"] for r in left] == ["b", "b", "d", "d"]


def test_pairing_many_rows_equals_pairing_them_one_by_one_and_is_quick() -> None:
    made = random.Random(14)
    rows = []
    for _ in range(20_000):
        x = made.choice((made.uniform(-1e6, 1e6), 0.0, 1e-300))
        rows.append(row("all", f"{x:.11e}", "0", 1))
        if made.random() < 0.5:
            rows.append(row("all", f"{x * (1 + 1e-12):.11e}", "0", -1))
    made.shuffle(rows)

    left = _unpaired(rows, COLUMNS, ["x", "y"])

    surplus = sum(r["__expected"] for r in rows) - sum(r["__actual"] for r in rows)
    assert len(left) == surplus
    assert all(r["__expected"] for r in left)


def test_numbers_agree_within_one_unit_of_the_twelfth_digit() -> None:
    assert _agree("1.00000000000", "1.00000000001")
    assert not _agree("1.00000000000", "1.00000000003")
    assert not _agree("NaN", "1.0")
