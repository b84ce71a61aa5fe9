"""Timelines: facts folded, in the order of their dates, into the history of each key."""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.compute.keys import user_columns
from strandline.compute.shape import fit_types
from strandline.lake.near import Among, Near
from strandline.lake.reads import SIGN
from strandline.lake.staging import Staged, stage
from strandline.lake.work import NEW, SIDE, Expected, Prepared, Work
from strandline.model.columns import DELETED, HEAD, KEY, quote
from strandline.model.errors import WorkError
from strandline.model.node import Node
from strandline.model.plan import Strategy
from strandline.model.scope import EVERYTHING, NOTHING, Keys
from strandline.model.timeline import DATE, EPOCH, Timeline

from .building import build_table, cluster, keep_published
from .folded import fold_facts, require_fold
from .layout import FAILED, hash_head, hash_head_sql, key_types, name_values, spell_head
from .oracle import expect_timeline
from .streaming import HEAD_ROLE, KEY_HASH, LAST_ON, REASON, ROLE, STATE, STATUS
from .superseding import (
    HAD_HEAD,
    HEAD_DIFFERS,
    OLD_EPOCH,
    OLD_WATERMARK,
    Candidates,
    count_task,
    stage_superseding,
    write_superseding,
)
from .touched import CONTINUES, PUBLISHED, find_touched

_SHOWN_FAILURES = 3
_OLD = "__old_"


def prepare(work: Work) -> Prepared:
    """Fold the keys that a change touches, and compare with what is published."""
    timeline = timeline_of(work.node)
    require_fold(timeline, work.project.folder)
    work = keep_published(work, (*timeline.row_key, *(f.name for f in timeline.fields), EPOCH))
    own = None if work.task.overwrite else work.find_shape()
    if own is None:
        return _build(work, timeline)
    if work.task.strategy is Strategy.FULL:
        return _fold_everything(work, timeline, own)
    return _fold_touched(work, timeline, own)


def expect(work: Work) -> Expected:
    return expect_timeline(work, timeline_of(work.node))


def timeline_of(node: Node) -> Timeline:
    assert isinstance(node.definition, Timeline)
    return node.definition


def _build(work: Work, timeline: Timeline) -> Prepared:
    """Fold everything into a new table."""
    facts, unplaced = _placed(work, timeline), _find_unplaced(work, timeline)
    folded = fold_facts(work, timeline, facts, None)
    if folded.counts["keys"] and folded.counts["failed"] == folded.counts["keys"]:
        raise _refuse(work, timeline, folded, then="Nothing is published")
    results = folded.read(work.session)
    values = [f.name for f in timeline.fields]
    new = results.where(F.col(ROLE) != HEAD_ROLE).select(*map(quote, (*timeline.key, DATE, *values)))
    heads = _judge_heads(timeline, results, None)
    count = folded.counts["rows"]
    candidates = Candidates(key=timeline.key, values=values, new=cluster(new, count), old=None, heads=heads)
    prepared = build_table(work, candidates, count, (DATE, *timeline.key))
    return _tell(work, timeline, prepared, folded, unplaced)


def _fold_everything(work: Work, timeline: Timeline, own: DataFrame) -> Prepared:
    """Fold all keys again, including those that have no facts any more."""
    facts, unplaced = _placed(work, timeline), _find_unplaced(work, timeline)
    if work.task.reshapes:
        fit_types(_shape_of(timeline, facts), own.drop(EPOCH), work)
    known = work.read_heads(timeline.output).select(
        *map(quote, timeline.key), F.col(KEY).alias(KEY_HASH), F.lit(None).cast("string").alias(STATE)
    )
    folded = fold_facts(work, timeline, _in_types_of(own, timeline, facts), known)
    old = work.read_rows(timeline.output)
    rows_full = work.input_rows.get(timeline.facts, 0)
    staged = _compare(work, timeline, folded, old, work.read_states(timeline.output))
    prepared = write_superseding(
        work, staged, timeline.key, scope=EVERYTHING, rows_read=rows_full, rows_full=rows_full, whole=True
    )
    return _tell(work, timeline, prepared, folded, unplaced)


def _shape_of(timeline: Timeline, facts: DataFrame) -> DataFrame:
    """No rows, with the columns that the history of these facts has."""
    fields = (F.lit(None).cast(field.type.stored).alias(field.name) for field in timeline.fields)
    return facts.limit(0).select(*map(quote, timeline.key), F.lit(None).cast("date").alias(DATE), *fields)


def _fold_touched(work: Work, timeline: Timeline, own: DataFrame) -> Prepared:
    continues = F.col(CONTINUES)
    counts = {"keys": F.count(F.lit(1)), "again": F.count_if(~continues)}
    touched = stage(find_touched(work, timeline, own), f"{work.staging}/touched", counts)
    rows_full = work.input_rows.get(timeline.facts, 0)
    keys = touched.read(work.session)
    facts, unplaced = _read_increment(work, timeline, own, keys.where(continues))
    if not touched.counts["keys"]:
        nothing = Prepared(write=None, scope=NOTHING, rows_full=rows_full, live_rows=work.live_rows)
        return count_task(_note_unplaced(timeline, nothing, unplaced), 0, unplaced=unplaced)
    old = None
    if touched.counts["again"]:
        again = F.broadcast(keys.where(~continues).select(KEY_HASH))
        among = name_values(touched, own.schema, timeline.key)
        everything = _in_types_of(own, timeline, _placed(work, timeline, among))
        hashed = everything.withColumn(KEY_HASH, hash_head(timeline.key))
        facts = facts.unionByName(
            hashed.join(again, KEY_HASH, "left_semi").drop(KEY_HASH), allowMissingColumns=True
        )
        rows = work.read_rows(timeline.output, Near(among=among))
        published = rows.withColumn(KEY_HASH, hash_head(timeline.key))
        old = published.join(again, KEY_HASH, "left_semi").drop(KEY_HASH)
    folded = fold_facts(work, timeline, facts, keys.drop(CONTINUES, PUBLISHED))
    published = keys.where(f"{PUBLISHED} IS NOT NULL").select(f"{PUBLISHED}.*")
    staged = _compare(work, timeline, folded, old, published)
    prepared = write_superseding(
        work,
        staged,
        timeline.key,
        scope=Keys(count=touched.counts["keys"]),
        rows_read=folded.counts["rows"],
        rows_full=rows_full,
        whole=False,
    )
    return _tell(work, timeline, prepared, folded, unplaced)


def _compare(
    work: Work, timeline: Timeline, folded: Staged, old: DataFrame | None, published: DataFrame
) -> Staged:
    """Compare what folding gave with what is published. A key that failed keeps its rows.

    `old` and `published` are rows and heads.
    """
    results = folded.read(work.session)
    values = [f.name for f in timeline.fields]
    new = results.where(F.col(ROLE) != HEAD_ROLE).select(*map(quote, (*timeline.key, DATE, *values)))
    if old is not None and folded.counts["failed"]:
        failed = results.where(F.col(STATUS) == FAILED).select(hash_head(timeline.key).alias(KEY_HASH))
        kept = old.withColumn(KEY_HASH, hash_head(timeline.key))
        old = kept.join(F.broadcast(failed), KEY_HASH, "left_anti").drop(KEY_HASH)
    heads = _judge_heads(timeline, results, published)
    return stage_superseding(work, Candidates(key=timeline.key, values=values, new=new, old=old, heads=heads))


def _judge_heads(timeline: Timeline, results: DataFrame, published: DataFrame | None) -> DataFrame:
    """One head per folded key as it shall be, beside what it was.

    The watermark never goes back, and a key that failed keeps its own.
    """
    values = [f.name for f in timeline.fields]
    heads = results.where(F.col(ROLE) == HEAD_ROLE).drop(ROLE, DATE)
    if published is None:
        nothing = {
            HAD_HEAD: "false",
            OLD_EPOCH: "0L",
            OLD_WATERMARK: "CAST(NULL AS DATE)",
            f"{_OLD}{HEAD}": spell_head({}),
            **{f"{_OLD}{v}": quote(v) for v in values},
        }
        heads = heads.withColumns({name: F.expr(sql) for name, sql in nothing.items()})
    else:
        published = published.selectExpr(
            f"{KEY} AS {_OLD}hash",
            *(f"{quote(c)} AS {quote(f'{_OLD}{c}')}" for c in (*timeline.key, *values)),
            f"{EPOCH} AS {OLD_EPOCH}",
            f"{HEAD}.watermark_on AS {OLD_WATERMARK}",
            f"{HEAD} AS {_OLD}{HEAD}",
        )
        same = [f"{hash_head_sql(timeline.key)} = {_OLD}hash"]
        same += [f"{quote(c)} <=> {quote(f'{_OLD}{c}')}" for c in timeline.key]
        heads = heads.join(published, F.expr(" AND ".join(same)), "left")
        heads = heads.withColumn(HAD_HEAD, F.expr(f"{_OLD}hash IS NOT NULL"))
    head = {
        "state": STATE,
        "last_on": LAST_ON,
        "watermark_on": f"greatest({OLD_WATERMARK}, {LAST_ON})",
        "status": STATUS,
        "reason": REASON,
    }
    heads = heads.withColumn(HEAD, F.expr(spell_head(head)))
    same = [f"{HEAD}.{f} <=> {_OLD}{HEAD}.{f}" for f in _COMPARED]
    same += [f"{quote(v)} <=> {quote(f'{_OLD}{v}')}" for v in values]
    columns = [*timeline.key, *values, HEAD, HAD_HEAD, OLD_EPOCH, OLD_WATERMARK]
    differs = f"NOT ({HAD_HEAD} AND {' AND '.join(same)}) AS {HEAD_DIFFERS}"
    return heads.selectExpr(*map(quote, columns), differs)


_COMPARED = ("state", "last_on", "watermark_on", "status", "reason")


def _placed(work: Work, timeline: Timeline, among: Sequence[Among] = ()) -> DataFrame:
    """All facts with a date. Only those with values of the key among some, if those are given."""
    facts = work.read_among(timeline.facts, among)
    dated = facts.where(F.col(quote(timeline.date)).isNotNull())
    return dated.select(*map(quote, user_columns(facts.columns)))


def _find_unplaced(work: Work, timeline: Timeline) -> int:
    """The number of facts without a date."""
    return work.read_live(timeline.facts).where(F.col(quote(timeline.date)).isNull()).count()


def _read_increment(
    work: Work, timeline: Timeline, own: DataFrame, continuing: DataFrame
) -> tuple[DataFrame, int]:
    """The added facts of keys that continue from their heads.

    Also by how much the number of facts without a date changed.
    """
    if not work.has_changes(timeline.facts):
        nothing = work.read_live(timeline.facts).limit(0)
        return _in_types_of(own, timeline, nothing.select(*map(quote, user_columns(nothing.columns)))), 0
    changes = work.read_changes(timeline.facts)
    without = _count_undated(work, timeline, changes)
    times = F.expr(f"explode(sequence(1, CASE WHEN {SIGN} > 0 THEN {SIGN} ELSE 1 END))")
    added = changes.where((F.col(SIGN) > 0) & F.col(quote(timeline.date)).isNotNull())
    added = added.withColumn("__times", times)
    added = added.select(*map(quote, (c for c in user_columns(added.columns) if c not in (SIGN, "__times"))))
    added = _in_types_of(own, timeline, added)
    hashed = added.withColumn(KEY_HASH, hash_head(timeline.key))
    wanted = F.broadcast(continuing.select(KEY_HASH))
    return hashed.join(wanted, KEY_HASH, "left_semi").drop(KEY_HASH), without


def _count_undated(work: Work, timeline: Timeline, changes: DataFrame) -> int:
    """By how much the number of facts without a date changed."""
    staged = work.find_staged_changes(timeline.facts)
    if staged is None:
        undated = changes.where(F.col(quote(timeline.date)).isNull())
        return int(undated.agg(F.sum(SIGN)).collect()[0][0] or 0)
    count = 0
    for batch in staged.scan([timeline.date, SIDE, DELETED]):
        undated_live = pc.field(timeline.date).is_null() & ~pc.field(DELETED)
        sides = batch.filter(undated_live).column(SIDE)
        count += sum(1 if side == NEW else -1 for side in sides.to_pylist())
    return count


def _in_types_of(own: DataFrame, timeline: Timeline, facts: DataFrame) -> DataFrame:
    """Facts with key columns in the types of the table."""
    types = key_types(own, timeline.key)
    return facts.withColumns({c: F.col(quote(c)).cast(kind) for c, kind in types.items()})


def _tell(work: Work, timeline: Timeline, prepared: Prepared, folded: Staged, unplaced: int) -> Prepared:
    """The outcome with its counts, and with what to do about keys that failed."""
    failed = folded.counts["failed"]
    prepared = _note_unplaced(timeline, prepared, unplaced)
    prepared = count_task(prepared, folded.counts["keys"], failed=failed, unplaced=unplaced)
    if not failed:
        return prepared
    return replace(prepared, refused=_refuse(work, timeline, folded, then="What is published of them stays"))


def _note_unplaced(timeline: Timeline, prepared: Prepared, unplaced: int) -> Prepared:
    """The outcome with the number of facts without a date, or by how much it changed."""
    if not unplaced:
        return prepared
    facts = "1 fact" if unplaced == 1 else f"{unplaced} facts"
    note = f"{facts} of `{timeline.facts}` without `{timeline.date}` left out until corrected."
    notes = (*prepared.notes, note) if unplaced > 0 else prepared.notes
    return replace(prepared, counts={**prepared.counts, "unplaced": unplaced}, notes=notes)


def _refuse(work: Work, timeline: Timeline, folded: Staged, *, then: str) -> WorkError:
    results = folded.read(work.session).where(F.col(STATUS) == FAILED)
    shown = results.limit(_SHOWN_FAILURES).select(*map(quote, timeline.key), REASON).collect()
    reasons = "; ".join(f"({', '.join(map(str, row[:-1]))}) {row[-1]}" for row in shown)
    keys = "1 key" if folded.counts["failed"] == 1 else f"{folded.counts['failed']} keys"
    return WorkError(
        f"{keys} of `{timeline.name}` could not be folded: {reasons}. {then}.",
        remedy=f"Correct their facts, and run again; or correct `{timeline.fold.function}` in"
        f" {timeline.fold.file}, and run `strandline backfill {timeline.name} --all`.",
        slug="fold-failed",
    )
