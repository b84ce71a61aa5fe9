"""Which variables a task adds to, as its plan says, and which it computes again."""

from collections.abc import Mapping

from strandline.lake.work import Work
from strandline.model.accumulation import find_delay
from strandline.model.entity import Entity

from .parts import UseParts, make_parts
from .touched import is_changed

NOT_ADDED = (
    "what is published does not tell enough to add to it, so the affected entities were computed again"
)


def find_parts(work: Work, entity: Entity) -> dict[str, UseParts]:
    """By use: the variables that can be added to, of which `_state` keeps what their values do not tell."""
    return {
        use.name: make_parts(use, entity.variables_of(use), work.read_live(use.dataset), f"p{number}")
        for number, use in enumerate(entity.uses)
    }


def choose_added(
    work: Work, entity: Entity, parts: Mapping[str, UseParts]
) -> tuple[dict[str, UseParts], tuple[str, ...]]:
    """By use: the variables that this task adds to, and what must be said about the others."""
    changing = {i.dataset for i in work.task.inputs if i.changes}
    chosen, notes = {}, []
    for use in entity.uses:
        if is_changed(work, use.dataset) and work.invalidations(use.dataset):
            notes.append(f"rows of `{use.input}` were declared invalid, so their entities are computed again")
            continue
        if entity.borders_of(use) and work.as_of_before is None:
            continue
        names = [
            v.name
            for v in entity.variables_of(use)
            if v.accumulation is not None and not find_delay(v.accumulation, changing)
        ]
        chosen[use.name] = parts[use.name].only(names)
    return {name: of for name, of in chosen.items() if of.leaves}, tuple(notes)
