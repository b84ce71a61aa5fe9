"""What a source received, decoded once for the facts and for their quarantine."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from strandline.compute.keys import row_hash, user_columns
from strandline.lake.log import count_added
from strandline.lake.staging import Staged, stage
from strandline.lake.table import open_table
from strandline.lake.work import Work
from strandline.model.columns import CONFIG, INGESTED_AT, KEY, POSITION, native_name, quote
from strandline.model.errors import WorkError
from strandline.model.project import FactDataset, Quarantine

from .decode import ACCEPTED, DERIVED, DUPLICATE, OUTCOME, PASSED_OVER, QUARANTINED, REASON, SLUG, decode
from .exports import derive_deletions

CONFLICT = "identity-conflict"


def stage_decoded(work: Work, dataset: FactDataset, *, full: bool) -> Staged:
    """Decode an increment (or everything) once, count every outcome, keep what passes and what fails."""
    after, upto = (-1 if full else work.after(dataset.source)), work.version(dataset.source)
    received = work.read_all(dataset.source) if full else work.read_added(dataset.source)
    rows = decode_received(
        work, dataset, received, own=read_facts(work, dataset) if dataset.identity and not full else None
    )
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


def read_facts(work: Work, dataset: FactDataset) -> DataFrame | None:
    """The published facts. They decide, also for the quarantine, which identities are known."""
    if isinstance(work.node.definition, FactDataset):
        return work.read_own()
    table = open_table(work.lake.table(f"{dataset.name}_facts"))
    return None if table is None else work.read(f"{dataset.name}_facts", table.version)


def decode_received(
    work: Work, dataset: FactDataset, received: DataFrame, own: DataFrame | None
) -> DataFrame:
    """The whole decode: columns and checks, what complete exports imply, identities that count once."""
    real = received.where(F.col(f"{POSITION}.place") > 0) if dataset.complete else received
    require_columns(real, dataset)
    rows = decode(real, dataset, work.project.calendar)
    if dataset.complete:
        rows = derive_deletions(work, dataset, received, rows)
    if dataset.identity:
        rows = _count_once(rows, dataset, own)
    return rows


def require_columns(received: DataFrame, dataset: FactDataset) -> None:
    """Report missing columns before Spark does.

    The columns of a native source are known only when it is read.
    """
    if not dataset.takes_other_columns:
        return
    _refuse_unnamed(received, dataset)
    have = {c for c in received.columns if not c.startswith("__")} | {c.name for c in dataset.columns}
    record_set = dataset.record_set
    order_by = [c for c in record_set.order_by if c != POSITION] if record_set else []
    needed = {*(record_set.key if record_set else dataset.identity), *order_by, *dataset.require}
    if missing := sorted(needed - have):
        raise WorkError(
            f"{dataset.place}: `{dataset.name}` needs the column {', '.join(f'`{m}`' for m in missing)},"
            f" which `{dataset.source}` lacks.",
            remedy=f"Its columns are {', '.join(sorted(have - set(dataset.require)))}."
            " Correct the name, or map it under `columns:`.",
            slug="missing-column",
        )


def _refuse_unnamed(received: DataFrame, dataset: FactDataset) -> None:
    """Refuse source columns that begin with two underscores, unless the dataset gives them another name."""
    taken = {native_name(".".join(c.path)) for c in dataset.columns if c.path}
    if left := [name for name in received.columns if name.startswith("__") and name not in taken]:
        named = ", ".join(f"{name.strip('_') or 'other'}: {{path: {name}}}" for name in left)
        raise WorkError(
            f"{dataset.place}: the files of `{dataset.source}` have"
            f" {', '.join(f'`{name}`' for name in left)}; a column of `{dataset.name}`"
            " may not begin with `__`, nor have the name of a metadata column.",
            remedy=f"Take them under other names: `columns: {{{named}}}`.",
            slug="metadata-column",
        )


def _count_once(rows: DataFrame, dataset: FactDataset, own: DataFrame | None) -> DataFrame:
    """Facts with the same identity count once.

    The first received counts, an equal one is a duplicate, a different one is quarantined.
    """
    declared = [c for c in user_columns(rows.columns) if not c.startswith("__")]
    passed = F.col(OUTCOME) == ACCEPTED
    candidates = rows.where(passed).withColumn("__known", F.lit(False))
    if own is not None:
        known = own.join(F.broadcast(candidates.select(KEY).distinct()), KEY, "left_semi").withColumn(
            "__known", F.lit(True)
        )
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
        .withColumn(
            OUTCOME, F.when(F.col("__place") == 1, ACCEPTED).when(conflict, QUARANTINED).otherwise(DUPLICATE)
        )
        .withColumn(SLUG, F.when(F.col(OUTCOME) == QUARANTINED, CONFLICT))
        .withColumn(
            REASON,
            F.when(
                F.col(OUTCOME) == QUARANTINED,
                "A fact with this identity and other values was received before.",
            ),
        )
    )
    return judged.drop("__known", "__hash", "__first", "__place").unionByName(rows.where(~passed))


def count_read(work: Work, dataset: FactDataset, *, full: bool) -> int:
    """Number of rows of the source that the task read."""
    source = dataset.source
    return (
        work.input_rows.get(source, 0)
        if full
        else count_added(work.lake.table(source), work.after(source), work.version(source))
    )


def find_decoded(work: Work, dataset: FactDataset, *, full: bool) -> Staged | None:
    """What the facts' task of this run decoded, if it covered the same versions of the source."""
    return work.shared.find_decoded(
        dataset.name, -1 if full else work.after(dataset.source), work.version(dataset.source)
    )


def facts_of(work: Work) -> FactDataset:
    match work.node.definition:
        case FactDataset() as dataset:
            return dataset
        case Quarantine(facts=dataset):
            return dataset
        case other:
            raise TypeError(f"{work.node.name} is a {type(other).__name__}, not facts")
