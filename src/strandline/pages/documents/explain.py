"""How a node is kept up to date."""

from collections.abc import Sequence

from strandline.model.explained import Explained, ExplainedInput, ExplainedVariable
from strandline.model.scope_text import describe


def explain_document(explanations: Sequence[Explained]) -> dict[str, object]:
    return {"nodes": [_node(e) for e in explanations]}


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
