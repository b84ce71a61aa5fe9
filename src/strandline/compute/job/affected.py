"""The scope of a job's output for changed rows, invalidations and requests; and its inputs in that scope."""

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from strandline.compute.filtering import any_of, typed_filter
from strandline.compute.key_set import KeySet
from strandline.compute.keys import user_columns
from strandline.lake.reads import SIGN
from strandline.lake.small import spark_schema
from strandline.lake.staging import find_counts
from strandline.lake.table import get_table
from strandline.lake.work import Work
from strandline.model.columns import DELETED, KEY, quote
from strandline.model.conditions import EVERY_ROW, AllOf, find_columns
from strandline.model.node import By, Input, Via
from strandline.model.scope import find_filter

from .scopes import Scoping


def find_affected(work: Work, scoping: Scoping) -> DataFrame:
    """The affected scopes: those of changed input rows (before and after), invalidations and requests."""
    scopes: list[DataFrame] = []
    for planned in work.task.inputs:
        input_ = work.node.get_input(planned.name)
        if (
            not planned.changes
            or not isinstance(input_.relation, By | Via)
            or work.after(planned.dataset) >= work.version(planned.dataset)
        ):
            continue  # nothing past the cursor: this run might have changed the input and did not
        if work.has_changes(planned.dataset):
            scopes.append(_scopes_of(work, scoping, planned.name, work.read_changes(planned.dataset)))
        if invalidations := work.invalidations(input_.dataset):
            live = work.read_live(input_.dataset)
            filters = [typed_filter(find_filter(i.scope) or EVERY_ROW, live) for i in invalidations]
            scopes.append(_scopes_of(work, scoping, planned.name, live.where(any_of(filters))))
            scopes += _own_scopes(work, scoping, input_, filters)
    if (request := find_filter(work.task.scope)) is not None:
        scopes += _requested_scopes(work, scoping, request)
    if not scopes:
        raise AssertionError(f"{work.node.name} has no changed input to recompute keys for")
    return reduce(DataFrame.unionByName, scopes)


def _own_scopes(work: Work, scoping: Scoping, input_: Input, filters: list[AllOf]) -> list[DataFrame]:
    """If an invalidation names only key columns, also the output's own rows.

    Such a row may come from input rows that no longer exist.
    """
    own = work.read_own()
    if own is None or not isinstance(input_.relation, By) or not set(scoping.job.key) <= set(own.columns):
        return []
    there = dict(zip(input_.relation.columns, scoping.job.key, strict=True))
    on_key = [f for f in filters if find_columns(f) <= set(there)]
    rows = own.where(~F.col(DELETED) & any_of(on_key, there)) if on_key else None
    return [scoping.select(rows, scoping.job.key)] if rows is not None else []


def _requested_scopes(work: Work, scoping: Scoping, request: AllOf) -> list[DataFrame]:
    """`--where` over the output: its rows.

    If it names only key columns, also the input rows of those keys.
    """
    own = work.read_own()
    assert own is not None
    scopes = []
    rows = own.where(~F.col(DELETED) & any_of([typed_filter(request, own)]))
    if set(scoping.job.key) <= set(own.columns):
        scopes.append(scoping.select(rows, scoping.job.key))
    elif scoping.job.partition is not None:
        scopes.append(
            scoping.select_names(work.session, list(work.partitions)).join(rows.select(KEY), KEY, "left_semi")
        )
    for input_ in work.node.inputs:
        if isinstance(input_.relation, By):
            here = dict(zip(scoping.job.key, input_.relation.columns, strict=True))
            if find_columns(request) <= set(here):
                rows = work.read_live(input_.dataset)
                scopes.append(scoping.select(rows.where(any_of([request], here)), input_.relation.columns))
    return scopes


def _scopes_of(work: Work, scoping: Scoping, name: str, rows: DataFrame) -> DataFrame:
    """The scopes that rows of an input belong to.

    Rows that do not name their scope are looked up in another input, at its old and its new version.
    """
    input_ = work.node.get_input(name)
    match input_.relation:
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
            keys_there = rows.select(
                *(F.col(quote(here)).alias(f"__on{i}") for i, (here, _) in enumerate(on))
            ).distinct()
            same = [
                F.col(f"__on{i}").eqNullSafe(F.col(quote(other_name))) for i, (_, other_name) in enumerate(on)
            ]
            return _scopes_of(work, scoping, through, there.join(F.broadcast(keys_there), same, "left_semi"))
        case other_relation:
            raise AssertionError(f"{name} is related by {other_relation}")


def _unsigned(rows: DataFrame) -> list[str]:
    return [c for c in rows.columns if c != SIGN]


def restrict_inputs(
    work: Work, scoping: Scoping, keys: KeySet, part: str = ""
) -> tuple[dict[str, DataFrame], dict[str, Observation]]:
    """Each input as the job may read it, and counters of the rows read.

    An input is restricted to the scope if its relation says how, and read whole otherwise. `part`
    distinguishes the counters of several scopes in one query.
    """
    done: dict[str, DataFrame] = {}

    def restricted(input_: Input) -> DataFrame:
        if input_.name not in done:
            match input_.relation:
                case By(columns=columns):
                    rows = scoping.restrict(
                        _read_near(work, scoping, input_.dataset, columns, keys), columns, keys
                    )
                case Via(input=through, on=on):
                    there = restricted(work.node.get_input(through))
                    keys_there = there.select(
                        *(F.col(quote(name)).alias(f"__on{i}") for i, (_, name) in enumerate(on))
                    ).distinct()
                    same = [
                        F.col(f"__on{i}").eqNullSafe(F.col(quote(here))) for i, (here, _) in enumerate(on)
                    ]
                    rows = work.read_live(input_.dataset).join(keys_there, same, "left_semi")
                case _:
                    rows = work.read_live(input_.dataset)
            done[input_.name] = rows
        return done[input_.name]

    counters = {f"rows of {i.name} for {work.attempt}{part}": i for i in work.node.inputs}
    observed = {name: Observation(name) for name in counters}
    counted = {
        i.name: restricted(i).observe(observed[name], F.count(F.lit(1)).alias("rows"))
        for name, i in counters.items()
    }
    return counted, observed


def _read_near(work: Work, scoping: Scoping, dataset: str, columns: Sequence[str], keys: KeySet) -> DataFrame:
    """An input, or a part of it that contains the scope's rows, if that can be looked up quickly."""
    kinds = {
        f.name: f.dataType for f in spark_schema(get_table(work.lake.table(dataset), work.version(dataset)))
    }
    condition = scoping.condition(columns, keys, kinds)
    nearby = work.find_live(dataset, columns[-1], condition) if condition else None
    return work.read_live(dataset) if nearby is None else nearby


def count_read(result: DataFrame, counters: Mapping[str, Observation]) -> int:
    """Number of input rows left after restriction to the scope, for the report alone.

    An input that the user's code does not use is not in the plan, and its counter would be waited for. One
    whose counter Spark dropped counts as not read.
    """
    plan = result._jdf.queryExecution().analyzed().toString()
    counts = [find_counts(counter) for name, counter in counters.items() if name in plan]
    return sum(counted["rows"] or 0 for counted in counts if counted)
