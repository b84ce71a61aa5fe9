"""Known defects of entities, switched on one at a time. A law must break under each of them.

They are defects of the model of entities, which the plain worker is built on. There they break what brute
force says, here they break what readers see.
"""

from typing import Any

import pytest

from strandline.dispatch import attempt
from strandline.model import definitions
from strandline.model.commits import WrittenConfig
from strandline.model.node import Node, NodeConfig
from strandline.model.plan import Task
from tests.property import entity_model
from tests.property import test_entity_model as model

from . import entity_scenarios as scenarios
from .entity_scenarios import SCENARIOS
from .killing import Mutant, make_mutant_tests
from .scenarios import Scenario
from .world import Rooms

pytestmark = pytest.mark.faults

Patch = pytest.MonkeyPatch


def what_a_held_column_missed_is_forgotten(patch: Patch) -> None:
    """A column that is held is recorded as if it were kept up to date."""
    patch.setattr(definitions, "_KEPT", "")


def a_changed_variable_is_taken_for_the_new_one(patch: Patch) -> None:
    """A commit records the declared configuration, as that of other nodes does."""

    def declared(node: Node, task: Task, record: Any, current: NodeConfig, inputs: Any) -> WrittenConfig:
        return WrittenConfig(hash=current.hash, parts=current.parts)

    patch.setattr(attempt, "_config_after", declared)


def an_added_variable_only_of_touched_entities(patch: Patch) -> None:
    patch.setattr(entity_model, "_fill", lambda *_: None)


MUTANTS: dict[Mutant, Scenario] = {
    model.new_owner_only: scenarios.devices_move_and_go,
    model.entities_with_new_rows_only: scenarios.days_pass_with_and_without_data,
    model.no_existence_by_facts: scenarios.devices_move_and_go,
    model.closed_windows: scenarios.days_pass_with_and_without_data,
    model.subtracting_what_was_never_added: scenarios.days_pass_with_and_without_data,
    model.section_bounded_by_the_ordering_column: scenarios.devices_move_and_go,
    model.null_in_the_scope: scenarios.readings_of_nobody_come,
    model.a_default_that_hides_a_zero: scenarios.readings_of_nobody_come,
    model.a_changed_variable_mixed_in: scenarios.variables_come_change_and_go,
    what_a_held_column_missed_is_forgotten: scenarios.a_variable_is_changed_back,
    a_changed_variable_is_taken_for_the_new_one: scenarios.variables_come_change_and_go,
    an_added_variable_only_of_touched_entities: scenarios.variables_come_change_and_go,
}
"""Each with the scenario that kills it."""


(
    start,
    test_without_a_mutant_no_law_breaks,
    test_a_mutant_is_killed,
    test_all_mutants_were_killed,
) = make_mutant_tests(MUTANTS, SCENARIOS, Rooms, first=scenarios.first, what="of entities: ")
