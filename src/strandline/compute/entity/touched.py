"""Which entities a task touches, and which uses and namers have to be read for them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.compute.filtering import any_of, typed_filter
from strandline.compute.key_set import KeySet, find_keys, list_keys
from strandline.compute.keys import user_columns
from strandline.lake.reads import SIGN, net
from strandline.lake.staging import Staged, stage
from strandline.lake.work import Work
from strandline.model.columns import DELETED, KEY
from strandline.model.conditions import EVERY_ROW
from strandline.model.entity import Entity, Namer, Use
from strandline.model.scope import find_filter

from .adding import READ, combine, weigh_changes, weigh_crossing
from .bands import find_crossing
from .counting import Counting
from .ids import Types, are_named, id_names, key_of, with_ids
from .naming import find_new
from .owning import Reader, find_owners, own_rows
from .parts import UseParts


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    keys: KeySet
    uses: tuple[Use, ...]
    """The uses whose variables may have changed. The columns of the others are carried over."""
    namers: tuple[Namer, ...]
    """The namers that may have named somebody, or stopped."""
    deltas: Staged | None
    """What is added to the parts of variables, by entity. None if nothing is added to."""


def find_touched(
    work: Work,
    entity: Entity,
    types: Types,
    own: DataFrame,
    added: Mapping[str, UseParts],
    counting: Counting,
) -> Touched | None:
    """What a task touches. None if no use or namer has changed.

    `added`: by use, the variables that are added to.
    """
    requested = _find_requested(work, own)
    scopes: list[DataFrame] = [] if requested is None else [requested.withColumn(READ, F.lit(1))]
    weighed: list[DataFrame] = []
    uses, namers = [], []
    for use in entity.uses:
        found = list(_find_owners(work, entity, types, use, added[use.name], counting))
        if found or requested is not None:
            uses.append(use)
        weighed += [rows.where(are_named(entity)) for rows in found]
    for namer in entity.namers:
        if not is_changed(work, namer.dataset):
            continue
        namers.append(namer)
        if namer.for_ever and not any(_names_its_owners(use, namer) for use in uses):
            named = find_new(work.read_added(namer.dataset), namer, entity, types, own)
            weighed.append(named.withColumn(READ, F.lit(1)))
        is_found = namer.for_ever or any(_reads_namer(use, namer) for use in entity.uses)
        if not is_found and work.has_changes(namer.dataset):
            # Its variables are not kept up to date. Who exists is.
            changes = with_ids(work.read_changes(namer.dataset), namer.columns, entity, types)
            weighed.append(changes.where(are_named(entity)).select(*id_names(entity), F.lit(1).alias(READ)))
    if not scopes and not weighed:
        return None
    parts = [part for use in uses for part in added[use.name].parts]
    if parts:
        deltas = _stage(work, entity, combine(weighed, entity, parts))
        return Touched(keys=_keys_of(work, deltas), uses=tuple(uses), namers=tuple(namers), deltas=deltas)
    scopes += [rows.select(key_of(entity).alias(KEY), READ) for rows in weighed]
    keys = find_keys(work, reduce(DataFrame.unionByName, scopes).drop(READ))
    return Touched(keys=keys, uses=tuple(uses), namers=tuple(namers), deltas=None)


def _names_its_owners(use: Use, namer: Namer) -> bool:
    """Whether every new row of a namer is a changed row of a use, whose owners are found there."""
    return not use.via and use.dataset == namer.dataset and use.columns == namer.columns


def _reads_namer(use: Use, namer: Namer) -> bool:
    """Whether the rows of a namer are those of a use, or of its last lookup: their ids are found there."""
    dataset = use.via[-1].dataset if use.via else use.dataset
    return dataset == namer.dataset and use.columns == namer.columns


def _stage(work: Work, entity: Entity, deltas: DataFrame) -> Staged:
    counts = {"keys": F.count(F.lit(1)), "rows": F.sum(READ)}
    return stage(deltas.withColumn(KEY, key_of(entity)), f"{work.staging}/deltas", counts)


def _keys_of(work: Work, deltas: Staged) -> KeySet:
    """The scope of entities to which something is added."""
    count, rows = deltas.counts["keys"], deltas.counts["rows"]
    if count <= work.project.settings.thresholds.held_keys:
        return list_keys(work, deltas.fetch([KEY]).column(KEY).unique().to_pylist(), rows)
    return KeySet(count=count, rows=rows, listed=None, staged=deltas.only([KEY]))


def is_changed(work: Work, dataset: str) -> bool:
    """Whether an input has changes or invalidations past the cursor."""
    planned = [i for i in work.task.inputs if i.dataset == dataset and i.changes]
    if not planned or work.after(dataset) >= work.version(dataset):
        return False
    return work.has_changes(dataset) or bool(work.invalidations(dataset))


def _find_owners(
    work: Work, entity: Entity, types: Types, use: Use, added: UseParts, counting: Counting
) -> Iterator[DataFrame]:
    """The ids of entities whose variables of a use may change, and what is added to them."""
    read, calendar = _read_both(work), work.project.calendar
    if is_changed(work, use.dataset):
        yield from _find_changed(work, entity, types, use, added, counting)
    for level, step in enumerate(use.via):
        if is_changed(work, step.dataset) and work.has_changes(step.dataset):
            owners = find_owners(work.read_changes(step.dataset), use, level, entity, types, read)
            yield owners.withColumn(READ, F.lit(1))
    if work.as_of_before is not None:
        before, now = work.as_of_before, work.as_of
        crossing = find_crossing(work.read_live(use.dataset), entity, use, before, now, calendar)
        if crossing is not None:
            owned = own_rows(crossing, use, entity, types, work.read_live)
            yield weigh_crossing(owned, added, entity, before, now, calendar)


def _find_changed(
    work: Work, entity: Entity, types: Types, use: Use, added: UseParts, counting: Counting
) -> Iterator[DataFrame]:
    """The old and the new owners of changed rows, and those of rows that somebody declared invalid."""
    ids, read = id_names(entity), _read_both(work)
    if work.has_changes(use.dataset):
        changes = own_rows(_net_used(work, entity, use), use, entity, types, read)
        changes = counting.count_new(changes, entity)
        before = work.as_of_before or work.as_of
        yield weigh_changes(changes, added, entity, before, work.project.calendar)
        if use.ranked_by and is_changed(work, use.ranked_by):
            # A fact that only moves the rank of its record gives no change of the record set.
            moved = own_rows(work.read_added(use.ranked_by), use, entity, types, read)
            yield moved.select(*ids, F.lit(1).alias(READ))
    if invalidations := work.invalidations(use.dataset):
        live = work.read_live(use.dataset)
        filters = [typed_filter(find_filter(i.scope) or EVERY_ROW, live) for i in invalidations]
        owned = own_rows(live.where(any_of(filters)), use, entity, types, work.read_live)
        yield owned.select(*ids, F.lit(1).alias(READ))


def _net_used(work: Work, entity: Entity, use: Use) -> DataFrame:
    """Changes of the columns that the variables, the id and the order read. Others touch nobody."""
    changes, variables = work.read_changes(use.dataset), entity.variables_of(use)
    if any(v.reads_row for v in variables):
        return changes  # every column of a row takes part in its hash
    used = {*use.own_columns, *(column for v in variables for column in v.reads)}
    changes = changes.select(*(c for c in changes.columns if c in used or c == SIGN))
    return changes if work.project.get(use.dataset).traits.only_grows else net(changes)


def _read_both(work: Work) -> Reader:
    """Reads a dataset as it is, with the rows that left since the cursor: owners before and after."""

    def read(dataset: str) -> DataFrame:
        live = work.read_live(dataset)
        if not is_changed(work, dataset) or not work.has_changes(dataset):
            return live
        left = work.read_changes(dataset).where(F.col(SIGN) < 0).drop(SIGN)
        columns = user_columns(live.columns)
        return live.select(*columns).unionByName(
            left.select(*user_columns(left.columns)), allowMissingColumns=True
        )

    return read


def _find_requested(work: Work, own: DataFrame) -> DataFrame | None:
    """The entities that `--where` names."""
    request = find_filter(work.task.scope)
    if request is None:
        return None
    return own.where(~F.col(DELETED) & any_of([typed_filter(request, own)])).select(KEY)
