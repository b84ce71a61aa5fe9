"""Entities in both tables, for tests: a project file may not declare them before every verb knows them."""

from collections.abc import Iterator

import pytest

from strandline.compute.entity import worker
from strandline.declare import not_yet, sections
from strandline.declare.entities.section import ENTITIES
from strandline.dispatch.workers import WORKERS
from strandline.model.entity import Entity


@pytest.fixture(scope="module", autouse=True)
def entities_are_known() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if ENTITIES not in sections.SECTIONS:
            patch.setattr(sections, "SECTIONS", (*sections.SECTIONS, ENTITIES))
            patch.delitem(not_yet.LATER_SECTIONS, "entities")
            patch.setitem(WORKERS, Entity.kind, worker)
        yield
