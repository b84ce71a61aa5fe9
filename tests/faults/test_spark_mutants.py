"""Proof that the checks work on Spark: defects in the engine's own computations and writes.

`make test-faults` runs them. A hash of keys without NULL flags is not among them. Keys with one hash are
computed and written together, so that defect does not break a law.
"""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.compute import compare, key_set
from strandline.compute.facts import quarantine
from strandline.compute.job import affected, appending, keyed
from strandline.compute.snapshot import worker as snapshot
from strandline.lake import writes
from strandline.lake.reads import SIGN
from strandline.lake.work import Prepared, Work
from strandline.model.columns import DELETED, KEY, POSITION, quote
from strandline.model.scope import NOTHING

from . import scenarios
from .killing import Mutant, make_mutant_tests
from .processes import all_faults
from .scenarios import Scenario
from .spark_world import SparkFate, SparkWorld

pytestmark = [pytest.mark.spark, pytest.mark.faults, all_faults]

Patch = pytest.MonkeyPatch


def tie_by_arrival(patch: Patch) -> None:
    patch.setattr(
        snapshot,
        "rank",
        lambda order_by, declared: F.struct(*(F.col(quote(c)) for c in order_by), F.col(POSITION)),
    )


def deleted_rows_forgotten(patch: Patch) -> None:
    really = key_set.read_own
    patch.setattr(snapshot, "read_own", lambda work, keys: really(work, keys).where(~F.col(DELETED)))


def cursor_on_a_business_column(patch: Patch) -> None:
    """`WHERE at > cursor` loses what is late."""
    really = Work.read_added

    def newer(work: Work, dataset: str) -> DataFrame:
        rows, own = really(work, dataset), work.read_own()
        if own is None or "at" not in rows.columns:
            return rows
        return rows.where(F.col("at") > own.agg(F.max("at")).collect()[0][0])

    patch.setattr(Work, "read_added", newer)


def cursor_one_too_far(patch: Patch) -> None:
    really = Work.after
    patch.setattr(Work, "after", lambda work, dataset: min(really(work, dataset) + 1, work.version(dataset)))


def moved_key_stays_with_its_old_owner(patch: Patch) -> None:
    really = Work.read_changes
    patch.setattr(Work, "read_changes", lambda work, dataset: really(work, dataset).where(F.col(SIGN) > 0))


def relation_guessed_by_column_name(patch: Patch) -> None:
    """The tariff with the name `*` is not of the names in the scope."""
    really = affected.restrict_inputs

    def guessed(*given: Any) -> Any:
        inputs, counters = really(*given)
        if "rate" in inputs:
            names = inputs["item"].select(F.col("name").alias("__name"))
            inputs["rate"] = inputs["rate"].join(
                names, F.col("name").eqNullSafe(F.col("__name")), "left_semi"
            )
        return inputs, counters

    patch.setattr(keyed, "restrict_inputs", guessed)


def dynamic_overwrite(patch: Patch) -> None:
    """Only what has rows is replaced, so what became empty stays: keys, blocks and partitions."""
    really = writes.replace_listed

    def only_filled(rows: DataFrame, lake: Any, ticket: Any, hashes: Sequence[int], **near: Any) -> None:
        filled = {row[KEY] for row in rows.select(KEY).collect()}
        really(rows, lake, ticket, [h for h in hashes if h in filled] or [0], **near)

    patch.setattr(writes, "replace_listed", only_filled)


def many_vanished_keys_stay(patch: Patch) -> None:
    """The same with many keys, which are found by their rows: a vanished key has none unless it is buried."""
    really = compare.stage_differences
    patch.setenv("STRANDLINE_THRESHOLDS", "named_keys=0")
    patch.setattr(
        keyed, "stage_differences", lambda *given, **named: really(*given, **{**named, "bury": False})
    )


def replaced_scope_drops_the_rest(patch: Patch) -> None:
    patch.setattr(
        writes, "replace_listed", lambda rows, lake, ticket, *_, **__: writes.overwrite(rows, lake, ticket)
    )


def insert_new_without_dedupe(patch: Patch) -> None:
    patch.setattr(appending, "only_new", lambda rows, own, unique_key: rows)


def unique_key_not_null_safe(patch: Patch) -> None:
    """A NULL equals nothing, so a key with one is inserted again and again."""
    _join_unique_keys(patch, lambda one, other: one == other)


def not_in_with_null(patch: Patch) -> None:
    """`NOT IN` of a list with a NULL is never true."""
    _join_unique_keys(patch, lambda one, other: F.coalesce(one == other, F.lit(True)))


def _join_unique_keys(patch: Patch, same: Callable[[Column, Column], Column]) -> None:
    def only_new(rows: DataFrame, own: DataFrame, unique_key: Sequence[str]) -> DataFrame:
        theirs = own.select(*(F.col(quote(c)).alias(f"__own_{c}") for c in unique_key))
        return rows.join(
            theirs, [same(F.col(quote(c)), F.col(quote(f"__own_{c}"))) for c in unique_key], "left_anti"
        )

    patch.setattr(appending, "only_new", only_new)


def quarantined_rows_dropped(patch: Patch) -> None:
    patch.setattr(
        quarantine, "prepare", lambda work: Prepared(write=None, scope=NOTHING, live_rows=work.live_rows)
    )


def invalidation_ignored(patch: Patch) -> None:
    patch.setattr(affected, "any_of", lambda *_: F.lit(False))


def unfenced_zombie(patch: Patch) -> None:
    """A write that does not give the table its token."""

    def without_token(rows: DataFrame, ticket: writes.Ticket) -> Any:
        return rows.write.format("delta").option("userMetadata", ticket.metadata)

    patch.setattr(writes, "_writer", without_token)


MUTANTS: dict[Mutant, Scenario] = {
    tie_by_arrival: scenarios.much_changes_at_once,
    deleted_rows_forgotten: scenarios.much_changes_at_once,
    cursor_on_a_business_column: scenarios.much_changes_at_once,
    cursor_one_too_far: scenarios.much_changes_at_once,
    moved_key_stays_with_its_old_owner: scenarios.much_changes_at_once,
    relation_guessed_by_column_name: scenarios.much_changes_at_once,
    dynamic_overwrite: scenarios.much_changes_at_once,
    many_vanished_keys_stay: scenarios.much_changes_at_once,
    replaced_scope_drops_the_rest: scenarios.much_changes_at_once,
    insert_new_without_dedupe: scenarios.much_changes_at_once,
    unique_key_not_null_safe: scenarios.much_changes_at_once,
    not_in_with_null: scenarios.much_changes_at_once,
    quarantined_rows_dropped: scenarios.much_changes_at_once,
    invalidation_ignored: scenarios.an_invalidation_after_a_change_of_configuration,
    unfenced_zombie: scenarios.a_writer_is_overtaken,
}
"""Each with the scenario that kills it."""
PLAYED = sorted(set(MUTANTS.values()), key=lambda scenario: scenario.__name__)


(
    start,
    test_without_a_mutant_no_law_breaks,
    test_a_mutant_is_killed,
    test_all_mutants_were_killed,
) = make_mutant_tests(MUTANTS, PLAYED, SparkWorld, SparkFate, what="with Spark: ")
