"""`--select`: what a selector means."""

import pytest

from strandline.model.errors import CallError
from strandline.model.node import Project
from strandline.plan import select_nodes
from tests.golden.cases import tell

SALE = {"sale_facts", "sale_quarantine", "sale"}


@pytest.fixture
def shop() -> Project:
    return tell(("project shop",)).project


@pytest.mark.parametrize(
    ("selector", "meant"),
    [
        ("pieces", {"pieces"}),
        ("sale", SALE),
        ("sale_facts", {"sale_facts"}),
        ("pieces best", {"pieces", "best"}),
        ("+pieces", {"sale_events", "sale_facts", "sale", "pieces"}),
        ("pieces+", {"pieces", "best"}),
        ("+pieces+", {"sale_events", "sale_facts", "sale", "pieces", "best"}),
        ("price_list+", {"price_list", "price_facts", "price_quarantine", "price", "turnover"}),
        ("stale:", {"best"}),
        ("stale: turnover", {"best", "turnover"}),
    ],
)
def test_a_selector_means_these_nodes(shop: Project, selector: str, meant: set[str]) -> None:
    assert select_nodes(shop, selector, stale=("best",)) == meant


def test_a_job_is_also_found_by_its_own_name() -> None:
    small = tell(("project small",)).project

    assert select_nodes(small, "shop_pieces") == select_nodes(small, "pieces") == {"pieces"}


def test_a_name_that_is_not_there_is_an_error_with_the_nearest_one(shop: Project) -> None:
    with pytest.raises(CallError, match="Did you mean `pieces`") as refused:
        select_nodes(shop, "sale piecs")

    assert (refused.value.slug, refused.value.exit_code) == ("unknown-name", 2)


def test_nothing_stale_selects_nothing(shop: Project) -> None:
    assert select_nodes(shop, "stale:") == frozenset()
