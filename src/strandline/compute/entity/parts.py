"""What a leaf is made of: numbers that can be added up, from which its value follows.

A leaf that can be added to consists of a count, a sum and a count, or a least or greatest value. They are
computed from all rows of an entity, or from what was published and the rows that changed: the same
expressions make the value of both, so both are equal.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DecimalType, IntegralType, LongType, NullType

from strandline.model.accumulation import MOST_SUMMED_DIGITS, Adding, find_obstacle
from strandline.model.entity import Use, Variable
from strandline.sql.leaves import Leaf, cut_select

from .times import fill_time

_COUNT = Adding.COUNT
ADDED_WHOLE = "decimal(38,0)"
"""In which whole numbers are added and subtracted: their order cannot overflow it."""
SIGNED = "__sign"
"""1 for a row that came, -1 for one that left."""


class PartKind(StrEnum):
    COUNT = "count"
    SUM = "sum"
    LEAST = "min"
    GREATEST = "max"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One number of a leaf."""

    name: str
    """The column that it has inside of a computation."""
    kind: PartKind
    variable: Variable
    leaf: Leaf
    type: str
    """The type that it is kept in."""

    @property
    def added_in(self) -> str:
        """The type in which it is added to, which cannot overflow where the sum does not."""
        return ADDED_WHOLE if self.kind is PartKind.SUM and self.type == "bigint" else self.type

    def compute(self, condition: str, as_of: datetime) -> str:
        """The aggregate that makes it of the rows that meet a condition."""
        arguments = [fill_time(argument, as_of) for argument in self.leaf.arguments]
        conditions = [condition, *([f"({fill_time(self.leaf.where, as_of)})"] if self.leaf.where else [])]
        if self.kind is PartKind.COUNT:
            call = f"{'count_if' if self.leaf.function == 'count_if' else 'count'}({', '.join(arguments)})"
        elif self.kind is PartKind.SUM and self.type == ADDED_WHOLE:
            call = f"sum(CAST({arguments[0]} AS {ADDED_WHOLE}))"
        else:
            call = f"{self.kind}({arguments[0]})"
        return f"{call} FILTER (WHERE {' AND '.join(conditions)})"

    def weigh(self, condition: str, as_of: datetime) -> str:
        """What one row adds to it: a row that leaves (`__sign`) takes away what it added."""
        arguments = [f"({fill_time(argument, as_of)})" for argument in self.leaf.arguments]
        conditions = [condition, *([f"({fill_time(self.leaf.where, as_of)})"] if self.leaf.where else [])]
        if self.kind is PartKind.COUNT:
            if self.leaf.function == "count_if":
                conditions += arguments
            elif self.leaf.arguments != ("*",):
                conditions += [f"{argument} IS NOT NULL" for argument in arguments]
            return f"CASE WHEN {' AND '.join(conditions)} THEN CAST({SIGNED} AS BIGINT) END"
        if self.kind is not PartKind.SUM:
            return f"CASE WHEN {' AND '.join(conditions)} THEN {arguments[0]} END"
        value = f"CAST({arguments[0]} AS {self.added_in})"
        signed = f"CASE WHEN {SIGNED} > 0 THEN {value} ELSE -{value} END"
        return f"CASE WHEN {' AND '.join(conditions)} THEN {signed} END"

    def combine(self) -> str:
        """The aggregate that makes one of several."""
        aggregate = "sum" if self.kind in (PartKind.COUNT, PartKind.SUM) else self.kind
        return f"{aggregate}({self.name})"

    def settle(self, value: str) -> str:
        """The part as it is kept: 0 where nothing is counted or added."""
        cast = f"CAST({value} AS {self.type})"
        if self.kind in (PartKind.COUNT, PartKind.SUM):
            return f"coalesce({cast}, CAST(0 AS {self.type}))"
        return cast


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafParts:
    """A leaf of a variable that can be added to."""

    variable: Variable
    entry: str
    """Its name in `_state`."""
    adding: Adding
    parts: tuple[Part, ...]
    value: str
    """Its value, in SQL over its parts."""
    kept: tuple[Part, ...]
    """The parts that the value of the variable does not tell, in the order in which `_state` has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UseParts:
    """The variables of a use that can be added to."""

    use: Use
    leaves: tuple[LeafParts, ...]

    @property
    def parts(self) -> tuple[Part, ...]:
        """Each once, although several variables have it."""
        return tuple({part.name: part for leaf in self.leaves for part in leaf.parts}.values())

    def get(self, name: str) -> Variable:
        return next(leaf.variable for leaf in self.leaves if leaf.variable.name == name)

    def of(self, variable: Variable) -> list[LeafParts]:
        return [leaf for leaf in self.leaves if leaf.variable.name == variable.name]

    def fill(self, variable: Variable) -> str:
        """The value of a variable, in SQL over parts."""
        values = iter(self.of(variable))
        return cut_select(variable.select).fill(lambda _: f"({next(values).value})")

    def only(self, names: Collection[str]) -> "UseParts":
        """Those of some variables."""
        return UseParts(use=self.use, leaves=tuple(x for x in self.leaves if x.variable.name in names))


def make_parts(use: Use, variables: Sequence[Variable], rows: DataFrame, prefix: str) -> UseParts:
    """The parts of the variables of a use that can be added to. `rows` are those of its dataset.

    `prefix` keeps the parts of several uses apart.
    """
    stored = {field.name: field.dataType.simpleString() for field in rows.schema}
    added = [v for v in variables if v.accumulation is not None and not find_obstacle(v.accumulation, stored)]
    pairs = [
        (variable, number, leaf, addend)
        for variable in added
        if variable.accumulation is not None
        for number, (leaf, addend) in enumerate(
            zip(cut_select(variable.select).leaves, variable.accumulation.addends, strict=True), start=1
        )
    ]
    typed = [
        (leaf.arguments[0], addend.adding) for _, _, leaf, addend in pairs if addend.adding is not _COUNT
    ]
    types = _find_types(rows, [argument for argument, _ in typed])
    unfit = {argument for argument, adding in typed if not _fits(types[argument], adding)}
    refused = {
        v.name for v, _, leaf, addend in pairs if addend.adding is not _COUNT and leaf.arguments[0] in unfit
    }
    maker = _Maker(prefix=prefix)
    leaves = tuple(
        maker.make(variable, f"{variable.name}.{number}", leaf, addend.adding, types)
        for variable, number, leaf, addend in pairs
        if variable.name not in refused
    )
    return UseParts(use=use, leaves=leaves)


def _fits(type_: DataType, adding: Adding) -> bool:
    """Whether Spark gives an argument a type that can be added, as the declaration has promised."""
    if not adding.takes_back:
        return not isinstance(type_, NullType)
    if isinstance(type_, DecimalType):
        return type_.precision <= MOST_SUMMED_DIGITS
    return isinstance(type_, IntegralType)


@dataclass(slots=True, kw_only=True)
class _Maker:
    prefix: str
    made: dict[tuple[object, ...], Part] = field(default_factory=dict)

    def make(
        self, variable: Variable, entry: str, leaf: Leaf, adding: Adding, types: Mapping[str, DataType]
    ) -> LeafParts:
        of = variable.accumulation
        assert of is not None
        count = self._part(PartKind.COUNT, variable, leaf, "bigint")
        parts: tuple[Part, ...] = (count,)
        kept: tuple[Part, ...] = (count,)
        value = count.name
        if adding is not Adding.COUNT:
            type_ = types[leaf.arguments[0]]
            match adding:
                case Adding.SUM:
                    total = self._part(PartKind.SUM, variable, leaf, _sum_type(type_))
                    parts = (count, total)
                    kept = (count,) if of.is_alone else parts
                    value = f"CASE WHEN {count.name} > 0 THEN {total.name} END"
                case Adding.AVERAGE:
                    total = self._part(PartKind.SUM, variable, leaf, _total_type(type_))
                    parts = kept = (count, total)
                    value = _write_average(count.name, total.name, type_)
                case Adding.LEAST | Adding.GREATEST:
                    kind = PartKind.LEAST if adding is Adding.LEAST else PartKind.GREATEST
                    most = self._part(kind, variable, leaf, type_.simpleString())
                    parts = (count, most) if of.is_alone and of.has_default else (most,)
                    kept = (count,) if of.is_alone else (most,)
                    value = most.name
        kept = () if of.value_tells else kept
        return LeafParts(variable=variable, entry=entry, adding=adding, parts=parts, value=value, kept=kept)

    def _part(self, kind: PartKind, variable: Variable, leaf: Leaf, type_: str) -> Part:
        # Texts with `:as_of` in them: two that are equal at one time may differ at another.
        counted = leaf.function if kind is PartKind.COUNT and leaf.function == "count_if" else ""
        same = (kind, counted, leaf.arguments, leaf.where, variable.where, variable.window, type_)
        name = f"__{self.prefix}_{len(self.made)}"
        return self.made.setdefault(
            same, Part(name=name, kind=kind, variable=variable, leaf=leaf, type=type_)
        )


def _find_types(rows: DataFrame, arguments: Sequence[str]) -> dict[str, DataType]:
    """The types of expressions. One question to Spark, whatever their number."""
    different = list(dict.fromkeys(arguments))
    # `:as_of` is a timestamp, whichever.
    filled = [F.expr(fill_time(text, datetime(2000, 1, 1, tzinfo=UTC))) for text in different]
    schema = rows.select(*(column.alias(f"a{i}") for i, column in enumerate(filled))).schema
    return {text: field.dataType for text, field in zip(different, schema, strict=True)}


def _sum_type(type_: DataType) -> str:
    """The type of Spark's `sum`."""
    if isinstance(type_, DecimalType):
        return f"decimal({min(type_.precision + 10, 38)},{type_.scale})"
    return "bigint"


def _total_type(type_: DataType) -> str:
    """The type of the sum of an average, which has no type of its own to overflow."""
    return ADDED_WHOLE if isinstance(type_, LongType) else _sum_type(type_)


def _write_average(count: str, total: str, type_: DataType) -> str:
    """The exact sum over the count: a double for whole numbers, else a decimal with four more digits.

    The whole part and the rest are divided apart. A division of long decimals at once would lose digits.
    """
    if not isinstance(type_, DecimalType):
        return f"CAST({total} AS DOUBLE) / nullif({count}, 0)"
    precision, scale = type_.precision, type_.scale
    whole = f"CAST({total} div {count} AS DECIMAL({max(precision - scale, 1)},0))"
    rest = f"CAST({total} % CAST({count} AS DECIMAL(12,0)) AS DECIMAL({12 + scale},{scale}))"
    rest = f"CAST({rest} / CAST({count} AS DECIMAL(12,0)) AS DECIMAL({scale + 5},{scale + 4}))"
    return f"CASE WHEN {count} > 0 THEN CAST({whole} + {rest} AS DECIMAL({precision + 4},{scale + 4})) END"
