"""Complete exports: a key that one export has and the next-ranked one lacks gets a deleting fact."""

from functools import reduce
from itertools import pairwise
from operator import and_

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.lake.work import Work
from strandline.model.columns import (
    DELETED,
    INGESTED_AT,
    KEY,
    LAST_PLACE,
    POSITION,
    SOURCE_AT,
    SOURCE_TS,
    quote,
)
from strandline.model.errors import WorkError
from strandline.model.project import FactDataset

from .decode import ACCEPTED, DERIVED, OUTCOME, QUARANTINED, decode
from .source_time import convert_column


def derive_deletions(work: Work, dataset: FactDataset, received: DataFrame, rows: DataFrame) -> DataFrame:
    """Add the deleting facts that the received exports imply.

    Each export is compared with both its neighbours among all received so far. The outcome depends on which
    exports came together and on their ranks, never on the order inside a batch. A snapshot folded from it is
    the same for any arrival order.
    """
    assert dataset.record_set is not None
    order_by = [c for c in dataset.record_set.order_by if c != POSITION]
    everything = work.read_all(dataset.source)
    decoded = decode(everything.where(F.col(f"{POSITION}.place") > 0), dataset, work.project.calendar)
    key = [quote(c) for c in dataset.record_set.key]
    # An export contains a key even if another value of its row does not fit: that does not delete the record.
    has_key = reduce(and_, (F.col(c).isNotNull() for c in key))
    decoded = decoded.where((F.col(OUTCOME) == ACCEPTED) | ((F.col(OUTCOME) == QUARANTINED) & has_key))
    named = decoded.withColumns({"__name": F.col(f"{POSITION}.name"), "__part": F.col(f"{POSITION}.part")})
    ranked = named.where(F.col(OUTCOME) == ACCEPTED)
    exports = _list_exports(work, dataset, ranked, everything, order_by)
    new = {(r[0], r[1]) for r in received.select(f"{POSITION}.name", f"{POSITION}.part").distinct().collect()}
    pairs = _neighbours(exports, new)
    if not pairs:
        return rows
    pair_rows = work.session.createDataFrame(
        [
            (a["name"], a["part"], b["name"], b["part"], b["rank_from"], b["rank_part"], b["at"])
            for a, b in pairs
        ],
        "__fn string, __fp bigint, __tn string, __tp bigint, __rn string, __rp bigint, __at timestamp",
    )
    had = named.select(*key, KEY, "__name", "__part").distinct()
    expected = had.join(
        F.broadcast(pair_rows), (F.col("__name") == F.col("__fn")) & (F.col("__part") == F.col("__fp"))
    ).drop("__name", "__part")
    has = named.select(
        *(F.col(c).alias(f"__k{i}") for i, c in enumerate(key)),
        F.col("__name").alias("__hn"),
        F.col("__part").alias("__hp"),
    )
    same = [F.col(c).eqNullSafe(F.col(f"__k{i}")) for i, c in enumerate(key)]
    gone = expected.join(
        has, [*same, F.col("__tn") == F.col("__hn"), F.col("__tp") == F.col("__hp")], "left_anti"
    )
    if order_by:  # `[_source_position]` alone needs nothing from the rows
        ranks = ranked.groupBy("__name", "__part").agg(*(F.max(quote(c)).alias(f"__o_{c}") for c in order_by))
        gone = gone.join(
            F.broadcast(ranks),
            (F.col("__rn") == F.col("__name")) & (F.col("__rp") == F.col("__part")),
            "left",
        )
    return rows.unionByName(_deleting_facts(gone, rows, dataset, order_by), allowMissingColumns=True)


def _deleting_facts(gone: DataFrame, rows: DataFrame, dataset: FactDataset, order_by: list[str]) -> DataFrame:
    """Key and order columns; everything else is NULL."""
    assert dataset.record_set is not None
    emptied = (F.col("__rn") != F.col("__tn")) | (F.col("__rp") != F.col("__tp"))
    place = F.when(emptied, F.lit(LAST_PLACE)).otherwise(F.lit(0)).cast("bigint")
    position = F.struct(F.col("__rn").alias("name"), F.col("__rp").alias("part"), place.alias("place"))
    values = {
        **{c: F.col(quote(c)) for c in dataset.record_set.key},
        **{c: F.col(f"__o_{c}") for c in order_by if c not in dataset.record_set.key},
        KEY: F.col(KEY),
        POSITION: position,
        INGESTED_AT: F.col("__at"),
        OUTCOME: F.lit(DERIVED),
        DELETED: F.lit(True),
    }
    name = dataset.source_at.column if dataset.source_at else None
    if name is not None and name in order_by:
        values[SOURCE_AT], values[SOURCE_TS] = convert_column(F.col(f"__o_{name}"), rows, dataset, name)
    return gone.select(
        *(values.get(c, F.lit(None)).cast(rows.schema[c].dataType).alias(c) for c in rows.columns)
    )


def _list_exports(
    work: Work, dataset: FactDataset, named: DataFrame, everything: DataFrame, order_by: list[str]
) -> list[dict[str, object]]:
    """Every received export, lowest rank first. A file with two values of `order_by` is refused."""
    ordered = (
        F.struct(*(F.col(quote(c)).alias(c) for c in order_by))
        if order_by
        else F.struct(F.lit(0).alias("none"))
    )
    export_rows = (
        named.groupBy("__name", "__part")
        .agg(
            F.min(ordered).alias("lo"),
            F.max(ordered).alias("hi"),
            F.min(INGESTED_AT).alias("at"),
            F.count(F.lit(1)).alias("n"),
        )
        .collect()
    )
    exports: list[dict[str, object]] = []
    for row in export_rows:
        if row["lo"] != row["hi"]:
            raise WorkError(
                f"{dataset.place}: the export `{row['__name']}` has more than one value of"
                f" {', '.join(f'`{c}`' for c in order_by)} "
                f"({tuple(row['lo'])} and {tuple(row['hi'])}), so it cannot be ranked as a whole.",
                remedy="Order a complete source by a column with one value per file,"
                " or by [_source_position].",
                slug="export-not-one-rank",
            )
        exports.append(
            {
                "name": row["__name"],
                "part": row["__part"],
                "rank": (tuple((v is not None, v) for v in row["lo"]), row["__name"], row["__part"]),
                "at": row["at"],
                "rank_from": row["__name"],
                "rank_part": row["__part"],
            }
        )
    exports.sort(key=lambda e: e["rank"])  # type: ignore[arg-type, return-value]
    empty = (
        everything.where(F.col(f"{POSITION}.place") == 0)
        .select(f"{POSITION}.name", f"{POSITION}.part", INGESTED_AT)
        .collect()
    )
    for name, part, at in sorted(empty, key=lambda r: (r[2], r[0])):
        _rank_empty(exports, name, part, at)
    return exports


def _rank_empty(exports: list[dict[str, object]], name: str, part: int, at: object) -> None:
    """An export without rows ranks after the newest one received before it."""
    before = [i for i, e in enumerate(exports) if e["at"] <= at and "empty" not in e]  # type: ignore[operator]
    if not before:
        return
    newest = exports[before[-1]]
    exports.insert(
        before[-1] + 1,
        {
            "name": name,
            "part": part,
            "rank": newest["rank"],
            "at": at,
            "rank_from": newest["name"],
            "rank_part": newest["part"],
            "empty": True,
        },
    )


def _neighbours(
    exports: list[dict[str, object]], new: set[tuple[str, int]]
) -> list[tuple[dict[str, object], dict[str, object]]]:
    """(export, next-ranked export) wherever one of the two is new."""
    return [
        (a, b) for a, b in pairwise(exports) if (a["name"], a["part"]) in new or (b["name"], b["part"]) in new
    ]
