"""Entities are refused until every verb knows them. The planner is tested with them all the same."""

import pytest

from strandline.declare import not_yet, sections
from strandline.declare.entities.section import ENTITIES


@pytest.fixture(autouse=True)
def _entities_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    if ENTITIES not in sections.SECTIONS:
        monkeypatch.setattr(sections, "SECTIONS", (*sections.SECTIONS, ENTITIES))
        monkeypatch.delitem(not_yet.LATER_SECTIONS, "entities")
