"""Numbers and texts of JSON messages in every declared type, against Python's json and decimal."""

import json
import random
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, localcontext

import pytest
from pyspark.sql import Column
from pyspark.sql import functions as F

from strandline.compute.facts.payload import ITEM, get_list, get_text, parse_messages
from strandline.compute.facts.values import decode_text
from strandline.model.columns import find_type
from strandline.model.project import Settings
from strandline.spark.session import get_session

pytestmark = pytest.mark.spark

TYPES = (
    "string",
    "json",
    "int",
    "bigint",
    "double",
    "decimal(38,0)",
    "decimal(38,18)",
    "decimal(5,2)",
    "timestamp_ms",
    "timestamp_us",
    "timestamp_ns",
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def make_numbers(seed: int) -> list[str]:
    """Valid JSON numbers: up to 60 digits, fractions, exponents, outer zeros, and limits of the types."""
    chance = random.Random(seed)
    numbers = [
        "0", "-0", "-0.0", "0.0", "1.0", "1.10", "0.1", "1e400", "-1e400", "1e-400",
        "1.23456789012345678901E20", "1E5", "1e0", "100e-2", "12345678901234567890123456789012345678901",
        "9007199254740993", "9223372036854775807", "9223372036854775808", "2147483648", "5.0",
        "5.00000000001", "5.0000000000000000000000000000000000001", "1.5E-12", "1e-30", "1e99999", "1e-99999",
        "1e+00003", "0e38", "-0.0E400", "0e99999", "0.1234567890123456789012345678901234567890123456789",
        "253402300799999", "253402300800000", "-62135596800001", "999.995",
    ]  # fmt: skip
    for _ in range(250):
        whole = str(chance.randrange(10 ** chance.choice([1, 3, 10, 17, 19, 25, 38, 60])))
        fraction = chance.choice(
            ["", "." + "".join(chance.choices("0123456789", k=chance.randint(1, 40))), ".50", ".000"]
        )
        exponent = chance.choice(
            ["", "", f"{chance.choice('eE')}{chance.choice(['', '+', '-'])}{chance.randrange(45)}"]
        )
        numbers.append(chance.choice(["", "-"]) + whole + fraction + exponent)
    return numbers


def expect(text: str, kind: str) -> object:
    """The number in a type, or None where it does not fit."""
    exact = json.loads(text, parse_float=Decimal, parse_int=Decimal)
    match kind.partition("(")[0]:
        case "string" | "json":
            return text
        case "double":
            return float(text) if abs(float(text)) != float("inf") else None
        case "decimal":
            precision, scale = map(int, kind[8:-1].split(","))
            if not exact.is_zero() and exact.adjusted() > 40:
                return None
            with localcontext() as context:
                context.prec = 2000
                rounded = (
                    exact.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
                    if exact.adjusted() > -1000
                    else Decimal(0)
                )
            return rounded if abs(rounded) < Decimal(10) ** (precision - scale) else None
    if not exact.is_zero() and (
        exact.adjusted() > 40 or exact.adjusted() < -1000 or exact != exact.to_integral_value()
    ):
        return None
    whole = int(exact)
    if kind in ("int", "bigint"):
        bits = 31 if kind == "int" else 63
        return whole if -(1 << bits) <= whole < 1 << bits else None
    if kind == "timestamp_ns":
        return _EPOCH + timedelta(microseconds=whole // 1000) if -(1 << 63) <= whole < 1 << 63 else None
    per_second = 1000 if kind == "timestamp_ms" else 1_000_000
    if not -62135596800 * per_second <= whole <= 253402300799999 * per_second // 1000:
        return None
    return _EPOCH + timedelta(microseconds=whole * 1_000_000 // per_second)


def test_a_number_is_exact_in_every_type_or_does_not_fit() -> None:
    numbers = make_numbers(seed=13)
    messages = [f'{{"id": {i}, "n":{n} , "o": {{"l": [{n},"{n}"]}}}}' for i, n in enumerate(numbers)]
    session = get_session(Settings(lake="", catalog="", spark_master="local[2]", spark_conf={}))
    rows = parse_messages(session.createDataFrame(list(enumerate(messages)), "i int, text string"), "text")

    def decoded(kind: str) -> Column:
        row_by_place = find_type(kind)
        assert row_by_place is not None
        value = decode_text(get_text(rows, ("n",)), row_by_place)
        return (F.unix_micros(value) if kind.startswith("timestamp") else value).alias(kind)

    items = rows.select("*", F.posexplode(get_list(("o", "l"))).alias("place", "element")).withColumn(
        ITEM, F.col("element.item")
    )
    items = items.select("i", "place", get_text(items, ("item",)).alias("item"))
    item_of = {(row["i"], row["place"]): row["item"] for row in items.collect()}
    rows = rows.select("i", *map(decoded, TYPES), get_text(rows, ("o",)).alias("o"))
    row_by_place = {row["i"]: row for row in rows.collect()}

    wrong = []
    for i, number in enumerate(numbers):
        for kind in TYPES:
            expected = expect(number, kind)
            if isinstance(expected, datetime):
                expected = (expected - _EPOCH) // timedelta(microseconds=1)
            if row_by_place[i][kind] != expected or str(row_by_place[i][kind]) == "-0.0" != str(expected):
                wrong.append((number, kind, expected, row_by_place[i][kind]))
        if (row_by_place[i]["o"], item_of[i, 0], item_of[i, 1]) != (
            f'{{"l":[{number},"{number}"]}}',
            number,
            number,
        ):
            wrong.append((number, "nested", number, row_by_place[i]["o"]))
    assert not wrong, wrong[:20]
