"""Known defects of timelines, switched on one at a time. A law must break under each of them.

Half of them are defects of the model of timelines, which the plain workers are built on. There they break
what brute force says, here they break what readers see.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from strandline.dispatch import attempt
from strandline.lake.work import Prepared
from strandline.model.columns import HEAD, ROLE, Role
from strandline.plan import clock
from tests.property import test_timeline_model as model

from . import ledger_scenarios, plain_workers, table_log
from .killing import Mutant, make_mutant_tests
from .kinds.timeline import layout
from .kinds.timeline import worker as timeline
from .kinds.valuation import worker as valuation
from .ledger_scenarios import SCENARIOS
from .plain_work import Work
from .scenarios import Scenario
from .table_log import Row, Rows
from .world import Ledger

pytestmark = pytest.mark.faults

Patch = pytest.MonkeyPatch


def _write(patch: Patch, change: Callable[[list[Row]], list[Row]]) -> None:
    """What is written in the place of published rows is changed first."""
    really = table_log.replace_superseded

    def changed(rows: Rows, lake: Any, ticket: Any, superseding: Any) -> None:
        really(replace(rows, rows=change(list(rows.rows))), lake, ticket, superseding)

    patch.setattr(table_log, "replace_superseded", changed)


def superseded_row_not_kept(patch: Patch) -> None:
    """The published row leaves, and nothing is put aside."""

    def nowhere(rows: Rows, lake: Any, ticket: Any, superseding: Any) -> None:
        named = [row for row in rows.rows if row[HEAD] and row[HEAD]["replaces"] is not None]
        places = {(row[HEAD]["replaces"], layout.key_of(row), row.get("date")) for row in named}
        kept = replace(rows, rows=[row for row in rows.rows if row[ROLE] != Role.EPOCH])
        table_log.replace_where(
            kept, lake, ticket, lambda row: (row["_key"], layout.key_of(row), row["date"]) in places
        )

    patch.setattr(table_log, "replace_superseded", nowhere)


def superseded_row_stays_published(patch: Patch) -> None:
    _write(patch, lambda rows: [row if row[ROLE] != Role.EPOCH else _without_place(row) for row in rows])


def head_beside_the_one_before(patch: Patch) -> None:
    _write(patch, lambda rows: [row if row[ROLE] != Role.HEAD else _without_place(row) for row in rows])


def _without_place(row: Row) -> Row:
    return {**row, HEAD: {**row[HEAD], "replaces": None}}


def head_left_for_the_next_commit(patch: Patch) -> None:
    """Rows and heads are written by two commits, and the process dies between them."""
    _write(patch, lambda rows: [row for row in rows if row[ROLE] != Role.HEAD or row["epoch"] == 0])


def herd_says_that_nothing_is_left(patch: Patch) -> None:
    def silent(work: Work) -> Prepared:
        return replace(valuation.prepare(work), waiting=())

    known = plain_workers.KINDS_BY_NAME["valuation"]
    patch.setitem(plain_workers.KINDS_BY_NAME, "valuation", replace(known, prepare=silent))


def herd_read_before_it_is_complete(patch: Patch) -> None:
    patch.setattr(attempt, "_readable", lambda desk, node, input_: desk.pins.get(input_.dataset))


def clock_goes_back(patch: Patch) -> None:
    for module in (clock, attempt):
        patch.setattr(module, "effective_as_of", lambda node, record, as_of, task: as_of)


def table_written_anew_forgets(patch: Patch) -> None:
    """Epochs and superseded rows are lost with the catalog, and when a valuation is thawed."""

    def read(work: Work) -> list[Row] | None:
        return None if work.task.overwrite else work.read_own()

    for module in (timeline, valuation):
        patch.setattr(module, "read_published", read)


MUTANTS: dict[Mutant, Scenario] = {
    superseded_row_not_kept: ledger_scenarios.the_past_of_trades_changes,
    superseded_row_stays_published: ledger_scenarios.the_past_of_trades_changes,
    head_beside_the_one_before: ledger_scenarios.the_past_of_trades_changes,
    head_left_for_the_next_commit: ledger_scenarios.the_past_of_trades_changes,
    herd_says_that_nothing_is_left: ledger_scenarios.a_herd_comes_in_batches,
    herd_read_before_it_is_complete: ledger_scenarios.a_herd_comes_in_batches,
    clock_goes_back: ledger_scenarios.prices_and_dates_change,
    table_written_anew_forgets: ledger_scenarios.what_was_superseded_outlives_its_catalog,
    model.window_one_date_short: ledger_scenarios.prices_and_dates_change,
    model.epoch_on_no_change: ledger_scenarios.the_past_of_trades_changes,
    model.cursor_moved_without_marks: ledger_scenarios.a_herd_comes_in_batches,
    model.group_published_in_part: ledger_scenarios.a_herd_comes_in_batches,
    model.stored_state_not_replaced: ledger_scenarios.the_past_of_trades_changes,
    model.held_key_valued: ledger_scenarios.a_key_fails_and_is_mended,
    model.changes_missed_while_held: ledger_scenarios.a_key_fails_and_is_mended,
    model.marks_replaced_by_the_next: ledger_scenarios.a_herd_comes_in_batches,
}
"""Each with the scenario that kills it."""


(
    start,
    test_without_a_mutant_no_law_breaks,
    test_a_mutant_is_killed,
    test_all_mutants_were_killed,
) = make_mutant_tests(MUTANTS, SCENARIOS, Ledger, first=ledger_scenarios.first, what="of timelines: ")
