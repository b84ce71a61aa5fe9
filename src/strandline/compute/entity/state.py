"""`_state`: who names an entity, and what the values of its variables do not tell."""

from collections.abc import Collection, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StringType, StructField, StructType

from strandline.model.accumulation import Adding
from strandline.model.columns import STATE, quote

from .parts import LeafParts, Part, PartKind, UseParts

NAMED = "__named"
"""The names of the namers that name an entity, sorted."""
LACKS = "__lacks"
"""Whether `_state` lacks what is needed to add to a row: it was written when nothing was added to."""
_KEPT, _READ, _TEXTS = "__kept_", "__read", ArrayType(StringType())
"""An entry of `_state` is a list of texts, in the order of the parts of a leaf."""


def keep(leaf: LeafParts) -> Column:
    """What `_state` keeps of a leaf, as a column until the state is made."""
    return F.array(*(F.col(part.name).cast("string") for part in leaf.kept)).alias(name_entry(leaf.entry))


def name_entry(entry: str) -> str:
    return f"{_KEPT}{entry}"


def make_state(columns: Collection[str]) -> Column:
    """`_state` of a row with these columns: JSON with sorted keys, so that equal states have equal texts."""
    by_key = {c.removeprefix(_KEPT): c for c in columns if c.startswith(_KEPT)} | {"named": NAMED}
    return F.to_json(F.struct(*(F.col(quote(by_key[key])).alias(key) for key in sorted(by_key))))


def named_in_state() -> Column:
    """The namers that the `_state` of a published row lists."""
    return F.from_json(F.col(STATE), "named array<string>").getField("named")


def only_entries(entries: Collection[str]) -> Column:
    """`_state` of a published row with some entries alone: those of other columns say nothing."""
    state = F.from_json(F.col(STATE), "map<string, array<string>>")
    return F.to_json(F.map_filter(state, lambda key, _: key.isin("named", *entries)))


def read_state(published: DataFrame, entries: Sequence[str]) -> DataFrame:
    """Published rows with these entries of their state as columns. NULL where a state lacks one."""
    if not entries:
        return published
    schema = StructType([StructField(entry, _TEXTS) for entry in entries])
    read = published.withColumn(_READ, F.from_json(F.col(STATE), schema))
    return read.withColumns({name_entry(e): F.col(_READ).getField(e) for e in entries}).drop(_READ)


def read_parts(published: DataFrame, added: UseParts) -> DataFrame:
    """Published rows with the parts of variables that are added to, and whether one of them is lacking."""
    entries = [leaf.entry for leaf in added.leaves if leaf.kept]
    rows = read_state(published, entries)
    kept = {part.name: _read(part, leaf) for leaf in added.leaves for part in leaf.kept}
    told = {part.name: part for leaf in added.leaves for part in leaf.parts if part.name not in kept}
    leaves = {part.name: leaf for leaf in added.leaves for part in leaf.parts}
    lacking = [F.col(quote(name_entry(entry))).isNull() for entry in entries]
    rows = rows.withColumns({**kept, LACKS: F.greatest(F.lit(False), F.lit(False), *lacking)})
    return rows.withColumns({name: F.expr(_tell(part, leaves[name])) for name, part in told.items()})


def _read(part: Part, leaf: LeafParts) -> Column:
    return F.col(quote(name_entry(leaf.entry)))[leaf.kept.index(part)].cast(part.added_in)


def _tell(part: Part, leaf: LeafParts) -> str:
    """A part that follows from the published value of a variable, and perhaps from how many rows it has."""
    value = f"CAST({quote(leaf.variable.name)} AS {part.added_in})"
    if leaf.adding is Adding.COUNT or not leaf.kept:
        return value
    counted = leaf.kept[0].name
    nothing = f"CAST(0 AS {part.added_in})" if part.kind is PartKind.SUM else "NULL"
    return f"CASE WHEN {counted} > 0 THEN {value} ELSE {nothing} END"
