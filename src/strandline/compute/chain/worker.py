"""Chains: the canonical blocks, maintained as blocks are announced.

A reorganisation is one commit that carries its invalidation.
"""

import uuid
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType, StructField, StructType

from strandline.compute.compare import (
    compared_columns,
    replace_differences,
    stage_differences,
    tag,
    write_whole,
)
from strandline.compute.keys import row_hash, typed_key, user_columns
from strandline.compute.shape import fit_types
from strandline.lake.location import write_parquet
from strandline.lake.small import spark_schema
from strandline.lake.table import get_table
from strandline.lake.work import NEW, OLD, Expected, Prepared, Work, Write
from strandline.lake.writes import Within
from strandline.model.columns import CONFIG, DELETED, KEY, POSITION, quote
from strandline.model.commits import Invalidation, Operation
from strandline.model.conditions import AllOf, Comparison, Operator
from strandline.model.plan import Strategy
from strandline.model.project import Chain, Head
from strandline.model.scope import EVERYTHING, NOTHING, Everything, Range, Scope
from strandline.sql.literals import datafusion_name

from .announced import AnnouncedGroup, BlockTable, Group, PublishedGroup, first_announced, read_new
from .branches import Block, Hash, Place, Step, build, follow
from .oracle import expect_chain
from .types import require_types, show_hash

CanonicalHashes = dict[tuple[Group, int], Hash | None]
"""The canonical hash by chain and number; None where there is no block."""


@dataclass(slots=True)
class _Touched:
    """What newly announced blocks change."""

    hashes: CanonicalHashes = field(default_factory=dict)
    steps: list[tuple[Group, Step]] = field(default_factory=list)
    waiting: int = 0
    read: int = 0


def prepare(work: Work) -> Prepared:
    """Walk the branches that newly announced blocks reach, or all of them."""
    chain = chain_of(work)
    dataset = work.node.inputs[0].dataset
    require_types(chain, _kinds(work))
    full_rows = work.input_rows.get(dataset, 0)
    own = None if work.task.overwrite else work.read_own()
    if own is None or work.task.strategy is Strategy.FULL:
        return _prepare_whole(work, chain, own, full_rows, EVERYTHING)
    touched = _follow(work, chain, dataset)
    if touched is None:
        return _prepare_whole(
            work,
            chain,
            own,
            full_rows,
            Everything(because="the lowest block is another, or a block's first announcement"),
        )
    counts = {"waiting": touched.waiting} if touched.waiting else {}
    if not touched.hashes:
        write = Write(operation=Operation.COUNTS, rows=own.limit(0)) if counts else None
        return Prepared(
            write=write,
            rows_read=touched.read,
            rows_full=full_rows,
            live_rows=work.live_rows,
            counts=counts,
            scope=NOTHING,
        )
    affected = _stage_hashes(work, chain, touched.hashes)
    new = _canonical_rows(work, chain, affected, touched.hashes)
    at_stake = _read_within(work, work.node.name, chain, touched.hashes).where(~F.col(DELETED))
    old = at_stake.join(F.broadcast(affected.select(KEY).distinct()), KEY, "left_semi")
    sides = tag(new, NEW).unionByName(tag(old, OLD), allowMissingColumns=True)
    staged = stage_differences(work, sides, compared_columns(sides, backfill=False), bury=True)
    numbers = [number for _, number in touched.hashes]
    near = Within(column=chain.number, low=min(numbers), high=max(numbers))
    read = touched.read + staged.counts["new_live"] + staged.counts["old_live"]
    prepared = replace_differences(
        work,
        staged,
        rows_read=read,
        rows_full=full_rows,
        scope=_covered(chain, touched),
        whole=False,
        within=near,
    )
    if prepared.write is None and counts:
        prepared = replace(prepared, write=Write(operation=Operation.COUNTS, rows=own.limit(0)))
    reorgs = [(group, step) for group, step in touched.steps if step.is_reorg]
    return replace(
        prepared,
        counts=counts,
        invalidations=tuple(_invalidation(work, chain, group, step) for group, step in reorgs),
        notes=tuple(f"reorg of {chain.number} {step.fork + 1} to {step.last}" for _, step in reorgs),
    )


def expect(work: Work) -> Expected:
    chain, own = chain_of(work), work.read_own()
    assert own is not None
    return Expected(
        rows=expect_chain(work, chain), published=own.where(~F.col(DELETED)), sampled_by=chain.key
    )


def _follow(work: Work, chain: Chain, dataset: str) -> _Touched | None:
    """What the blocks announced since the cursor change. None if everything has to be judged again.

    That is so if a block lower than any before moves the anchor, or if a block's first announcement is now a
    different one, with another parent or weight. It then affects what is built on the block, and what the
    block was better than.
    """
    after, upto = work.after(dataset), work.version(dataset)
    assert work.own_version is not None
    facts = BlockTable(lake=work.lake, dataset=dataset, version=upto, chain=chain, live_only=False)
    before = BlockTable(lake=work.lake, dataset=dataset, version=after, chain=chain, live_only=False)
    own = BlockTable(
        lake=work.lake, dataset=work.node.name, version=work.own_version, chain=chain, live_only=True
    )
    touched = _Touched()
    by_group: dict[Group, list[Block]] = {}
    for group, block in read_new(work.lake, chain, dataset, after, upto):
        by_group.setdefault(group, []).append(block)
    for group, blocks in by_group.items():
        touched.read += len(blocks)
        lowest = min(b.number for b in blocks)
        earlier = _announced_before(before, group, blocks)
        if any(_is_another(chain, earlier[b.place], b) for b in blocks if b.place in earlier):
            return None
        known = frozenset(earlier)
        anchor = chain.anchor
        if anchor is None:
            first = before.bounds(group)[0]
            if first is not None and lowest < first:
                return None
            anchor = lowest if first is None else first
        stride = work.project.settings.thresholds.followed_numbers
        published = PublishedGroup(own=own, facts=facts, group=group, stride=stride)
        followed = follow(
            chain.head,
            AnnouncedGroup(facts=facts, group=group),
            published,
            blocks,
            known,
            anchor,
            stride=stride,
        )
        touched.waiting += followed.waiting - followed.joined
        for block in blocks:
            # The block was announced again, perhaps earlier than before: its row may now come from another
            # announcement.
            if block.place in known and published.hash_at(block.number) == block.hash:
                touched.hashes[group, block.number] = block.hash
        if followed.step is not None:
            touched.steps.append((group, followed.step))
            branch = {b.number: b.hash for b in followed.step.branch}
            for number in range(followed.step.fork + 1, followed.step.last + 1):
                touched.hashes[group, number] = branch.get(number)
    return touched


def _is_another(chain: Chain, earlier: Block, block: Block) -> bool:
    """Whether a block's first announcement is now a different one.

    Under `last` its weight only grows, which `follow` notices.
    """
    first = first_announced(chain, earlier, block)
    return first.parent != earlier.parent or (
        chain.head.kind is not Head.LAST and first.weight != earlier.weight
    )


def _announced_before(before: BlockTable, group: Group, blocks: list[Block]) -> dict[Place, Block]:
    """Those of these blocks that had been announced before, as they were, looked up by ranges of numbers."""
    numbers = sorted({b.number for b in blocks})
    places = {b.place for b in blocks}
    known: dict[Place, Block] = {}
    start = 0
    for i, number in enumerate(numbers):
        if i + 1 == len(numbers) or numbers[i + 1] > number + 1000:
            known |= {b.place: b for b in before.blocks(group, numbers[start], number) if b.place in places}
            start = i + 1
    return known


def build_whole(work: Work, chain: Chain) -> tuple[CanonicalHashes, int]:
    """Every chain from its anchor on, and the number of waiting blocks."""
    dataset = work.node.inputs[0].dataset
    facts = BlockTable(
        lake=work.lake, dataset=dataset, version=work.version(dataset), chain=chain, live_only=False
    )
    hashes: CanonicalHashes = {}
    waiting = 0
    stride = work.project.settings.thresholds.walked_numbers
    for group in facts.groups():
        anchor = chain.anchor if chain.anchor is not None else facts.bounds(group)[0]
        if anchor is None:
            continue
        built = build(chain.head, AnnouncedGroup(facts=facts, group=group), anchor, stride=stride)
        hashes |= {(group, built.first + i): hash_ for i, hash_ in enumerate(built.hashes)}
        waiting += built.waiting
    return hashes, waiting


def _prepare_whole(work: Work, chain: Chain, own: DataFrame | None, full_rows: int, scope: Scope) -> Prepared:
    hashes, waiting = build_whole(work, chain)
    rows = _canonical_rows(work, chain, _stage_hashes(work, chain, hashes), hashes)
    if own is None:
        return replace(write_whole(work, rows, rows_full=full_rows), counts={"waiting": waiting})
    sides = tag(fit_types(rows, own, work), NEW).unionByName(
        tag(own.where(~F.col(DELETED)), OLD), allowMissingColumns=True
    )
    staged = stage_differences(work, sides, compared_columns(sides, backfill=False), bury=True)
    prepared = replace_differences(
        work, staged, rows_read=full_rows, rows_full=full_rows, scope=scope, whole=True
    )
    if prepared.write is None:
        prepared = replace(prepared, write=Write(operation=Operation.COUNTS, rows=own.limit(0)))
    return replace(prepared, counts={"waiting": waiting})


def _kinds(work: Work) -> dict[str, DataType]:
    """The types of the facts' columns."""
    dataset = work.node.inputs[0].dataset
    return {
        f.name: f.dataType for f in spark_schema(get_table(work.lake.table(dataset), work.version(dataset)))
    }


def _stage_hashes(work: Work, chain: Chain, hashes: CanonicalHashes) -> DataFrame:
    """The affected numbers with their hash, in the types of the facts, and the `_key` of each."""
    kinds = _kinds(work)
    schema = StructType([StructField(c, kinds[c]) for c in (*chain.key, chain.hash)])
    values = {
        **{c: [group[i] for group, _ in hashes] for i, c in enumerate(chain.group_by)},
        chain.number: [number for _, number in hashes],
        chain.hash: list(hashes.values()),
    }
    path = f"{work.staging}/wanted.parquet"
    write_parquet(
        pa.table({f.name: pa.array(values[f.name], to_arrow_type(f.dataType)) for f in schema}), path
    )
    return work.session.read.schema(schema).parquet(path).withColumn(KEY, typed_key(chain.key))


def _read_within(work: Work, dataset: str, chain: Chain, hashes: CanonicalHashes) -> DataFrame:
    """The rows of the facts or of the chain between the lowest and the highest affected number."""
    version = work.own_version if dataset == work.node.name else work.version(dataset)
    assert version is not None
    numbers = [number for _, number in hashes]
    if not numbers:
        return work.read(dataset, version).limit(0)
    low, high = min(numbers), max(numbers)
    condition = f"{datafusion_name(chain.number)} >= {low} AND {datafusion_name(chain.number)} <= {high}"
    rows = work.shared.small.find_where(work.session, dataset, version, chain.number, condition)
    return (
        work.read(dataset, version).where(F.col(quote(chain.number)).between(low, high))
        if rows is None
        else rows
    )


def _canonical_rows(work: Work, chain: Chain, affected: DataFrame, hashes: CanonicalHashes) -> DataFrame:
    """The canonical blocks as they were first announced."""
    facts = _read_within(work, work.node.inputs[0].dataset, chain, hashes)
    declared = [c for c in user_columns(facts.columns) if not c.startswith("__")]
    names = (*chain.key, chain.hash)
    there = affected.where(F.col(quote(chain.hash)).isNotNull()).select(
        *(F.col(quote(c)).alias(f"__wanted_{c}") for c in names)
    )
    same = [F.col(quote(c)).eqNullSafe(F.col(quote(f"__wanted_{c}"))) for c in names]
    announced = facts.join(there, same, "left_semi").withColumn(KEY, typed_key(chain.key))
    order = [F.col(POSITION) if c == POSITION else F.col(quote(c)) for c in chain.order_by]
    once = Window.partitionBy(*map(quote, names)).orderBy(
        *(c.asc_nulls_first() for c in order), F.col(POSITION), row_hash(declared)
    )
    first = announced.withColumn("__nth", F.row_number().over(once)).where(F.col("__nth") == 1)
    columns = [quote(c) for c in facts.columns if c in declared or c.startswith("_source_")]
    return first.select(*columns, KEY).withColumns({DELETED: F.lit(False), CONFIG: F.lit(work.config.hash)})


def _invalidation(work: Work, chain: Chain, group: Group, step: Step) -> Invalidation:
    assert step.old_tip is not None
    named_groups = [
        (c, v)
        for c, v in zip(chain.group_by, group, strict=True)
        if v is not None and not isinstance(v, bytes)
    ]
    groups = [
        Comparison(column=c, operator=Operator.EQ, value=v) for c, v in named_groups
    ]  # filters cannot compare bytes
    named = f"{chain.name} {work.own_version} {group} {step.old_tip.hash} {step.new_tip.hash}"
    return Invalidation(
        id=str(uuid.uuid5(uuid.NAMESPACE_URL, named)),
        scope=Range(
            column=chain.number,
            low=step.fork + 1,
            high=step.last,
            where=AllOf(parts=tuple(groups)) if groups else None,
        ),
        reason="reorg",
        source_event={
            "old_tip": show_hash(step.old_tip.hash),
            "new_tip": show_hash(step.new_tip.hash),
            "fork_block": step.fork,
        },
    )


def _covered(chain: Chain, touched: _Touched) -> Range:
    numbers = [number for _, number in touched.hashes]
    return Range(column=chain.number, low=min(numbers), high=max(numbers), count=len(numbers), of="numbers")


def chain_of(work: Work) -> Chain:
    assert isinstance(work.node.definition, Chain)
    return work.node.definition
