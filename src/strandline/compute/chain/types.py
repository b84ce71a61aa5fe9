"""Which types the columns of a chain may have.

A type that Python and Spark might compare differently is refused.
"""

from collections.abc import Mapping

from pyspark.sql.types import (
    AtomicType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    IntegralType,
    NumericType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from strandline.model.errors import WorkError
from strandline.model.project import Chain, Head

_NAMES = StringType | BinaryType | IntegralType | DecimalType
_GROUPS = _NAMES | BooleanType | DateType


def require_types(chain: Chain, kinds: Mapping[str, DataType]) -> None:
    """Refuse a chain over columns of other types.

    The columns of a native source are known only when it is read.
    """
    number = kinds[chain.number]
    is_whole = isinstance(number, IntegralType) or (
        isinstance(number, DecimalType) and number.scale == 0 and number.precision <= 18
    )
    _require(chain, "number", chain.number, number, is_whole, "a whole number of at most 18 digits")
    _require(
        chain,
        "hash",
        chain.hash,
        kinds[chain.hash],
        isinstance(kinds[chain.hash], _NAMES),
        "text, bytes or a whole number",
    )
    _require(
        chain,
        "parent",
        chain.parent,
        kinds[chain.parent],
        kinds[chain.parent] == kinds[chain.hash],
        f"of the type of `{chain.hash}`",
    )
    for column in chain.group_by:
        fits = isinstance(kinds[column], _GROUPS)
        _require(
            chain, "group_by", column, kinds[column], fits, "text, bytes, a number, a date or true/false"
        )
    for column in chain.order_by:
        fits = column.startswith("_") or isinstance(kinds[column], AtomicType)
        _require(chain, "order_by", column, kinds[column], fits, "a single value")
    if chain.head.kind is Head.MOST_SUMMED:
        weight = kinds[chain.head.column]
        _require(
            chain,
            "head",
            chain.head.column,
            weight,
            isinstance(weight, IntegralType | DecimalType),
            "a whole number or a decimal",
        )
    elif chain.head.column:
        weight = kinds[chain.head.column]
        fits = isinstance(weight, NumericType | DateType | TimestampType | TimestampNTZType)
        _require(chain, "head", chain.head.column, weight, fits, "a number or a time")


def show_hash(value: object) -> str:
    """A block's hash as text."""
    return f"0x{value.hex()}" if isinstance(value, bytes) else str(value)


def _require(chain: Chain, word: str, column: str, kind: DataType, fits: bool, expected: str) -> None:
    if fits:
        return
    raise WorkError(
        f"{chain.place}: `{word}` of chain `{chain.name}` names `{column}`, which is {kind.simpleString()}"
        f" and not {expected}.",
        remedy=f"Give `{column}` another type under `columns:` of `{chain.blocks}` and run"
        f" `strandline backfill {chain.blocks} --all`, or name another column.",
        slug="chain-types",
    )
