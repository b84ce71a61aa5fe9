"""A refused backfill of a held or frozen dataset names the call that settles it, and that call works."""

import pytest

from strandline.app.run import _refuse_impossible
from strandline.model.errors import CallError
from tests.golden.cases import World, tell

CHANGED = (
    "project shop",
    "built",
    "edit sum(pieces) as pieces from sale => sum(pieces + 0) as pieces from sale",
)


def refuse(world: World) -> None:
    _refuse_impossible(world.workspace, world.plan(), world.request)


def test_a_backfill_of_what_is_held_names_the_input_to_settle_and_settling_that_brings_it_along() -> None:
    world = tell((*CHANGED, "ask backfill best --all"))

    with pytest.raises(CallError) as refused:
        refuse(world)

    assert refused.value.slug == "held"
    assert "`strandline backfill pieces --stale`" in str(refused.value)
    settled = tell((*CHANGED, "ask backfill pieces --stale"))
    refuse(settled)
    assert [t.node for t in settled.plan().tasks] == ["pieces", "best"]
    assert settled.plan().held == ()


def test_a_backfill_of_a_part_of_what_is_frozen_names_the_call_that_thaws_it() -> None:
    changed = ("project small", "built", "edit type: int => type: bigint")
    world = tell((*changed, "ask backfill sale_facts --stale"))

    with pytest.raises(CallError) as refused:
        refuse(world)

    assert refused.value.slug == "frozen"
    assert "`strandline backfill sale_facts --all`" in refused.value.remedy
    thawed = tell((*changed, "ask backfill sale_facts --all"))
    refuse(thawed)
    assert ("sale_facts", True) in [(t.node, t.overwrite) for t in thawed.plan().tasks]
    assert "sale_facts" not in [h.node for h in thawed.plan().frozen]


def test_a_fact_dataset_that_is_frozen_does_not_have_its_quarantine_rewritten_alone() -> None:
    """L10: otherwise a row could be in both tables, or in neither."""
    world = tell(("project small", "built", "edit type: int => type: bigint", "ask backfill sale --stale"))
    assert [t.node for t in world.plan().tasks] == ["sale_quarantine"]

    with pytest.raises(CallError) as refused:
        refuse(world)

    assert refused.value.slug == "frozen"
    assert "`strandline backfill sale --all`" in refused.value.remedy
