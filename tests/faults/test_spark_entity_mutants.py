"""Known defects of entities in the engine's own computations on Spark. `make test-faults` runs them."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.compute.entity import adding, naming, selecting, times, touched
from strandline.lake.reads import SIGN
from strandline.model import definitions
from strandline.model.columns import quote
from strandline.model.entity import Variable

from . import entity_scenarios as scenarios
from .killing import Mutant, make_mutant_tests
from .processes import all_faults
from .scenarios import Scenario
from .spark_world import SparkFate, SparkRooms

pytestmark = [pytest.mark.spark, pytest.mark.faults, all_faults]

Patch = pytest.MonkeyPatch


def new_owner_only(patch: Patch) -> None:
    really = touched._net_used
    patch.setattr(touched, "_net_used", lambda *given: really(*given).where(F.col(SIGN) > 0))


def entities_with_new_rows_only(patch: Patch) -> None:
    patch.setattr(touched, "find_crossing", lambda *_: None)


def no_existence_by_facts(patch: Patch) -> None:
    really = naming.find_new
    patch.setattr(touched, "find_new", lambda *given: really(*given).where("false"))


def closed_windows(patch: Patch) -> None:
    really = times.window_condition
    patch.setattr(times, "window_condition", lambda *given: really(*given).replace(" < ", " <= "))


def subtracting_what_was_never_added(patch: Patch) -> None:
    """Changed rows are weighed at the new time. Those that also cross a border count twice."""
    really = adding.weigh_changes

    def weigh(changes: DataFrame, added: Any, entity: Any, before: datetime, calendar: Any) -> DataFrame:
        return really(changes, added, entity, before + timedelta(days=1), calendar)

    patch.setattr(touched, "weigh_changes", weigh)


def a_default_that_hides_a_zero(patch: Patch) -> None:
    really: Callable[..., Column] = selecting.default_of

    def hide(variable: Variable, kind: Any) -> Column:
        value = really(variable, kind)
        if variable.default is None:
            return value
        return F.when(F.col(quote(variable.name)) == 0, F.lit(variable.default).cast(kind)).otherwise(value)

    patch.setattr(selecting, "default_of", hide)


def a_changed_variable_mixed_in(patch: Patch) -> None:
    """What is new is computed by the new definition, and what is published stays."""
    patch.setattr(definitions, "_compare", lambda was, now: "added" if was is None else "current")


MUTANTS: dict[Mutant, Scenario] = {
    new_owner_only: scenarios.much_changes_at_once,
    entities_with_new_rows_only: scenarios.much_changes_at_once,
    no_existence_by_facts: scenarios.much_changes_at_once,
    closed_windows: scenarios.much_changes_at_once,
    subtracting_what_was_never_added: scenarios.much_changes_at_once,
    a_default_that_hides_a_zero: scenarios.much_changes_at_once,
    a_changed_variable_mixed_in: scenarios.a_variable_is_held_for_a_day,
}
"""Each with the scenario that kills it."""
PLAYED = (scenarios.much_changes_at_once, scenarios.a_variable_is_held_for_a_day)


(
    start,
    test_without_a_mutant_no_law_breaks,
    test_a_mutant_is_killed,
    test_all_mutants_were_killed,
) = make_mutant_tests(
    MUTANTS, PLAYED, SparkRooms, SparkFate, scenarios.first, what="of entities with Spark: "
)
