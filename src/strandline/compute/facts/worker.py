"""Facts: the rows of a decode that pass."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.compute.keys import user_columns
from strandline.compute.shape import fit_types
from strandline.lake.staging import Staged, stage
from strandline.lake.table import get_table
from strandline.lake.work import Expected, Prepared, Work, Write
from strandline.model.columns import CONFIG, DELETED, INGESTED_AT, KEY, LAST_PLACE, PAYLOAD, POSITION, quote
from strandline.model.commits import Operation
from strandline.model.errors import WorkError
from strandline.model.plan import Strategy
from strandline.model.project import FactDataset
from strandline.model.scope import Rows

from .decode import ACCEPTED, DERIVED, OUTCOME, PASSED_OVER, QUARANTINED, REASON, SLUG
from .export_oracle import expect_live, find_live, mark_live
from .received import CONFLICT, count_read, decode_received, facts_of, stage_decoded


def prepare(work: Work) -> Prepared:
    """Decode what the source received since the cursor, and append what passes.

    For a new or refilled dataset this is everything that was received.
    """
    dataset = facts_of(work)
    full = work.task.strategy is Strategy.FULL
    staged = stage_decoded(work, dataset, full=full)
    counts = _l10(staged)
    rows = (
        staged.read(work.session)
        .where(F.col(OUTCOME).isin(ACCEPTED, DERIVED))
        .drop(OUTCOME, SLUG, REASON, PAYLOAD)
    )
    if isinstance(work.task.scope, Rows) and work.task.scope.refused:
        released = _release(work, dataset)
        rows = rows.unionByName(released.read(work.session))
        for name, moved in released.counts.items():
            counts[name] += moved
            counts["quarantined"] -= moved
    rows = rows.withColumn(CONFIG, F.lit(work.config.hash))
    if (
        not full
        and any(column.type is None for column in dataset.columns)
        and (own := work.read_own()) is not None
    ):
        rows = fit_types(rows, own, work)  # the SQL alone determines the type of such a column
    written = counts["accepted"] + counts["derived"]
    operation = Operation.OVERWRITE if full else Operation.APPEND if written else Operation.COUNTS
    return Prepared(
        write=Write(operation=operation, rows=rows),
        rows_read=count_read(work, dataset, full=full),
        rows_written=written,
        rows_full=work.input_rows.get(dataset.source, 0),
        live_rows=written if full else work.live_rows + written,
        counts=counts,
        whole=full,
        scope=Rows(count=counts["offered"], of="facts offered"),
    )


def expect(work: Work) -> Expected:
    """The decode of everything that was received.

    Which facts of complete exports are live is found without the facts that a run derives.
    """
    dataset, own = facts_of(work), work.read_own()
    assert own is not None
    received = work.read_all(dataset.source)
    rows = decode_received(work, dataset, received, own=None).where(F.col(OUTCOME).isin(ACCEPTED, DERIVED))
    columns = [c for c in user_columns(rows.columns) if not c.startswith("__")]
    compared = [*columns, *([DELETED] if dataset.record_set else []), POSITION]
    # Which deleting facts are derived from exports depends on what had arrived when, so they are not
    # compared. Which facts are live does not depend on it, and is compared.
    real = (F.col(f"{POSITION}.place") > 0) & (F.col(f"{POSITION}.place") < LAST_PLACE)
    rows, facts = rows.where(real).select(*map(quote, compared)), own.where(real)
    if dataset.complete:
        rows = mark_live(rows, expect_live(received, dataset, work.project.calendar), dataset)
        facts = mark_live(facts, find_live(own, dataset), dataset)
    return Expected(rows=rows, published=facts, sampled_by=[POSITION])


def _release(work: Work, dataset: FactDataset) -> Staged:
    """Decode the quarantined positions again.

    The result is what now passes and is not among the facts already.

    Elements of the same message may be among them. The counts are what leaves the quarantine: `accepted`,
    `duplicates` and `passed_over` add up to the number of rows that leave it (L10).
    """
    quarantine = f"{dataset.name}_quarantine"
    held = work.read(quarantine, get_table(work.lake.table(quarantine)).version)
    refused = held.select(POSITION).distinct()
    before = work.read(dataset.source, work.after(dataset.source)).join(
        F.broadcast(refused), POSITION, "left_semi"
    )
    own = work.read_own()
    decoded = decode_received(work, dataset, before, own=own)
    if dataset.identity and own is not None:
        _refuse_overtaking(dataset, decoded, own)
    passed = decoded.where(F.col(OUTCOME) == ACCEPTED).drop(OUTCOME, SLUG, REASON, PAYLOAD)
    if own is not None:
        there = own.join(F.broadcast(refused), POSITION, "left_semi").drop(CONFIG)
        passed = passed.exceptAll(
            there.select(
                *(F.col(quote(c)) if c in there.columns else F.lit(None).alias(c) for c in passed.columns)
            )
        )
    released = stage(passed, f"{work.staging}/released", {"accepted": F.count(F.lit(1))})
    left = decoded.agg(
        F.count_if(F.col(OUTCOME) == QUARANTINED), F.count_if(F.col(OUTCOME) == PASSED_OVER)
    ).collect()[0]
    moved = {"accepted": released.counts["accepted"], "passed_over": left[1]}
    moved["duplicates"] = held.count() - left[0] - sum(moved.values())
    return Staged(path=released.path, schema=released.schema, counts=moved)


def _refuse_overtaking(dataset: FactDataset, decoded: DataFrame, own: DataFrame) -> None:
    """Refuse a released fact that was received before the published fact of the same identity.

    The fact that was received first counts, and an append cannot replace the other one.
    """
    identity = [quote(c) for c in dataset.identity]
    known = own.select(KEY, *identity, F.struct(INGESTED_AT, POSITION).alias("__standing"))
    refused = decoded.where(F.col(SLUG) == CONFLICT)
    late = refused.join(known, [KEY, *dataset.identity]).where(
        F.struct(INGESTED_AT, POSITION) < F.col("__standing")
    )
    if overtaking := late.select(*identity).limit(1).collect():
        named = ", ".join(
            f"`{name}` = {value}" for name, value in zip(dataset.identity, overtaking[0], strict=True)
        )
        raise WorkError(
            f"{dataset.place}: a quarantined fact of `{dataset.name}` with {named} now passes and was"
            " received before the published one.",
            remedy=f"`strandline backfill {dataset.name} --all` decodes everything again: the first received"
            " counts, the other is quarantined.",
            slug="release-overtakes",
        )


def _l10(staged: Staged) -> dict[str, int]:
    """The counts of L10: offered = accepted + duplicates + quarantined + passed over.

    Derived facts come on top.
    """
    counts = {name: staged.counts[name] for name in ("accepted", "duplicates", "quarantined", "passed_over")}
    return {"offered": sum(counts.values()), **counts, "derived": staged.counts["derived"]}
