"""Proof that the checks work: known defects of such engines, switched on one at a time.

A law must break under each of them.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from sqlalchemy import update

from strandline.catalog import commits, record_unchanged
from strandline.catalog.tables import leases
from strandline.compute.chain import branches
from strandline.dispatch import attempt, holding, horizon, maintain, settle
from strandline.dispatch.failpoints import reach
from strandline.lake.log import LogEntry
from strandline.lake.work import Prepared
from strandline.model import commits as commit_values
from strandline.model.columns import CONFIG, KEY, POSITION
from strandline.model.node import By
from strandline.model.project import FactDataset, Job
from strandline.plan import planner, rules, settling

from . import plain_work, plain_workers, scenarios, table_log
from .evidence import BrokenLawError, Evidence
from .fate import Fate
from .killing import Mutant, make_mutant_tests
from .kinds import KINDS, Kind, quarantine
from .kinds.chain import worker as chain
from .kinds.job import appending, results
from .kinds.snapshot import worker as snapshot
from .plain_work import Work
from .scenarios import SCENARIOS, Scenario
from .table_log import Row, Rows
from .world import Ledger, PublishingDesk, Rooms, World

pytestmark = pytest.mark.faults

Patch = pytest.MonkeyPatch


def no_fence(patch: Patch) -> None:
    """A token per attempt, and no fence after an unclean end."""
    patch.setattr(holding, "_fence", lambda *_: None)


def no_confirm_after_an_exception(patch: Patch) -> None:
    def believe_the_error(held: holding.Held, commit: Callable[[], None]) -> Any:
        commit()
        reach("after-write", held.node.name)
        return really(held, lambda: None)

    really = holding.Held.write
    patch.setattr(holding.Held, "write", believe_the_error)


def confirm_believes_the_call(patch: Patch) -> None:
    really = settle.find_ours
    patch.setattr(
        holding,
        "find_ours",
        lambda desk, lease, entries: really(desk, lease, entries) or (entries[-1] if entries else None),
    )


def record_without_token_check(patch: Patch) -> None:
    def only_release(connection: Any, lease: Any, *, release: bool) -> None:
        if release:
            connection.execute(
                update(leases).where(leases.c.dataset == lease.dataset).values(state="released")
            )

    patch.setattr(commits, "check_token", only_release)


def unfenced_zombie(patch: Patch) -> None:
    """The table is not asked whether a newer token was there."""
    patch.setattr(table_log, "is_old", lambda *_: False)


def first_append_onto_what_is_there(patch: Patch) -> None:
    """A table that was not there could not be fenced, and is not looked for again."""
    really = table_log.append
    patch.setattr(
        table_log,
        "append",
        lambda rows, lake, ticket, *, received, first: really(rows, lake, ticket, received=received),
    )


def part_of_a_deleted_table_taken_for_all(patch: Patch) -> None:
    patch.setattr(
        commit_values.CommitSummary,
        "foreign",
        property(lambda commit: commit.changes_rows and commit.metadata is None),
    )


def inputs_older_than_what_was_published(patch: Patch) -> None:
    patch.setattr(attempt, "_pin", lambda observed, read: observed)


def settle_ignores_unknown_commits(patch: Patch) -> None:
    patch.setattr(settle, "record_commit", lambda *_, **__: None)


def cursor_moves_before_the_commit(patch: Patch) -> None:
    def too_early(this: Any, *args: Any) -> Any:
        record_unchanged(
            this.desk.catalog,
            this.held.lease,
            kind=this.node.kind,
            cursors=this.inputs,
            files=(),
            as_of=this.as_of,
            table_version=None,
            release=False,
            waiting=(),
        )
        return really(this, *args)

    really = attempt._commit
    patch.setattr(attempt, "_commit", too_early)


def table_token_not_looked_at(patch: Patch) -> None:
    """The catalog's last token is taken for the last."""
    patch.setattr(holding, "read_token", lambda *_: 0)


def unrecorded_backfill_forgotten(patch: Patch) -> None:
    for module in (rules, settling):
        patch.setattr(module, "settle_unrecorded", lambda *_: None)


def purge_marks_readers_behind(patch: Patch) -> None:
    patch.setattr(commit_values, "_QUIET", frozenset(commit_values._QUIET) - {commit_values.Operation.PURGE})


def compaction_marks_readers_behind(patch: Patch) -> None:
    patch.setattr(
        LogEntry,
        "changes_rows",
        property(lambda entry: (bool(entry.added) and entry.metadata is None) or really(entry)),
    )


really = LogEntry.changes_rows.fget  # type: ignore[attr-defined]


def cursor_on_a_business_column(patch: Patch) -> None:
    """`WHERE at > cursor` loses what is late."""

    def newer(work: Work, name: str) -> list[Row]:
        seen = max((row["at"] for row in work.read_own() or []), default=-1)
        return [row for row in work.read_added(name) if row["at"] > seen]

    patch.setattr(snapshot, "read_increment", newer)


def tie_by_arrival(patch: Patch) -> None:
    def by_place(row: Row, dataset: FactDataset) -> tuple[Any, ...]:
        position = row[POSITION]
        return (row["at"], position["name"], position["place"])

    patch.setattr(snapshot, "rank", by_place)


def latest_per_column(patch: Patch) -> None:
    """One argMax a column builds a row that never existed."""

    def mixed(one: Row, other: Row, dataset: FactDataset) -> Row:
        older, newer = sorted((one, other), key=lambda row: snapshot.rank(row, dataset))
        return {name: older[name] if value is None else value for name, value in newer.items()}

    patch.setattr(snapshot, "choose", mixed)


def deleted_rows_forgotten(patch: Patch) -> None:
    """A snapshot that keeps no deleted row lets an older fact bring the record back."""
    patch.setattr(snapshot, "stands", plain_work.live)


def hash_without_null_flags(patch: Patch) -> None:
    patch.setattr(plain_work, "with_null_flags", lambda values: [v for v in values if v is not None])


def dynamic_overwrite(patch: Patch) -> None:
    """Only what has rows is replaced, so what became empty stays."""
    patch.setattr(plain_work, "buried", lambda rows, key: [])


def relation_guessed_by_column_name(patch: Patch) -> None:
    """The tariff with the name `*` is not of the names in the scope."""

    def guessed(work: Work, job: Job, scope: Collection[Any] | None) -> list[Row]:
        inputs = {}
        for given in work.node.inputs:
            rows = [plain_work.declared(row) for row in work.read_live(given.dataset)]
            columns = (
                given.relation.columns
                if isinstance(given.relation, By)
                else [c for c in job.key if rows and c in rows[0]]
            )
            wanted = {tuple(key[job.key.index(c)] for c in columns if c in job.key) for key in scope or ()}
            shared = [c for c in columns if c in job.key]
            inputs[given.name] = [r for r in rows if scope is None or tuple(r[c] for c in shared) in wanted]
        return results.JOBS[job.output](inputs, job.config)

    patch.setattr(results, "compute", guessed)


def moved_key_stays_with_its_old_owner(patch: Patch) -> None:
    def came(changes: Any, columns: Sequence[str]) -> set[Any]:
        return {tuple(row[c] for c in columns) for sign, row in changes if sign > 0}

    patch.setattr(results, "changed_keys", came)


def insert_new_without_dedupe(patch: Patch) -> None:
    patch.setattr(appending, "only_new", lambda rows, own, unique_key: list(rows))


def not_in_with_null(patch: Patch) -> None:
    """`NOT IN` of a list with a NULL is never true."""
    really = appending.only_new

    def not_in(rows: Sequence[Row], own: Sequence[Row], unique_key: Sequence[str]) -> list[Row]:
        unknown = any(row[c] is None for row in own for c in unique_key)
        return [] if unknown else really(rows, own, unique_key)

    patch.setattr(appending, "only_new", not_in)


def unique_key_not_null_safe(patch: Patch) -> None:
    """A NULL equals nothing, so a key with one is inserted again and again."""
    really = appending.only_new

    def equal_only(rows: Sequence[Row], own: Sequence[Row], unique_key: Sequence[str]) -> list[Row]:
        unknown = [row for row in rows if any(row[c] is None for c in unique_key)]
        return [*really([r for r in rows if r not in unknown], own, unique_key), *unknown]

    patch.setattr(appending, "only_new", equal_only)


def quarantined_rows_dropped(patch: Patch) -> None:
    patch.setattr(quarantine, "refused_rows", lambda work: [])


def invalidation_ignored(patch: Patch) -> None:
    patch.setattr(results, "matches", lambda given, row: False)


def old_branch_stays_where_the_new_one_ends(patch: Patch) -> None:
    """Only what has a new block is replaced."""
    really = chain._walk

    def forgets(*given: Any) -> Any:
        walked = really(*given)
        return walked and ({number: hash_ for number, hash_ in walked[0].items() if hash_}, *walked[1:])

    patch.setattr(chain, "_walk", forgets)


def last_announcement_counts(patch: Patch) -> None:
    def last(rows: Any) -> dict[str, Row]:
        return {row["hash"]: row for row in sorted(rows, key=plain_work.place_of)}

    patch.setattr(chain, "first_announced", last)


def waiting_blocks_forgotten(patch: Patch) -> None:
    """Only what was announced now is linked."""
    really = branches.follow

    def only_new(
        rule: Any, announced: Any, published: Any, new: Any, known: Any, anchor: int, *, stride: int
    ) -> Any:
        there = {published.hash_at(b.number) for b in announced.blocks.values()} | {b.hash for b in new}
        seen = chain.Announced(blocks={hash_: b for hash_, b in announced.blocks.items() if hash_ in there})
        return really(rule, seen, published, new, known, anchor, stride=stride)

    patch.setattr(chain, "follow", only_new)


def partition_overwrite_drops_the_others(patch: Patch) -> None:
    really = table_log.replace_where
    patch.setattr(
        table_log,
        "replace_where",
        lambda rows, lake, ticket, matches: really(rows, lake, ticket, lambda row: True),
    )


def empty_partition_stays(patch: Patch) -> None:
    """Dynamic partition overwrite: what has no new row is not replaced."""
    really = table_log.replace_where

    def only_filled(rows: Any, lake: Any, ticket: Any, matches: Any) -> None:
        filled = {row[KEY] for row in rows.rows}
        really(rows, lake, ticket, lambda row: row[KEY] in filled)

    patch.setattr(table_log, "replace_where", only_filled)


def waiting_partition_forgotten(patch: Patch) -> None:
    patch.setattr(Work, "waiting", property(lambda work: ()))


def frozen_is_written(patch: Patch) -> None:
    patch.setattr(planner, "find_frozen", lambda *_: None)
    patch.setattr(attempt, "find_frozen", lambda *_: None)


def frozen_is_written_if_the_catalog_is_old(patch: Patch) -> None:
    patch.setattr(attempt, "find_frozen", lambda *_: None)


def backfill_forgets_what_was_published(patch: Patch) -> None:
    patch.setattr(appending, "published", lambda own, job: [])


def cleaning_ignores_cursors(patch: Patch) -> None:
    """As a cleaning by age alone."""
    really = horizon.find_horizon
    patch.setattr(
        maintain, "find_horizon", lambda entries, cursors, since, keep: really(entries, {}, since, keep)
    )


def cleaning_says_nothing(patch: Patch) -> None:
    patch.setattr(maintain, "_announce", lambda *_: None)


MUTANTS: dict[Mutant, Scenario] = {
    no_fence: scenarios.a_write_lands_late,
    no_confirm_after_an_exception: scenarios.answers_are_lost,
    confirm_believes_the_call: scenarios.a_write_is_passed_over,
    record_without_token_check: scenarios.a_writer_is_overtaken,
    unfenced_zombie: scenarios.a_writer_is_overtaken,
    first_append_onto_what_is_there: scenarios.a_first_write_lands_late,
    part_of_a_deleted_table_taken_for_all: scenarios.a_table_is_deleted_under_a_task,
    inputs_older_than_what_was_published: scenarios.another_run_reads_on_meanwhile,
    settle_ignores_unknown_commits: scenarios.killed_behind_the_write,
    cursor_moves_before_the_commit: scenarios.killed_before_the_write,
    table_token_not_looked_at: scenarios.catalogs_come_and_go,
    unrecorded_backfill_forgotten: scenarios.a_backfill_is_killed,
    purge_marks_readers_behind: scenarios.the_past_changes,
    compaction_marks_readers_behind: scenarios.catalogs_come_and_go,
    cursor_on_a_business_column: scenarios.the_past_changes,
    tie_by_arrival: scenarios.the_past_changes,
    latest_per_column: scenarios.the_past_changes,
    deleted_rows_forgotten: scenarios.the_past_changes,
    hash_without_null_flags: scenarios.the_past_changes,
    dynamic_overwrite: scenarios.the_past_changes,
    relation_guessed_by_column_name: scenarios.the_past_changes,
    moved_key_stays_with_its_old_owner: scenarios.the_past_changes,
    insert_new_without_dedupe: scenarios.the_past_changes,
    not_in_with_null: scenarios.the_past_changes,
    unique_key_not_null_safe: scenarios.the_past_changes,
    quarantined_rows_dropped: scenarios.the_past_changes,
    invalidation_ignored: scenarios.an_invalidation_after_a_change_of_configuration,
    old_branch_stays_where_the_new_one_ends: scenarios.branches_overtake_each_other,
    last_announcement_counts: scenarios.branches_overtake_each_other,
    waiting_blocks_forgotten: scenarios.branches_overtake_each_other,
    partition_overwrite_drops_the_others: scenarios.partitions_come_and_go,
    empty_partition_stays: scenarios.partitions_come_and_go,
    waiting_partition_forgotten: scenarios.partitions_come_and_go,
    frozen_is_written: scenarios.a_unique_key_changes,
    frozen_is_written_if_the_catalog_is_old: scenarios.an_old_catalog_does_not_know_what_froze,
    backfill_forgets_what_was_published: scenarios.a_unique_key_changes,
    cleaning_ignores_cursors: scenarios.a_reader_lags_behind_a_cleaning,
    cleaning_says_nothing: scenarios.an_old_catalog_after_a_cleaning,
}
"""Each with the scenario that kills it."""


def lose_a_row(rows: Rows) -> Rows:
    return replace(rows, rows=rows.rows[:-1])


def write_a_wrong_row(rows: Rows) -> Rows:
    """Its last row has another value in every column that is a text or a number."""
    wrong = {
        field.name: "wrong" if field.type == pa.string() else 12_345
        for field in rows.schema
        if field.name not in (KEY, CONFIG) and field.type in (pa.string(), pa.int64())
    }
    return replace(rows, rows=[*rows.rows[:-1], *({**row, **wrong} for row in rows.rows[-1:])])


@pytest.mark.parametrize("spoil", [lose_a_row, write_a_wrong_row])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_oracle_of_a_kind_notices_a_worker_that_spoils_a_row(
    kind: Kind, spoil: Callable[[Rows], Rows], worlds: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kind whose oracle compares nothing would pass every other test."""

    def prepare_wrongly(work: Work) -> Prepared:
        prepared = kind.prepare(work)
        if prepared.write is None:
            return prepared
        return replace(prepared, write=replace(prepared.write, rows=spoil(prepared.write.rows)))  # type: ignore[arg-type]

    fate = Fate()
    fate.install(monkeypatch)
    world_type = next(w for w in (World, Ledger, Rooms, PublishingDesk) if kind in w.kinds)
    world = world_type(worlds / "spoilt", fate)
    world.run()
    kind.check(Evidence(world, frozen=()))
    monkeypatch.setitem(plain_workers.KINDS_BY_NAME, kind.name, replace(kind, prepare=prepare_wrongly))
    for each in world.kinds:
        each.ground(world)

    with suppress(ValueError):  # an event that cannot be read is not delivered
        world.run()

    with pytest.raises(BrokenLawError):
        kind.check(Evidence(world, frozen=()))


(
    start,
    test_without_a_mutant_no_law_breaks,
    test_a_mutant_is_killed,
    test_all_mutants_were_killed,
) = make_mutant_tests(MUTANTS, SCENARIOS, World)
