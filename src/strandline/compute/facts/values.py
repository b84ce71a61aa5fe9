"""Text and native values -> declared types. A value that does not fit becomes NULL.

The caller distinguishes it from an absent one.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, TimestampNTZType, TimestampType

from strandline.model.columns import ColumnType, TypeName

_DATE = r"^\d{4}-\d{2}-\d{2}$"
_TIMESTAMP = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?\s?(Z|z|[+-]\d{2}(:?\d{2})?)?)?$"
_LEAST_MS, _MOST_MS = -62135596800000, 253402300799999
"""The years 1 to 9999. Beyond them Spark's own functions raise."""
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_NO_NUMBER = r"(?i)^([+-]?inf(inity)?|nan)$"
_FAR = r"[eE][+-]?0*[1-9]\d{3,}$"
"""An exponent that no decimal reaches, and that Java needs minutes to write out."""
_ZERO = r"^[+-]?(0+\.?0*|\.0+)([eE][+-]?\d+)?$"
"""Zero, whatever the exponent."""
_NEAR_NOTHING = r"^[+-]?\d{1,500}(\.\d{1,500})?[eE]-0*[1-9]\d{3,}$"


def decode_text(text: Column, to: ColumnType) -> Column:
    """A value written as text: numbers and numeric strings.

    A decimal is rounded half up to its scale. A time without an offset is UTC.
    """
    trimmed = F.trim(text)
    match to.name:
        case TypeName.STRING | TypeName.JSON:
            return text
        case TypeName.INT | TypeName.BIGINT:
            return _whole_number(trimmed).try_cast(to.stored)
        case TypeName.DATE:
            return F.when(trimmed.rlike(_DATE), trimmed.try_cast("date"))
        case TypeName.TIMESTAMP:
            return F.when(trimmed.rlike(_TIMESTAMP), trimmed.try_cast("timestamp"))
        case TypeName.TIMESTAMP_MS:
            millis = _whole_number(trimmed)
            return F.when(
                millis.between(_LEAST_MS, _MOST_MS),
                F.timestamp_millis(F.when(millis.between(_LEAST_MS, _MOST_MS), millis)),
            )
        case TypeName.TIMESTAMP_US:
            micros = _whole_number(trimmed)
            within = micros.between(_LEAST_MS * 1000, _MOST_MS * 1000)
            return F.when(within, F.timestamp_micros(F.when(within, micros)))
        case TypeName.TIMESTAMP_NS:
            # Cut to microseconds. 64 bits of nanoseconds lie within the years 1677 to 2262.
            micros = F.floor(_whole_number(trimmed).cast("decimal(20,0)") / F.lit(1000)).cast("bigint")
            return F.timestamp_micros(micros)
        case TypeName.DOUBLE:
            # Java also reads `5d` and `0x1p3` as numbers, and a number that is too large as infinity.
            value = trimmed.try_cast("double")
            finite = F.abs(value) < F.lit(float("inf"))
            return F.when((trimmed.rlike(_NUMBER) & finite) | trimmed.rlike(_NO_NUMBER), value)
        case TypeName.DECIMAL:
            nothing, number = F.lit(0).cast(to.stored), trimmed.try_cast(to.stored)
            near_nothing = F.when(trimmed.rlike(_NEAR_NOTHING), nothing)
            return F.when(trimmed.rlike(_ZERO), nothing).otherwise(
                F.when(trimmed.rlike(_FAR), near_nothing).otherwise(number)
            )
        case _:
            return trimmed.try_cast(to.stored)


def _whole_number(text: Column) -> Column:
    """A bigint, also from `5.0` and `1.7E12`. Exact, or NULL."""
    digits = F.regexp_replace(text, r"[eE].*$|[^0-9]", "")
    fraction = F.length(F.regexp_extract(text, r"\.(\d*)", 1))
    zeros = F.length(F.regexp_extract(digits, r"(0*)$", 1))
    exponent = F.coalesce(F.regexp_extract(text, r"[eE]([+-]?\d+)$", 1).try_cast("int"), F.lit(0))
    whole = (exponent - fraction + zeros >= 0) | digits.rlike("^0*$")
    written = F.when(
        text.rlike(_NUMBER) & ~text.rlike(_FAR) & whole, text.try_cast("decimal(38,10)").try_cast("bigint")
    )
    return F.coalesce(text.try_cast("bigint"), written, F.when(text.rlike(_ZERO), F.lit(0).cast("bigint")))


def decode_value(value: Column, from_type: DataType, to: ColumnType) -> Column:
    """A value of a source that has its own columns."""
    if from_type.simpleString() == to.stored:
        return value
    if isinstance(from_type, TimestampType | TimestampNTZType | DateType) and to.name in (
        TypeName.DATE,
        TypeName.TIMESTAMP,
    ):
        return value.cast(to.stored)
    return decode_text(value.cast("string"), to)
