"""The algorithm of entities agrees with brute force on random histories, and known defects of it do not."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable

import pytest

from tests.property import entity_model
from tests.property.entity_model import Change, Node, owners_of
from tests.property.entity_play import HAPPENINGS, Play, WrongError
from tests.property.entity_world import Row, Variable

HISTORIES = 12_000
EXAMPLES = 1500
"""How many histories a mutant may survive at most."""

Patch = pytest.MonkeyPatch
Mutant = Callable[[Patch], None]


def test_random_histories_of_entities_are_published_as_brute_force_says(say: Callable[[str], None]) -> None:
    counts: Counter[str] = Counter()

    for seed in range(HISTORIES):
        play = Play(seed)
        play.play()
        counts += play.counts

    rare = {what: counts[what] for what in HAPPENINGS if counts[what] < HISTORIES / 40}
    assert rare == {}
    say(f"entities: {HISTORIES} histories, {counts['runs']} runs as by brute force")


def new_owner_only(patch: Patch) -> None:
    patch.setattr(
        entity_model,
        "owners_of",
        lambda changes: {row.owner for sign, row in changes if sign > 0 and row.owner is not None},
    )


def entities_with_new_rows_only(patch: Patch) -> None:
    patch.setattr(entity_model, "bands_of", lambda *_: [])


def no_existence_by_facts(patch: Patch) -> None:
    def name_live(facts: Iterable[Row], used: Collection[str]) -> set[tuple[int, str]]:
        return {
            (f.owner, f.dataset)
            for f in facts
            if f.owner is not None and f.dataset in used and not f.deleted and f.owner != 5
        }

    patch.setattr(entity_model, "new_names", name_live)


def closed_windows(patch: Patch) -> None:
    patch.setattr(
        entity_model,
        "in_window",
        lambda at, length, as_of: at is not None and as_of - length <= at <= as_of,
    )


def subtracting_what_was_never_added(patch: Patch) -> None:
    really = entity_model.counts

    def add_leaf(
        leaf: tuple[int, int],
        changes: Iterable[Change],
        crossing: Iterable[Row],
        variable: Variable,
        before: int,
        now: int,
    ) -> tuple[int, int]:
        total, number = leaf
        for sign, row in changes:
            weight = sign * really(row, variable, now if sign > 0 else before)
            total, number = total + weight * (row.value or 0), number + weight
        for row in crossing:
            weight = really(row, variable, now) - really(row, variable, before)
            total, number = total + weight * (row.value or 0), number + weight
        return total, number

    patch.setattr(entity_model, "add_leaf", add_leaf)


def section_bounded_by_the_ordering_column(patch: Patch) -> None:
    really = entity_model.section_of

    def by_order(rows: Iterable[Row], variables: Collection[Variable], as_of: int) -> list[Row]:
        newest = max((row.order for row in rows), default=0)
        return [row for row in really(rows, variables, as_of) if row.order > newest - 60]

    patch.setattr(entity_model, "section_of", by_order)


def null_in_the_scope(patch: Patch) -> None:
    """`NOT IN` with a NULL in the scope is never true: every other entity is wiped."""
    really = entity_model._compute

    def wiping(node: Node, *arguments: object) -> None:
        changes: list[Change] = arguments[4]  # type: ignore[assignment]
        if any(row.owner is None for _, row in changes):
            scope = owners_of(changes)
            node.table = {owner: row for owner, row in node.table.items() if owner in scope}
        really(node, *arguments)  # type: ignore[arg-type]

    patch.setattr(entity_model, "_compute", wiping)


def a_default_that_hides_a_zero(patch: Patch) -> None:
    patch.setattr(
        entity_model,
        "with_default",
        lambda value, variable: value or (value if variable.default is None else variable.default),
    )


def a_changed_variable_mixed_in(patch: Patch) -> None:
    really = entity_model.run

    def mixing(
        node: Node, world: object, declared: Collection[Variable], *rest: object, **more: object
    ) -> None:
        for variable in declared:
            if variable.name in node.defined:
                node.defined[variable.name] = variable  # new work uses the new definition
        really(node, world, declared, *rest, **more)  # type: ignore[arg-type]

    patch.setattr(entity_model, "run", mixing)


MUTANTS: tuple[Mutant, ...] = (
    new_owner_only,
    entities_with_new_rows_only,
    no_existence_by_facts,
    closed_windows,
    subtracting_what_was_never_added,
    section_bounded_by_the_ordering_column,
    null_in_the_scope,
    a_default_that_hides_a_zero,
    a_changed_variable_mixed_in,
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_defect_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)

    assert any(is_wrong(seed) for seed in range(EXAMPLES))


def is_wrong(seed: int) -> bool:
    try:
        Play(seed).play()
    except (WrongError, KeyError):
        return True
    return False
