"""The quarantine of a fact dataset: the rows of a decode that fail, with the reason."""

from pyspark.sql import functions as F

from strandline.lake.work import Expected, Prepared, Work, Write
from strandline.model.columns import CONFIG, INGESTED_AT, PAYLOAD, POSITION
from strandline.model.commits import Operation
from strandline.model.plan import Strategy
from strandline.model.scope import NOTHING, Rows

from .decode import OUTCOME, QUARANTINED, REASON, SLUG
from .received import count_read, decode_received, facts_of, find_decoded, read_facts, stage_decoded


def prepare(work: Work) -> Prepared:
    """Append the rows of the same decode that failed."""
    dataset = facts_of(work)
    full = work.task.strategy is Strategy.FULL
    source_rows = work.input_rows.get(dataset.source, 0)
    shared = find_decoded(work, dataset, full=full)
    staged = shared or stage_decoded(work, dataset, full=full)
    rows = staged.read(work.session).where(F.col(OUTCOME) == QUARANTINED)
    failed = staged.counts["quarantined"]
    if full and shared is None and not dataset.explode and (facts := read_facts(work, dataset)) is not None:
        # The facts are not decoded again here. A row that is among the facts must not be refused as well
        # (L10).
        rows = rows.join(facts.select(POSITION), POSITION, "left_anti")
        failed = rows.count()
    if not failed and (not full or work.own_version is None):
        return Prepared(write=None, scope=NOTHING, rows_full=source_rows, live_rows=work.live_rows)
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
        rows_read=count_read(work, dataset, full=full),
        rows_written=failed,
        rows_full=source_rows,
        live_rows=failed if full else work.live_rows + failed,
        whole=full,
        scope=Rows(count=failed, of="rows that failed"),
    )


def expect(work: Work) -> Expected:
    dataset, own = facts_of(work), work.read_own()
    assert own is not None
    rows = decode_received(work, dataset, work.read_all(dataset.source), own=None).where(
        F.col(OUTCOME) == QUARANTINED
    )
    rows = rows.select(
        F.col(SLUG).alias("slug"), F.col(REASON).alias("reason"), F.col(PAYLOAD).alias("payload"), POSITION
    )
    return Expected(rows=rows, published=own, sampled_by=[POSITION])
