"""Facts and their quarantine: the rows that pass and the rows that fail of one decode."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from strandline.lake.log import count_added
from strandline.lake.staging import Staged, stage
from strandline.lake.state import get_table
from strandline.lake.work import Prepared, Work, Write
from strandline.model.columns import CONFIG, INGESTED_AT, KEY, PAYLOAD, POSITION, quote
from strandline.model.errors import WorkError
from strandline.model.node import Quarantine
from strandline.model.plan import Strategy
from strandline.model.project import FactDataset, FileSource
from strandline.model.records import Operation

from .decode import ACCEPTED, DERIVED, DUPLICATE, OUTCOME, PASSED_OVER, QUARANTINED, REASON, SLUG, decode
from .exports import derive_deletions
from .keys import row_hash, user_columns


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
        counts["accepted"] += released.counts["rows"]
        counts["quarantined"] -= released.counts["rows"]
    rows = rows.withColumn(CONFIG, F.lit(work.config.hash))
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
    staged = _decoded_by_facts(work, dataset, full=full) or stage_decoded(work, dataset, full=full)
    failed = staged.counts["quarantined"]
    if not failed and (not full or work.own_version is None):
        return Prepared(write=None, rows_full=source_rows, live_rows=work.live_rows, scope="no row failed")
    rows = staged.read(work.session).where(F.col(OUTCOME) == QUARANTINED)
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
    """Decode the quarantined positions again; what now passes, less what is among the facts already (elements of the same message)."""
    quarantine = f"{dataset.name}_quarantine"
    refused = work.read(quarantine, get_table(work.lake.table(quarantine)).version()).select(POSITION).distinct()
    before = work.read(dataset.source, work.after(dataset.source)).join(F.broadcast(refused), POSITION, "left_semi")
    own = work.read_own()
    passed = decode_received(work, dataset, before, own=own).where(F.col(OUTCOME) == ACCEPTED).drop(OUTCOME, SLUG, REASON, PAYLOAD)
    if own is not None:
        there = own.join(F.broadcast(refused), POSITION, "left_semi").drop(CONFIG)
        passed = passed.exceptAll(there.select(*(F.col(quote(c)) if c in there.columns else F.lit(None).alias(c) for c in passed.columns)))
    return stage(passed, f"{work.staging}/released", {"rows": F.count(F.lit(1))})


def stage_decoded(work: Work, dataset: FactDataset, *, full: bool) -> Staged:
    """Decode an increment (or everything) once, count every outcome, keep what passes and what fails."""
    after, upto = (-1 if full else work.after(dataset.source)), work.version(dataset.source)
    received = work.read_all(dataset.source) if full else work.read_added(dataset.source)
    rows = decode_received(work, dataset, received, own=work.read_own() if dataset.identity and not full else None)
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


def decode_received(work: Work, dataset: FactDataset, received: DataFrame, own: DataFrame | None) -> DataFrame:
    """The whole decode: columns and checks, what complete exports imply, identities that count once."""
    source = work.project.get(dataset.source).definition
    assert isinstance(source, FileSource)
    real = received.where(F.col(f"{POSITION}.place") > 0) if source.complete else received
    require_columns(real, dataset)
    rows = decode(real, dataset, work.project.calendar)
    if source.complete:
        rows = derive_deletions(work, dataset, source, received, rows)
    if dataset.identity:
        rows = _count_once(rows, dataset, own)
    return rows


def require_columns(received: DataFrame, dataset: FactDataset) -> None:
    """A native source tells its columns only when it is read: say what is missing before Spark does."""
    if not dataset.takes_other_columns:
        return
    have = {c.lower() for c in received.columns} | {c.name for c in dataset.columns}
    record_set = dataset.record_set
    order_by = [c for c in record_set.order_by if c != POSITION] if record_set else []
    wanted = {*(record_set.key if record_set else dataset.identity), *order_by, *dataset.require}
    if missing := sorted(wanted - have):
        raise WorkError(
            f"{dataset.place}: `{dataset.name}` needs the column {', '.join(f'`{m}`' for m in missing)}, which `{dataset.source}` lacks.",
            remedy=f"Its columns are {', '.join(sorted(have - set(dataset.require)))}. Correct the name, or map it under `columns:`.",
            slug="missing-column",
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
        .withColumn(SLUG, F.when(F.col(OUTCOME) == QUARANTINED, "identity-conflict"))
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
