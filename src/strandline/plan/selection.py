"""`--select`: names with `+` for upstream and downstream, `stale:`, several separated by blanks."""

from collections.abc import Iterable
from difflib import get_close_matches

from strandline.model.errors import CallError
from strandline.model.node import Project


def select_nodes(project: Project, selector: str, stale: Iterable[str] = ()) -> frozenset[str]:
    """The nodes a selector means.

    A name that does not exist is an error: selecting nothing by mistake would look like success.
    """
    chosen: set[str] = set()
    for word in selector.split() or [selector]:
        if word == "stale:":
            chosen |= set(stale)
            continue
        named = set(get_nodes(project, word.strip("+")))
        chosen |= named
        if word.startswith("+"):
            chosen |= upstream(project, named)
        if word.endswith("+"):
            chosen |= downstream(project, named)
    return frozenset(chosen)


def get_nodes(project: Project, name: str) -> tuple[str, ...]:
    """The nodes NAME means on the command line."""
    if name in project.names:
        return project.names[name]
    close = get_close_matches(name, project.names, 1)
    hint = f"Did you mean `{close[0]}`? " if close else ""
    known = ", ".join(sorted(project.names))
    raise CallError(
        f"There is nothing called `{name}` in this project.",
        remedy=f"{hint}Known: {known}.",
        slug="unknown-name",
    )


def downstream(project: Project, names: Iterable[str]) -> set[str]:
    reached = set(names)
    for node in project.nodes:
        if any(i.dataset in reached for i in node.inputs):
            reached.add(node.name)
    return reached


def upstream(project: Project, names: Iterable[str]) -> set[str]:
    reached = set(names)
    for node in reversed(project.nodes):
        if node.name in reached:
            reached |= {i.dataset for i in node.inputs}
    return reached
