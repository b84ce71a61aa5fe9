"""From changed rows, invalidations and a person's wish to the scope of a job's output; and each input inside that scope."""

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from strandline.compute.key_set import KeySet
from strandline.compute.keys import user_columns
from strandline.lake.reads import SIGN
from strandline.lake.small import spark_schema
from strandline.lake.staging import find_counts
from strandline.lake.table import get_table
from strandline.lake.work import Work
from strandline.model.columns import DELETED, KEY, quote
from strandline.model.filters import EVERY_ROW, Filter, check_filter
from strandline.model.node import By, Input, Via
from strandline.model.scope import find_filter

from .filtering import any_of
from .scopes import Scoping


def find_affected(work: Work, scoping: Scoping) -> DataFrame:
    """The scopes that changed rows of any input map to, before and after the change, and those that someone says are wrong."""
    found: list[DataFrame] = []
    for planned in work.task.inputs:
        given = work.node.get_input(planned.name)
        if (
            not planned.changes
            or not isinstance(given.relation, By | Via)
            or work.after(planned.dataset) >= work.version(planned.dataset)
        ):
            continue  # nothing past the cursor: what this run might have changed it did not
        if work.has_changes(planned.dataset):
            found.append(_scopes_of(work, scoping, planned.name, work.read_changes(planned.dataset)))
        if said := work.invalidations(given.dataset):
            live = work.read_live(given.dataset)
            filters = [_typed(find_filter(i.scope) or EVERY_ROW, live) for i in said]
            found.append(_scopes_of(work, scoping, planned.name, live.where(any_of(filters))))
            found += _own_scopes(work, scoping, given, filters)
    if (asked := find_filter(work.task.scope)) is not None:
        found += _asked_scopes(work, scoping, asked)
    if not found:
        raise AssertionError(f"{work.node.name} has no changed input to recompute keys for")
    return reduce(DataFrame.unionByName, found)


def _typed(given: Filter, rows: DataFrame) -> Filter:
    return check_filter(given, {f.name: f.dataType.simpleString() for f in rows.schema})


def _own_scopes(work: Work, scoping: Scoping, given: Input, filters: list[Filter]) -> list[DataFrame]:
    """Where an invalidation speaks of the key alone, also the output's own rows: one may stand for input rows that are no more."""
    own = work.read_own()
    if own is None or not isinstance(given.relation, By) or not set(scoping.job.key) <= set(own.columns):
        return []
    there = dict(zip(given.relation.columns, scoping.job.key, strict=True))
    told = [f for f in filters if {c.column for c in f.comparisons} <= set(there)]
    rows = own.where(~F.col(DELETED) & any_of(told, there)) if told else None
    return [scoping.select(rows, scoping.job.key)] if rows is not None else []


def _asked_scopes(work: Work, scoping: Scoping, asked: Filter) -> list[DataFrame]:
    """`--where` over the output: its rows, and where it speaks of the key alone the input rows that belong there."""
    own = work.read_own()
    assert own is not None
    found = []
    rows = own.where(~F.col(DELETED) & any_of([_typed(asked, own)]))
    if set(scoping.job.key) <= set(own.columns):
        found.append(scoping.select(rows, scoping.job.key))
    elif scoping.job.partition is not None:
        found.append(
            scoping.select_names(work.session, list(work.partitions)).join(rows.select(KEY), KEY, "left_semi")
        )
    for given in work.node.inputs:
        if isinstance(given.relation, By):
            here = dict(zip(scoping.job.key, given.relation.columns, strict=True))
            if {c.column for c in asked.comparisons} <= set(here):
                rows = work.read_live(given.dataset)
                found.append(scoping.select(rows.where(any_of([asked], here)), given.relation.columns))
    return found


def _scopes_of(work: Work, scoping: Scoping, name: str, rows: DataFrame) -> DataFrame:
    """What rows of an input belong to; through another input at its old and its new version where they do not say so themselves."""
    given = work.node.get_input(name)
    match given.relation:
        case By(columns=columns):
            return scoping.select(rows, columns)
        case Via(input=through, on=on):
            other = work.node.get_input(through)
            there = work.read_live(other.dataset)
            if work.after(other.dataset) < work.version(other.dataset) and any(
                i.changes for i in work.task.inputs if i.name == through
            ):
                left = work.read_changes(other.dataset).where(F.col(SIGN) < 0)
                there = there.select(*user_columns(there.columns)).unionByName(
                    left.select(*user_columns(_unsigned(left))), allowMissingColumns=True
                )
            wanted = rows.select(
                *(F.col(quote(here)).alias(f"__on{i}") for i, (here, _) in enumerate(on))
            ).distinct()
            same = [
                F.col(f"__on{i}").eqNullSafe(F.col(quote(other_name))) for i, (_, other_name) in enumerate(on)
            ]
            return _scopes_of(work, scoping, through, there.join(F.broadcast(wanted), same, "left_semi"))
        case other_relation:
            raise AssertionError(f"{name} is related by {other_relation}")


def _unsigned(rows: DataFrame) -> list[str]:
    return [c for c in rows.columns if c != SIGN]


def restrict_inputs(
    work: Work, scoping: Scoping, keys: KeySet, part: str = ""
) -> tuple[dict[str, DataFrame], dict[str, Observation]]:
    """Each input as the job may read it: inside the scope where its relation says how, whole otherwise; and counters of the rows read.

    `part` tells the counters of one query over several scopes apart.
    """
    done: dict[str, DataFrame] = {}

    def restricted(given: Input) -> DataFrame:
        if given.name not in done:
            match given.relation:
                case By(columns=columns):
                    rows = scoping.restrict(
                        _read_near(work, scoping, given.dataset, columns, keys), columns, keys
                    )
                case Via(input=through, on=on):
                    there = restricted(work.node.get_input(through))
                    wanted = there.select(
                        *(F.col(quote(name)).alias(f"__on{i}") for i, (_, name) in enumerate(on))
                    ).distinct()
                    same = [
                        F.col(f"__on{i}").eqNullSafe(F.col(quote(here))) for i, (here, _) in enumerate(on)
                    ]
                    rows = work.read_live(given.dataset).join(wanted, same, "left_semi")
                case _:
                    rows = work.read_live(given.dataset)
            done[given.name] = rows
        return done[given.name]

    counters = {f"rows of {i.name} for {work.attempt}{part}": i for i in work.node.inputs}
    observed = {name: Observation(name) for name in counters}
    counted = {
        i.name: restricted(i).observe(observed[name], F.count(F.lit(1)).alias("rows"))
        for name, i in counters.items()
    }
    return counted, observed


def _read_near(work: Work, scoping: Scoping, dataset: str, columns: Sequence[str], keys: KeySet) -> DataFrame:
    """An input, or so much of it that a scope's rows are among it, if that is quickly looked up."""
    kinds = {
        f.name: f.dataType for f in spark_schema(get_table(work.lake.table(dataset), work.version(dataset)))
    }
    condition = scoping.condition(columns, keys, kinds)
    found = work.find_live(dataset, columns[-1], condition) if condition else None
    return work.read_live(dataset) if found is None else found


def count_read(result: DataFrame, counters: Mapping[str, Observation]) -> int:
    """Input rows left after restriction to the scope, for the report alone.

    An input that the user's code leaves out is in no plan, and would be waited for. One whose counter Spark dropped counts as not read.
    """
    plan = result._jdf.queryExecution().analyzed().toString()
    told = [find_counts(counter) for name, counter in counters.items() if name in plan]
    return sum(counted["rows"] or 0 for counted in told if counted)
