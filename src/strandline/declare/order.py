"""Sorts entries that may read each other, each one after what it reads."""

from collections.abc import Mapping

from strandline.model.errors import Place
from strandline.model.report import Report


def sort_outputs(
    reads: Mapping[str, tuple[str, ...]], places: Mapping[str, Place], report: Report
) -> list[str]:
    """Outputs in an order in which each one comes after what it reads.

    Outputs on a cycle are reported. They and their readers are left out.
    """
    done: list[str] = []
    state: dict[str, str] = {}

    def visit(name: str, trail: tuple[str, ...]) -> bool:
        if state.get(name) == "open":
            _report_cycle((*trail[trail.index(name) :], name), places, report)
            return False
        if name not in state:
            state[name] = "open"
            # Every input is visited, so that each cycle is reported.
            sound = False not in {visit(other, (*trail, name)) for other in reads[name] if other in reads}
            state[name] = "done" if sound else "broken"
            if sound:
                done.append(name)
        return state[name] == "done"

    for name in reads:
        visit(name, ())
    return done


def _report_cycle(cycle: tuple[str, ...], places: Mapping[str, Place], report: Report) -> None:
    if len(cycle) == 2:
        report.add(
            "cycle",
            f"what writes `{cycle[0]}` also reads it.",
            "Read the dataset from which it is made instead.",
            places[cycle[0]],
        )
        return
    path = " reads ".join(f"`{name}`" for name in cycle)
    report.add(
        "cycle",
        f"these outputs depend on each other: {path}.",
        "Remove one of these inputs.",
        places[cycle[0]],
    )
