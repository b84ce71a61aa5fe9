"""Views: rows of a dataset for which a condition is true, with calculated columns, row by row."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.compute.calendar import provide_calendar
from strandline.compute.compare import (
    compared_columns,
    replace_differences,
    stage_differences,
    tag,
    write_whole,
)
from strandline.compute.filtering import condition_column
from strandline.compute.key_set import KeySet, find_keys, read_own
from strandline.compute.keys import typed_key
from strandline.compute.raised import find_raised
from strandline.compute.shape import fit_types
from strandline.lake.work import NEW, OLD, Expected, Prepared, Work
from strandline.model.columns import CONFIG, DELETED, KEY, METADATA_COLUMNS, SOURCE_AT, SOURCE_TS, quote
from strandline.model.condition_checks import check_condition
from strandline.model.errors import CallError, WorkError
from strandline.model.plan import Strategy
from strandline.model.publishing import View
from strandline.model.scope import EVERYTHING, NOTHING, Keys

from .leaving import find_leaving


def prepare(work: Work) -> Prepared:
    """Look at the rows of changed keys again, or at all, and replace those that differ."""
    with _naming_columns(view_of(work)):
        return _prepare(work, view_of(work))


def _prepare(work: Work, view: View) -> Prepared:
    own = None if work.task.overwrite else work.read_own()
    full_rows = work.input_rows.get(view.dataset, 0)
    if own is None:
        rows = _keyed(work, view, _compute(work, view, work.read_live(view.dataset)))
        return write_whole(work, rows, rows_full=full_rows)
    if work.task.strategy is Strategy.RECOMPUTE:
        keys = find_keys(work, work.read_changes(view.dataset).select(typed_key(view.key).alias(KEY)))
        if not keys.count:
            return Prepared(write=None, rows_full=full_rows, live_rows=work.live_rows, scope=NOTHING)
        return _compare(work, view, own, keys, full_rows)
    return _compare(work, view, own, None, full_rows)


def expect(work: Work) -> Expected:
    view, own = view_of(work), work.read_own()
    assert own is not None
    rows = _compute(work, view, work.read_live(view.dataset))
    return Expected(
        rows=rows.drop(*METADATA_COLUMNS), published=own.where(~F.col(DELETED)), sampled_by=view.key
    )


def view_of(work: Work) -> View:
    assert isinstance(work.node.definition, View)
    return work.node.definition


@contextmanager
def _naming_columns(view: View) -> Iterator[None]:
    """An error of Spark that is about the value of a calculated column becomes one that names the column."""
    try:
        yield
    except Exception as error:
        raised = find_raised(error, {column.name: column.sql for column in view.calculated})
        if raised is None:
            raise
        names = " or ".join(f"`{name}`" for name in raised.names)
        raise WorkError(
            f"{view.place}: the column {names} of the view `{view.name}` cannot be computed for some row:"
            f" `{raised.sql}` raised {raised.condition}. What is published stays as it is.",
            remedy=f"Correct the row that it reads, or use {raised.instead}, and run again.",
            slug="expression-raised",
        ) from error


def _compare(work: Work, view: View, own: DataFrame, keys: KeySet | None, full_rows: int) -> Prepared:
    """Compare the rows of some keys, or of all, with what is published."""
    rows = work.read_live(view.dataset)
    published = own if keys is None else read_own(work, keys)
    if keys is not None:
        rows = keys.restrict(rows, typed_key(view.key))
    new = fit_types(_keyed(work, view, _compute(work, view, rows)), own, work)
    old = published.where(~F.col(DELETED))
    sides = tag(new, NEW).unionByName(tag(old, OLD), allowMissingColumns=True)
    timed = SOURCE_TS in own.columns
    if timed:
        leaving = tag(find_leaving(work, view, old, new), NEW)
        sides = sides.unionByName(leaving, allowMissingColumns=True)
    compared = compared_columns(sides, backfill=False)
    staged = stage_differences(work, sides, compared, bury=not timed)
    prepared = replace_differences(
        work,
        staged,
        rows_read=full_rows if keys is None else keys.rows,
        rows_full=full_rows,
        scope=EVERYTHING if keys is None else Keys(count=keys.count),
        whole=keys is None,
    )
    if not timed or prepared.write is None:
        return prepared
    return replace(prepared, tombstones=staged.counts["new_rows"] - staged.counts["new_live"])


def _compute(work: Work, view: View, rows: DataFrame) -> DataFrame:
    """The rows of the view among some rows of its dataset, with the time of each."""
    kinds = {f.name: f.dataType.simpleString() for f in rows.schema}
    try:
        where = check_condition(view.where, kinds)
    except CallError as error:
        raise WorkError(
            f"{view.place}: `where` of the view `{view.name}`: {error.what}",
            remedy=error.remedy,
            slug=error.slug,
        ) from error
    times = [c for c in (SOURCE_AT, SOURCE_TS) if c in rows.columns]
    names = [c for c in work.project.get(view.dataset).in_order(rows.columns) if c not in METADATA_COLUMNS]
    for column in view.calculated:
        if column.name in names:
            raise WorkError(
                f"{view.place}: the column `{column.name}` of the view `{view.name}` has the name of a column"
                f" of `{view.dataset}`.",
                remedy="Rename it.",
                slug="name-taken",
            )
    provide_calendar(work.session, work.project.calendar, " ".join(c.sql for c in view.calculated))
    found = rows.where(condition_column(where))
    calculated = [F.expr(column.sql).alias(column.name) for column in view.calculated]
    try:
        return found.select(*map(quote, names), *calculated, *times)
    except PySparkException as error:
        reason = str(error).splitlines()[0]
        raise WorkError(
            f"{view.place}: the view `{view.name}` cannot be computed: {reason}",
            remedy="Correct its calculated columns.",
            slug="sql-refused",
        ) from error


def _keyed(work: Work, view: View, rows: DataFrame) -> DataFrame:
    return rows.withColumns(
        {KEY: typed_key(view.key), DELETED: F.lit(False), CONFIG: F.lit(work.config.hash)}
    )
