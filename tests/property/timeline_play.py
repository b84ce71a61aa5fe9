"""A random history of a timeline, played on the model and checked against brute force after each commit."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from tests.property.timeline_brute import (
    Account,
    BruteHistory,
    BruteValuation,
    Published,
    fold_all,
    last_business_date,
    reached_cells,
    value_all,
)
from tests.property.timeline_fold import FoldNode
from tests.property.timeline_model import ValuationNode
from tests.property.timeline_reach import FoldVersion, Seen, within
from tests.property.timeline_table import CURRENT, FAILED, REPROCESSING, Group, Head, Table
from tests.property.timeline_world import (
    DATES,
    Date,
    Fact,
    Inputs,
    Key,
    Values,
    change_inputs,
    choose_declaration,
    start_inputs,
)

RUNS = 9

HAPPENINGS = (
    "a key goes on from its head",
    "a key is folded again",
    "a fold fails",
    "a key folds again after it failed",
    "a key loses its last fact",
    "a required reference is missing",
    "a missing reference comes",
    "a key waits for its batch",
    "facts come while keys wait",
    "a run leaves batches to the next",
    "a batch is published",
    "dates become due without a row",
    "an earlier `as_of`",
    "an epoch grows",
    "a change writes nothing",
)
"""What the histories must contain to mean anything."""


class WrongError(Exception):
    """The model and brute force disagree."""


def require(holds: bool, claim: str, *details: object) -> None:
    if not holds:
        raise WrongError(" ".join([claim, *map(str, details)]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What one version of the inputs gives, by brute force."""

    inputs: Inputs
    clock: Date
    history: BruteHistory
    valuation: BruteValuation


class Play:
    """One timeline, its inputs, and the accounts of both outputs."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.declaration = choose_declaration(self.chance)
        self.batch_rows = self.chance.choice((1, 1, 2, 3, 6, 1000))
        self.inputs = start_inputs(self.declaration, self.chance)
        self.fold = FoldNode(self.declaration)
        self.valuation = ValuationNode(self.declaration, self.batch_rows)
        self.fold_account, self.account = Account(), Account()
        self.history = BruteHistory()
        self.known: set[Key] = set()
        self.clock = self.chance.choice((2, 4, 6))
        self.truth: Truth | None = None
        self.complete: Published = {}
        self.counts: Counter[str] = Counter()
        """Of HAPPENINGS, and of commits."""

    def play(self) -> None:
        """Runs with one change or several; of the fold alone; that stop after some batches; backfills."""
        for number in range(RUNS):
            for _ in range(6 if number == 0 else self.chance.choice((0, 1, 1, 2, 3))):
                self.inputs = change_inputs(self.declaration, self.inputs, self.chance)
            everything = self.chance.random() < 0.05
            self._run_fold(everything)
            if self.chance.random() < 0.85:
                as_of = max(0, min(DATES[-1], self.clock + self.chance.choice((-2, 0, 0, 0, 1, 1, 2))))
                self._run_valuation(as_of, self.chance.choice((None, 1, 1, 1, 2)), everything)

    # --- the fold

    def _run_fold(self, everything: bool) -> None:
        old_facts, before = self.fold.facts, len(self.fold.versions)
        old_rows, old_failed = self.history.rows, self.history.failed

        self.fold.run(self.inputs.facts, everything)

        self.history = fold_all(self.declaration, self.inputs.facts)
        self.known |= self.history.rows.keys() | self.history.failed
        table, account = self.fold.versions[-1].table, self.fold_account
        published = {
            key: account.rows.get(key, {}) if key in self.history.failed else self.history.rows.get(key, {})
            for key in self.known
        }
        watermarks = {
            key: _latest_of(account.watermarks.get(key), *(() if key in self.history.failed else rows))
            for key, rows in published.items()
        }
        account.enter(published, watermarks)
        _check_account(account, table)
        _check_version(self.fold.versions, before)
        touched = {
            key for key in self.known if _facts_of(old_facts, key) != _facts_of(self.inputs.facts, key)
        }
        self.counts["a key goes on from its head"] += len(touched - self.fold.folded_again)
        self.counts["a key is folded again"] += len(self.fold.folded_again)
        self.counts["a fold fails"] += len(self.history.failed - old_failed)
        self.counts["a key folds again after it failed"] += len(old_failed - self.history.failed)
        self.counts["a key loses its last fact"] += len(
            old_rows.keys() - self.history.rows.keys() - self.history.failed
        )
        for key in self.known:
            head, failed = table.heads[key], key in self.history.failed
            require(head.status == (FAILED if failed else CURRENT), "fold status", key, head)
            require(head.watermark == watermarks[key], "fold watermark", key, head, watermarks[key])
            if not failed:
                rows = published[key]
                require(head.state == self.history.states.get(key), "stored state", key, head)
                require(head.last_on == max(rows, default=None), "last date", key, head)
        if not everything:
            again = {key for key in self.known if self._is_folded_again(key, old_facts, old_failed)}
            require(self.fold.folded_again == again, "folded again", self.fold.folded_again, again)

    def _is_folded_again(self, key: Key, old_facts: Mapping[str, Fact], old_failed: set[Key]) -> bool:
        """A touched key whose changes do not only add later facts, or that had failed."""
        old, new = _facts_of(old_facts, key), _facts_of(self.inputs.facts, key)
        if old == new:
            return False
        if key in old_failed or any(new.get(name) != fact for name, fact in old.items()):
            return True
        last = _latest_of(*(fact.on for fact in old.values()))
        came = [fact.on for name, fact in new.items() if name not in old]
        return last is not None and any(on is not None and on <= last for on in came)

    # --- the valuation

    def _run_valuation(self, as_of: Date, batches: int | None, everything: bool) -> None:
        now = Seen(
            history=self.fold.versions[-1], calendar=self.inputs.calendar, references=self.inputs.references
        )
        before, old_truth, old_heads = len(self.valuation.versions), self.truth, self.valuation.table.heads
        waited = any(head.status == REPROCESSING for head in old_heads.values())
        self.counts["an earlier `as_of`"] += old_truth is not None and as_of < self.clock

        made = self.valuation.run(now, as_of, batches, everything)

        self.clock = max(self.clock, as_of) if old_truth else as_of
        self.truth = Truth(
            inputs=self.inputs,
            clock=self.clock,
            history=self.history,
            valuation=value_all(self.declaration, self.history.rows, self.inputs, self.clock),
        )
        versions = self.valuation.versions[before:]
        self.counts["commits"] += len(versions)
        self.counts["a batch is published"] += max(0, len(versions) - 1)
        self.counts["a change writes nothing"] += not versions and (
            old_truth is not None and old_truth.inputs is not self.inputs
        )
        for earlier, version in zip(self.valuation.versions[before - 1 :], versions, strict=False):
            empty = version.table == earlier.table
            news = any(earlier.clock < on <= version.clock for on in self.inputs.calendar)
            require(news or not empty, "a commit writes something, or records dates that became due")
            self.counts["dates become due without a row"] += empty
        require(made == len(versions), "commits are counted", made)
        urgent = self._groups_that_facts_touched(old_truth)
        self.counts["facts come while keys wait"] += waited and bool(urgent)
        for number, version in enumerate(versions):
            self._check_commit(version.table, urgent, first=number == 0)
        if not versions:
            self._check_commit(self.valuation.table, urgent, first=True)
        self._check_progress(batches)
        old_missing, missing = old_truth.valuation.missing if old_truth else {}, self.truth.valuation.missing
        self.counts["a required reference is missing"] += len(missing.keys() - old_missing.keys())
        self.counts["a missing reference comes"] += len(old_missing.keys() - missing.keys())
        if not everything and old_truth:
            self._check_reach(old_truth, old_heads)

    def _check_commit(self, table: Table, urgent: set[Group], first: bool) -> None:
        assert self.truth is not None
        history, valuation = self.truth.history, self.truth.valuation
        due = last_business_date(self.inputs, self.clock)
        published: dict[Key, Mapping[Date, Values]] = {}
        watermarks: dict[Key, Date | None] = {}
        marked = {key for key, head in table.heads.items() if head.status == REPROCESSING}
        require(table.heads.keys() == self.known, "every key has a head", table.heads.keys(), self.known)
        for key, head in table.heads.items():
            as_it_was = self.account.rows.get(key, {}), self.account.watermarks.get(key)
            if key in history.failed:
                require(head.status == FAILED, "a held key is FAILED", key, head)
                published[key], watermarks[key] = as_it_was
            elif key in marked:
                require(self.batch_rows < 1000, "nothing waits without a herd", key)
                require(self._group(key) not in urgent, "facts go first", key)
                rows, truth = as_it_was[0], valuation.rows.get(key, {})
                differ = [on for on in rows.keys() | truth.keys() if rows.get(on) != truth.get(on)]
                require(all(within(on, head.pending) for on in differ), "marks", key, head, differ)
                published[key], watermarks[key] = as_it_was
            else:
                missing = valuation.missing.get(key, set())
                require(head.status == (FAILED if missing else CURRENT), "status", key, head)
                require(head.waits == missing, "what a key waits for", key, head, missing)
                published[key] = valuation.rows.get(key, {})
                watermarks[key] = last_business_date(self.inputs, min(missing) - 1) if missing else due
            told = due if head.status == CURRENT else head.watermark
            require(told == watermarks[key], "watermark", key, head, watermarks[key])
        self._check_groups(table, marked, first)
        epochs = sum(self.account.epochs.values())
        self.account.enter(published, watermarks)
        _check_account(self.account, table)
        self.counts["an epoch grows"] += sum(self.account.epochs.values()) > epochs
        self.counts["a key waits for its batch"] += len(marked)
        if not marked:
            self.complete = {key: dict(rows) for key, rows in published.items() if rows}
        read = {key: self.valuation.complete.table.values_by_date(key) for key in self.known}
        if table is self.valuation.table:
            require({k: rows for k, rows in read.items() if rows} == self.complete, "last complete version")

    def _check_groups(self, table: Table, marked: set[Key], first: bool) -> None:
        """Readers see the groups of marked keys as they were. A batch is one group, or puts few rows."""
        waiting = {self._group(key) for key in marked}
        restated = Counter[Group]()
        for key in self.known:
            group, rows, old = self._group(key), table.values_by_date(key), self.account.rows.get(key, {})
            require(group not in waiting or rows == old, "a group is whole", group, key)
            restated[group] += sum(rows[on] != old.get(on) for on in rows)
        if not first:
            groups = [group for group, count in restated.items() if count]
            require(len(groups) < 2 or restated.total() <= self.batch_rows, "batches are small", restated)

    def _check_progress(self, batches: int | None) -> None:
        marked = [key for key, head in self.valuation.table.heads.items() if head.status == REPROCESSING]
        self.counts["a run leaves batches to the next"] += bool(marked)
        made = self.valuation.batches
        if batches is None or made < batches:
            require(not marked, "a run does all that it may", marked)
        else:
            require(made == batches, "no more batches than allowed", made)

    def _check_reach(self, old: Truth, old_heads: Mapping[Key, Head]) -> None:
        """The cells that a change reaches are those of LANGUAGE's table, and contain all that differ.

        A group waits only if it is reached, or waited before. Dates newly due are no reason.
        """
        assert self.truth is not None
        new, work = self.truth, self.valuation.work
        anew = {key for key in self.known if key not in old_heads or key in old.history.failed}
        cells = reached_cells(
            self.declaration,
            (old.history.rows, old.inputs, old.valuation),
            (new.history.rows, new.inputs, new.valuation),
            self.clock,
        )
        reached = {self._group(key) for key, _ in cells}
        reached |= {self._group(key) for key, head in old_heads.items() if head.status == REPROCESSING}
        for key, head in self.valuation.table.heads.items():
            if head.status == REPROCESSING and not old.inputs.calendar - new.inputs.calendar:
                require(self._group(key) in reached, "a group that is not reached does not wait", key)
        for key, steps in new.history.rows.items():
            if key in anew:
                continue
            for on in DATES:
                due = on in new.inputs.calendar and min(steps) <= on <= self.clock
                by_model = within(on, work.reached[key])
                require(not due or by_model == ((key, on) in cells), "reach", key, on, work.reached[key])
                differs = old.valuation.rows.get(key, {}).get(on) != new.valuation.rows.get(key, {}).get(on)
                missing = on in old.valuation.missing.get(key, ()), on in new.valuation.missing.get(key, ())
                if differs or missing[0] != missing[1]:
                    require(within(on, work.ranges[key]), "a cell that differs is reached", key, on)

    def _groups_that_facts_touched(self, old: Truth | None) -> set[Group]:
        assert self.truth is not None
        now, before = self.truth.history, old.history if old else BruteHistory()
        return {
            self._group(key)
            for key in self.known
            if key not in now.failed
            and (key in before.failed or now.rows.get(key, {}) != before.rows.get(key, {}))
        }

    def _group(self, key: Key) -> Group:
        return (key[0],) if self.declaration.together else key


def _facts_of(facts: Mapping[str, Fact], key: Key) -> dict[str, Fact]:
    return {name: fact for name, fact in facts.items() if fact.key == key and fact.on is not None}


def _latest_of(*dates: Date | None) -> Date | None:
    return max((on for on in dates if on is not None), default=None)


def _check_version(versions: list[FoldVersion], before: int) -> None:
    require(len(versions) <= before + 1, "one commit")
    if len(versions) > before:
        require(versions[-1].table != versions[-2].table, "a commit writes something")


def _check_account(account: Account, table: Table) -> None:
    """What is published is what must be, with its epochs, and every superseded row is kept once."""
    published = {key: table.values_by_date(key) for key in table.rows}
    require(published == account.rows, "rows", published, "instead of", account.rows)
    epochs = {key: head.epoch for key, head in table.heads.items()}
    require(epochs == account.epochs, "epochs", epochs, "instead of", account.epochs)
    row_epochs = {(key, on): row.epoch for key, rows in table.rows.items() for on, row in rows.items()}
    require(row_epochs == account.row_epochs, "epochs of rows", row_epochs, "instead of", account.row_epochs)
    require(
        all(epoch <= epochs[key] for (key, _), epoch in row_epochs.items()),
        "epochs of rows are at most the key's",
    )
    kept = [(old.key, old.on, old.row.values, old.row.epoch, old.superseded_by) for old in table.superseded]
    require(
        _sorted(kept) == _sorted(account.superseded), "superseded", kept, "instead of", account.superseded
    )


def _sorted(superseded: list[tuple[Key, Date, Values, int, int]]) -> list[str]:
    return sorted(map(repr, superseded))
