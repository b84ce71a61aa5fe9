"""The fold of the model: facts, folded in date order into the history of each key (ADR 14, "The fold")."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tests.property.timeline_reach import FoldVersion
from tests.property.timeline_table import CURRENT, FAILED, Head, KeyChange, Table, commit, compare
from tests.property.timeline_world import Date, Declaration, Fact, Key, Values


class FoldNode:
    """Facts, folded in date order into the history of each key."""

    def __init__(self, declaration: Declaration) -> None:
        self.declaration = declaration
        self.facts: Mapping[str, Fact] = {}
        self.versions = [FoldVersion(table=Table(), facts={})]
        self.folded_again: set[Key] = set()
        """In the last run: the keys of which all facts were read."""

    def run(self, facts: Mapping[str, Fact], everything: bool = False) -> None:
        """Fold what changed. `everything` is a backfill: all keys are folded again and compared."""
        left, came = _facts_by_key(self.facts, facts), _facts_by_key(facts, self.facts)
        before = self.versions[-1].table
        self.folded_again = set()
        changes = {
            key: self._fold(key, before, came.get(key, ()), facts, everything or key in left)
            for key in (left.keys() | came.keys() | (before.heads.keys() if everything else set()))
        }
        after = commit(before, changes)
        self.facts = facts
        if after is not None:
            self.versions.append(FoldVersion(table=after, facts=facts))

    def _fold(
        self, key: Key, before: Table, came: Sequence[Fact], facts: Mapping[str, Fact], again: bool
    ) -> KeyChange:
        """A key that only got later facts goes on from its head. Every other touched key is folded again."""
        head = before.heads.get(key, Head())
        published: Mapping[Date, Values] = {}
        if again or not goes_on(head, came):
            self.folded_again.add(key)
            came = _facts_by_key(facts, {}).get(key, ())
            published = before.values_by_date(key)
            known = Head(epoch=head.epoch, watermark=head.watermark)
        else:
            known = head
        try:
            rows, last = self._fold_dates(came, known)
        except ValueError as error:  # nothing of the key is published, not even the dates before
            return KeyChange(head=replace(head, status=FAILED, reason=str(error)), watermark=head.watermark)
        put, replaced = compare(published, rows)
        return KeyChange(
            head=self._keep(head, last, put), watermark=head.watermark, put=put, replaced=replaced
        )

    def _fold_dates(self, facts: Sequence[Fact], known: Head) -> tuple[dict[Date, Values], Head]:
        """Rows of the dates with facts, and the head after them."""
        rows: dict[Date, Values] = {}
        head = replace(known, status=CURRENT, reason="")
        for on in sorted({fact.on for fact in facts if fact.on is not None}):
            state = self.declaration.fold(head.state, [fact for fact in facts if fact.on == on])
            rows[on] = {name: state[name] for name in self.declaration.fields}
            head = replace(head, state=state, last_on=on, fields=rows[on])
        return rows, replace(head, watermark=later(head.watermark, head.last_on))

    def _keep(self, before: Head, after: Head, put: Mapping[Date, Values]) -> Head:
        """The head to store. Its state may differ although no row does."""
        return after


def _facts_by_key(facts: Mapping[str, Fact], other: Mapping[str, Fact]) -> dict[Key, list[Fact]]:
    """The facts with a date that `other` lacks or has with other values, in folding order, by key."""
    found: dict[Key, list[Fact]] = defaultdict(list)
    for name, fact in sorted(facts.items(), key=lambda item: (item[1].rank, item[0])):
        if fact.on is not None and other.get(name) != fact:
            found[fact.key].append(fact)
    return found


def goes_on(head: Head, came: Sequence[Fact]) -> bool:
    """Whether facts that came can be folded onto the state of the head, without the others.

    The state of a FAILED key lacks facts that came while it failed.
    """
    if head.status == FAILED:
        return False
    return head.last_on is None or all(fact.on is not None and fact.on > head.last_on for fact in came)


def later(first: Date | None, second: Date | None) -> Date | None:
    """The watermark of a fold never goes back: a reader was told that everything up to it is known."""
    known = [on for on in (first, second) if on is not None]
    return max(known, default=None)
