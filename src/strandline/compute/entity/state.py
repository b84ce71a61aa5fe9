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


def keep(leaf: LeafParts) -> str:
    """What `_state` keeps of a leaf, as a column until the state is made. In SQL, with its name."""
    texts = ", ".join(f"CAST({part.name} AS STRING)" for part in leaf.kept)
    return f"array({texts}) AS {quote(name_entry(leaf.entry))}"


def name_entry(entry: str) -> str:
    return f"{_KEPT}{entry}"


def make_state(columns: Collection[str]) -> Column:
    """`_state` of a row with these columns: JSON with sorted keys, so that equal states have equal texts.

    One text of SQL, because each column that Python makes is a call to the JVM.
    """
    by_key = {c.removeprefix(_KEPT): c for c in columns if c.startswith(_KEPT)} | {"named": NAMED}
    entries = ", ".join(f"{quote(by_key[key])} AS {quote(key)}" for key in sorted(by_key))
    return F.expr(f"to_json(struct({entries}))")


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
    made = [f"{_READ}.{quote(entry)} AS {quote(name_entry(entry))}" for entry in entries]
    return read.selectExpr(*map(quote, published.columns), *made)


def read_parts(published: DataFrame, added: UseParts) -> DataFrame:
    """Published rows with the parts of variables that are added to, and whether one of them is lacking."""
    entries = [leaf.entry for leaf in added.leaves if leaf.kept]
    rows = read_state(published, entries)
    kept = {
        part.name: f"CAST({quote(name_entry(leaf.entry))}[{place}] AS {part.added_in}) AS {part.name}"
        for leaf in added.leaves
        for place, part in enumerate(leaf.kept)
    }
    told = {
        part.name: f"{_tell(part, leaf)} AS {part.name}"
        for leaf in added.leaves
        for part in leaf.parts
        if part.name not in kept
    }
    missing = "".join(f", {quote(name_entry(entry))} IS NULL" for entry in entries)
    lacks = f"greatest(false, false{missing}) AS {LACKS}"
    rows = rows.selectExpr(*map(quote, rows.columns), *kept.values(), lacks)
    return rows.selectExpr(*map(quote, rows.columns), *told.values()) if told else rows


def _tell(part: Part, leaf: LeafParts) -> str:
    """A part that follows from the published value of a variable, and perhaps from how many rows it has."""
    value = f"CAST({quote(leaf.variable.name)} AS {part.added_in})"
    if leaf.adding is Adding.COUNT or not leaf.kept:
        return value
    counted = leaf.kept[0].name
    nothing = f"CAST(0 AS {part.added_in})" if part.kind is PartKind.SUM else "NULL"
    return f"CASE WHEN {counted} > 0 THEN {value} ELSE {nothing} END"
