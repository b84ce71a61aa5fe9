"""Which entities a task touches, and which uses and namers have to be read for them."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.compute.filtering import any_of, typed_filter
from strandline.compute.key_set import KeySet, find_keys
from strandline.compute.keys import user_columns
from strandline.lake.reads import SIGN, net
from strandline.lake.work import Work
from strandline.model.columns import DELETED, KEY
from strandline.model.conditions import EVERY_ROW
from strandline.model.entity import Entity, Namer, Use
from strandline.model.scope import find_filter

from .bands import find_crossing
from .ids import Types, are_named, id_names, key_of
from .naming import find_new
from .owning import Reader, find_owners, own_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    keys: KeySet
    uses: tuple[Use, ...]
    """The uses whose variables may have changed. The columns of the others are carried over."""
    namers: tuple[Namer, ...]
    """The namers that may have named somebody, or stopped."""


def find_touched(work: Work, entity: Entity, types: Types, own: DataFrame) -> Touched | None:
    """What a task touches. None if no use or namer has changed."""
    requested = _find_requested(work, own)
    scopes: list[DataFrame] = [] if requested is None else [requested]
    uses, namers = [], []
    for use in entity.uses:
        found = list(_find_owners(work, entity, types, use))
        if found or requested is not None:
            uses.append(use)
        scopes += [ids.where(are_named(entity)).select(key_of(entity).alias(KEY)) for ids in found]
    for namer in entity.namers:
        if not is_changed(work, namer.dataset):
            continue
        namers.append(namer)
        if namer.for_ever:
            named = find_new(work.read_added(namer.dataset), namer, entity, types, own)
            scopes.append(named.select(key_of(entity).alias(KEY)))
        # The rows of any other namer are those of a use, or of a lookup of one, and have been found there.
    if not scopes:
        return None
    keys = find_keys(work, reduce(DataFrame.unionByName, scopes))
    return Touched(keys=keys, uses=tuple(uses), namers=tuple(namers))


def is_changed(work: Work, dataset: str) -> bool:
    """Whether an input has changes or invalidations past the cursor."""
    planned = [i for i in work.task.inputs if i.dataset == dataset and i.changes]
    if not planned or work.after(dataset) >= work.version(dataset):
        return False
    return work.has_changes(dataset) or bool(work.invalidations(dataset))


def _find_owners(work: Work, entity: Entity, types: Types, use: Use) -> Iterator[DataFrame]:
    """The ids of entities whose variables of a use may change."""
    read = _read_both(work)
    if is_changed(work, use.dataset):
        yield from _find_changed(work, entity, types, use)
    for level, step in enumerate(use.via):
        if is_changed(work, step.dataset) and work.has_changes(step.dataset):
            yield find_owners(work.read_changes(step.dataset), use, level, entity, types, read)
    if work.as_of_before is not None:
        rows, calendar = work.read_live(use.dataset), work.project.calendar
        crossing = find_crossing(rows, entity, use, work.as_of_before, work.as_of, calendar)
        if crossing is not None:
            yield own_rows(crossing, use, entity, types, work.read_live).select(*id_names(entity))


def _find_changed(work: Work, entity: Entity, types: Types, use: Use) -> Iterator[DataFrame]:
    """The old and the new owners of changed rows, and those of rows that somebody declared invalid."""
    ids, read = id_names(entity), _read_both(work)
    if work.has_changes(use.dataset):
        changes = _net_used(work.read_changes(use.dataset), entity, use)
        yield own_rows(changes, use, entity, types, read).select(*ids)
        if use.ranked_by and is_changed(work, use.ranked_by):
            # A fact that only moves the rank of its record gives no change of the record set.
            yield own_rows(work.read_added(use.ranked_by), use, entity, types, read).select(*ids)
    if invalidations := work.invalidations(use.dataset):
        live = work.read_live(use.dataset)
        filters = [typed_filter(find_filter(i.scope) or EVERY_ROW, live) for i in invalidations]
        yield own_rows(live.where(any_of(filters)), use, entity, types, work.read_live).select(*ids)


def _net_used(changes: DataFrame, entity: Entity, use: Use) -> DataFrame:
    """Changes of the columns that the variables, the id and the order read. Others touch nobody."""
    variables = entity.variables_of(use)
    if any(v.reads_row for v in variables):
        return changes  # every column of a row takes part in its hash
    used = {*use.own_columns, *(column for v in variables for column in v.reads)}
    return net(changes.select(*(c for c in changes.columns if c in used or c == SIGN)))


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
