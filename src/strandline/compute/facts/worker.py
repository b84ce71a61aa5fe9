"""Facts and their quarantine: the rows that pass and the rows that fail of one decode."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from strandline.compute.keys import row_hash, user_columns
from strandline.compute.shape import fit_types
from strandline.lake.log import count_added
from strandline.lake.staging import Staged, stage
from strandline.lake.table import get_table, open_table
from strandline.lake.work import Prepared, Work, Write
from strandline.model.columns import CONFIG, INGESTED_AT, KEY, PAYLOAD, POSITION, native_name, quote
from strandline.model.errors import WorkError
from strandline.model.node import Quarantine
from strandline.model.plan import Strategy
from strandline.model.project import FactDataset
from strandline.model.records import Operation

from .decode import ACCEPTED, DERIVED, DUPLICATE, OUTCOME, PASSED_OVER, QUARANTINED, REASON, SLUG, decode
from .exports import derive_deletions

CONFLICT = "identity-conflict"


def prepare_facts(work: Work) -> Prepared:
    """Decode what the source received since the cursor (all of it for a new or refilled dataset) and append what passes."""
    dataset = _facts_of(work)
    full = work.task.strategy is Strategy.FULL
    staged = stage_decoded(work, dataset, full=full)
    counts = _l10(staged)
    rows = staged.read(work.session).where(F.col(OUTCOME).isin(ACCEPTED, DERIVED)).drop(OUTCOME, SLUG, REASON, PAYLOAD)
    if work.task.release:
        released = _release(work, dataset)
        rows = rows.unionByName(released.read(work.session))
        for name, moved in released.counts.items():
            counts[name] += moved
            counts["quarantined"] -= moved
    rows = rows.withColumn(CONFIG, F.lit(work.config.hash))
    if not full and any(column.type is None for column in dataset.columns) and (own := work.read_own()) is not None:
        rows = fit_types(rows, own, work)  # the type of such a column is whatever its SQL gives
    written = counts["accepted"] + counts["derived"]
    operation = Operation.OVERWRITE if full else Operation.APPEND if written else Operation.COUNTS
    return Prepared(
        write=Write(operation=operation, rows=rows),
        rows_read=_count_read(work, dataset, full=full),
        rows_written=written,
        rows_full=work.input_rows.get(dataset.source, 0),
        live_rows=written if full else work.live_rows + written,
        counts=counts,
        whole=full,
        scope=f"{counts['offered']:,} facts offered",
    )


def prepare_quarantine(work: Work) -> Prepared:
    """Append the rows of the same decode that failed."""
    dataset = _facts_of(work)
    full = work.task.strategy is Strategy.FULL
    source_rows = work.input_rows.get(dataset.source, 0)
    shared = _decoded_by_facts(work, dataset, full=full)
    staged = shared or stage_decoded(work, dataset, full=full)
    rows = staged.read(work.session).where(F.col(OUTCOME) == QUARANTINED)
    failed = staged.counts["quarantined"]
    if full and shared is None and not dataset.explode and (facts := _read_facts(work, dataset)) is not None:
        # The facts were not decoded again: what stands among them is not refused as well (L10).
        rows = rows.join(facts.select(POSITION), POSITION, "left_anti")
        failed = rows.count()
    if not failed and (not full or work.own_version is None):
        return Prepared(write=None, rows_full=source_rows, live_rows=work.live_rows, scope="no row failed")
    rows = rows.select(
        F.col(SLUG).alias("slug"),
        F.col(REASON).alias("reason"),
        F.col(PAYLOAD).alias("payload"),
        POSITION,
        INGESTED_AT,
        F.lit(work.config.hash).alias(CONFIG),
    )
    return Prepared(
        write=Write(operation=Operation.OVERWRITE if full else Operation.APPEND, rows=rows),
        rows_read=_count_read(work, dataset, full=full),
        rows_written=failed,
        rows_full=source_rows,
        live_rows=failed if full else work.live_rows + failed,
        whole=full,
        scope=f"{failed} rows that failed",
    )


def _release(work: Work, dataset: FactDataset) -> Staged:
    """Decode the quarantined positions again; what now passes, less what is among the facts already (elements of the same message).

    Its counts are what moves from the quarantine: `accepted`, `duplicates` and `passed_over`, together as many rows as leave it (L10).
    """
    quarantine = f"{dataset.name}_quarantine"
    held = work.read(quarantine, get_table(work.lake.table(quarantine)).version)
    refused = held.select(POSITION).distinct()
    before = work.read(dataset.source, work.after(dataset.source)).join(F.broadcast(refused), POSITION, "left_semi")
    own = work.read_own()
    decoded = decode_received(work, dataset, before, own=own)
    if dataset.identity and own is not None:
        _refuse_overtaking(dataset, decoded, own)
    passed = decoded.where(F.col(OUTCOME) == ACCEPTED).drop(OUTCOME, SLUG, REASON, PAYLOAD)
    if own is not None:
        there = own.join(F.broadcast(refused), POSITION, "left_semi").drop(CONFIG)
        passed = passed.exceptAll(there.select(*(F.col(quote(c)) if c in there.columns else F.lit(None).alias(c) for c in passed.columns)))
    released = stage(passed, f"{work.staging}/released", {"accepted": F.count(F.lit(1))})
    left = decoded.agg(F.count_if(F.col(OUTCOME) == QUARANTINED), F.count_if(F.col(OUTCOME) == PASSED_OVER)).collect()[0]
    moved = {"accepted": released.counts["accepted"], "passed_over": left[1]}
    moved["duplicates"] = held.count() - left[0] - sum(moved.values())
    return Staged(path=released.path, schema=released.schema, counts=moved)


def _refuse_overtaking(dataset: FactDataset, decoded: DataFrame, own: DataFrame) -> None:
    """The fact of an identity that was received first stands. One that passes only now cannot take the place of another by an append."""
    identity = [quote(c) for c in dataset.identity]
    known = own.select(KEY, *identity, F.struct(INGESTED_AT, POSITION).alias("__standing"))
    refused = decoded.where(F.col(SLUG) == CONFLICT)
    late = refused.join(known, [KEY, *dataset.identity]).where(F.struct(INGESTED_AT, POSITION) < F.col("__standing"))
    if found := late.select(*identity).limit(1).collect():
        named = ", ".join(f"`{name}` = {value}" for name, value in zip(dataset.identity, found[0], strict=True))
        raise WorkError(
            f"{dataset.place}: a quarantined fact of `{dataset.name}` with {named} now passes and was received before the one that stands.",
            remedy=f"`strandline backfill {dataset.name} --all` decodes everything again: the first received stands,"
            " the other is set aside.",
            slug="release-overtakes",
        )


def stage_decoded(work: Work, dataset: FactDataset, *, full: bool) -> Staged:
    """Decode an increment (or everything) once, count every outcome, keep what passes and what fails."""
    after, upto = (-1 if full else work.after(dataset.source)), work.version(dataset.source)
    received = work.read_all(dataset.source) if full else work.read_added(dataset.source)
    rows = decode_received(work, dataset, received, own=_read_facts(work, dataset) if dataset.identity and not full else None)
    counts = {
        name: F.count_if(F.col(OUTCOME) == outcome)
        for name, outcome in (
            ("accepted", ACCEPTED),
            ("duplicates", DUPLICATE),
            ("quarantined", QUARANTINED),
            ("passed_over", PASSED_OVER),
            ("derived", DERIVED),
        )
    }
    keep = F.col(OUTCOME).isin(ACCEPTED, DERIVED, QUARANTINED)
    staged = stage(rows, f"{work.staging}/decoded", counts, keep)
    work.shared.keep_decoded(dataset.name, after, upto, staged)
    return staged


def _read_facts(work: Work, dataset: FactDataset) -> DataFrame | None:
    """The facts that stand: by them an identity is known, also to the quarantine."""
    if isinstance(work.node.definition, FactDataset):
        return work.read_own()
    table = open_table(work.lake.table(f"{dataset.name}_facts"))
    return None if table is None else work.read(f"{dataset.name}_facts", table.version)


def decode_received(work: Work, dataset: FactDataset, received: DataFrame, own: DataFrame | None) -> DataFrame:
    """The whole decode: columns and checks, what complete exports imply, identities that count once."""
    complete = work.project.get(dataset.source).traits.complete
    real = received.where(F.col(f"{POSITION}.place") > 0) if complete else received
    require_columns(real, dataset)
    rows = decode(real, dataset, work.project.calendar)
    if complete:
        rows = derive_deletions(work, dataset, received, rows)
    if dataset.identity:
        rows = _count_once(rows, dataset, own)
    return rows


def require_columns(received: DataFrame, dataset: FactDataset) -> None:
    """A native source tells its columns only when it is read: say what is missing before Spark does."""
    if not dataset.takes_other_columns:
        return
    _refuse_unnamed(received, dataset)
    have = {c for c in received.columns if not c.startswith("__")} | {c.name for c in dataset.columns}
    record_set = dataset.record_set
    order_by = [c for c in record_set.order_by if c != POSITION] if record_set else []
    wanted = {*(record_set.key if record_set else dataset.identity), *order_by, *dataset.require}
    if missing := sorted(wanted - have):
        raise WorkError(
            f"{dataset.place}: `{dataset.name}` needs the column {', '.join(f'`{m}`' for m in missing)}, which `{dataset.source}` lacks.",
            remedy=f"Its columns are {', '.join(sorted(have - set(dataset.require)))}. Correct the name, or map it under `columns:`.",
            slug="missing-column",
        )


def _refuse_unnamed(received: DataFrame, dataset: FactDataset) -> None:
    """A fact's column may not begin with two underscores: a source's that does is taken under another name, or nothing is."""
    taken = {native_name(".".join(c.path)) for c in dataset.columns if c.path}
    if left := [name for name in received.columns if name.startswith("__") and name not in taken]:
        named = ", ".join(f"{name.strip('_') or 'other'}: {{path: {name}}}" for name in left)
        raise WorkError(
            f"{dataset.place}: the files of `{dataset.source}` have {', '.join(f'`{name}`' for name in left)}; a column of `{dataset.name}`"
            " may not begin with `__`, nor have the name of a metadata column.",
            remedy=f"Take them under other names: `columns: {{{named}}}`.",
            slug="metadata-column",
        )


def _count_once(rows: DataFrame, dataset: FactDataset, own: DataFrame | None) -> DataFrame:
    """Facts with the same identity count once: the first received stands, an equal one is a duplicate, another is quarantined."""
    declared = [c for c in user_columns(rows.columns) if not c.startswith("__")]
    passed = F.col(OUTCOME) == ACCEPTED
    candidates = rows.where(passed).withColumn("__known", F.lit(False))
    if own is not None:
        known = own.join(F.broadcast(candidates.select(KEY).distinct()), KEY, "left_semi").withColumn("__known", F.lit(True))
        candidates = candidates.unionByName(known.drop(CONFIG), allowMissingColumns=True)
    first = Window.partitionBy(KEY, *(quote(c) for c in dataset.identity)).orderBy(
        F.col("__known").desc(), F.col(INGESTED_AT), F.col(POSITION), F.col("__hash")
    )
    judged = candidates.withColumn("__hash", row_hash(declared)).withColumns(
        {"__first": F.first("__hash").over(first), "__place": F.row_number().over(first)}
    )
    conflict = F.col("__hash") != F.col("__first")
    judged = (
        judged.where(~F.col("__known"))
        .withColumn(OUTCOME, F.when(F.col("__place") == 1, ACCEPTED).when(conflict, QUARANTINED).otherwise(DUPLICATE))
        .withColumn(SLUG, F.when(F.col(OUTCOME) == QUARANTINED, CONFLICT))
        .withColumn(REASON, F.when(F.col(OUTCOME) == QUARANTINED, "A fact with this identity and other values was received before."))
    )
    return judged.drop("__known", "__hash", "__first", "__place").unionByName(rows.where(~passed))


def _count_read(work: Work, dataset: FactDataset, *, full: bool) -> int:
    """Rows of the source that the task read."""
    source = dataset.source
    return work.input_rows.get(source, 0) if full else count_added(work.lake.table(source), work.after(source), work.version(source))


def _l10(staged: Staged) -> dict[str, int]:
    """The counts of L10: offered = accepted + duplicates + quarantined + passed over; derived facts stand beside them."""
    counts = {name: staged.counts[name] for name in ("accepted", "duplicates", "quarantined", "passed_over")}
    return {"offered": sum(counts.values()), **counts, "derived": staged.counts["derived"]}


def _decoded_by_facts(work: Work, dataset: FactDataset, *, full: bool) -> Staged | None:
    """What the facts' task of this run decoded, if it was the same stretch of the source."""
    return work.shared.find_decoded(dataset.name, -1 if full else work.after(dataset.source), work.version(dataset.source))


def _facts_of(work: Work) -> FactDataset:
    match work.node.definition:
        case FactDataset() as dataset:
            return dataset
        case Quarantine(facts=dataset):
            return dataset
        case other:
            raise TypeError(f"{work.node.name} is a {type(other).__name__}, not facts")
