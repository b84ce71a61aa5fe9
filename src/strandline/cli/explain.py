"""How a node is kept up to date, and why.

Shows what a change of each input leads to, what the node's rows depend on, and what a run would do now.
Starts no Spark.
"""

import argparse
from pathlib import Path

from strandline.app.explain import explain
from strandline.app.workspace import open_workspace
from strandline.model.explained import Explained, ExplainedInput
from strandline.pages.documents.explain import explain_document

from .output import emit
from .tables import render_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a dataset, source or job")


def run(call: argparse.Namespace) -> int:
    with open_workspace(Path(call.project)) as workspace:
        explanations = explain(workspace, call.name)
    emit(
        call.output,
        "explain",
        explain_document(explanations),
        "nodes",
        lambda: "\n\n".join(render_explained(e) for e in explanations),
    )
    return 0


def render_explained(explained: Explained) -> str:
    lines = [f"{explained.node} ({explained.kind})", f"  {explained.how}"]
    if explained.inputs:
        rows = [(f"`{i.name}`", i.strategy or "nothing", _read(i), i.why) for i in explained.inputs]
        table = render_table(
            ("a change in", "leads to", "read up to", "because"), rows, wrap_last=True, indent="  "
        )
        lines += ["", table]
    if explained.variables:
        variables = [
            (v.name, v.read_from or "variables", v.strategy, v.window or "none", v.why)
            for v in explained.variables
        ]
        head = ("variable", "from", "leads to", "window", "because")
        lines += ["", render_table(head, variables, wrap_last=True, indent="  ")]
    lines += ["", f"  Its rows depend on (configuration {explained.config}): {_parts(explained)}."]
    for state, held in (("Stale", explained.stale), ("Frozen", explained.frozen)):
        lines += [f"  {state}: {held.reason}"] if held else []
    task = explained.next_task
    now = (
        f"{task.strategy}, {task.reason}"
        if task
        else "nothing"
        if explained.frozen
        else "nothing, it is up to date"
    )
    return "\n".join([*lines, f"  A run would now do: {now}."])


def _parts(explained: Explained) -> str:
    """`key, sql; column a, b; type a, b`."""
    groups: dict[str, list[str]] = {}
    for part in explained.parts:
        group, _, name = part.partition(" ")
        groups.setdefault(group, []).extend([name] if name else [])
    alone = ", ".join(group for group, names in groups.items() if not names)
    return "; ".join(
        text
        for text in (alone, *(f"{group} {', '.join(names)}" for group, names in groups.items() if names))
        if text
    )


def _read(explained: ExplainedInput) -> str:
    if explained.cursor is None:
        return "nothing yet"
    behind = (
        f" of {explained.version}"
        if explained.version is not None and explained.version != explained.cursor
        else ""
    )
    return f"version {explained.cursor}{behind}"
