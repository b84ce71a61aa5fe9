"""How a node is kept up to date, and why.

Shows what a change of each input leads to, what the node's rows depend on, and what a run would do now.
Starts no Spark.
"""

import argparse
from pathlib import Path

from strandline.app.explain import explain
from strandline.app.workspace import open_workspace
from strandline.model.explained import Explained, ExplainedInput, ExplainedVariable
from strandline.model.scope_text import describe

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
        {"nodes": [_node(e) for e in explanations]},
        "nodes",
        lambda: "\n\n".join(render_explained(e) for e in explanations),
    )
    return 0


def _node(explained: Explained) -> dict[str, object]:
    task = explained.next_task
    return {
        "node": explained.node,
        "kind": explained.kind,
        "how": explained.how,
        "key": list(explained.key),
        "inputs": [_input(i) for i in explained.inputs],
        **({"variables": [_variable(v) for v in explained.variables]} if explained.variables else {}),
        "config": explained.config,
        "parts": dict(explained.parts),
        "stale": explained.stale.reason if explained.stale else None,
        "frozen": explained.frozen.reason if explained.frozen else None,
        "next": {
            "cause": task.cause,
            "strategy": task.strategy,
            "reason": task.reason,
            "scope": describe(task.scope),
        }
        if task
        else None,
    }


def _input(explained: ExplainedInput) -> dict[str, object]:
    return {
        "name": explained.name,
        "dataset": explained.dataset,
        "relation": explained.relation,
        "strategy": explained.strategy,
        "why": explained.why,
        "cursor": explained.cursor,
        "version": explained.version,
    }


def _variable(explained: ExplainedVariable) -> dict[str, object]:
    return {
        "variable": explained.name,
        "from": explained.read_from or None,
        "strategy": explained.strategy,
        "why": explained.why,
        "window": explained.window or None,
        "written": explained.written,
    }


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
