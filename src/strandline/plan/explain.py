"""Which strategy a change of each input of a node leads to, and why."""

from strandline.model.explained import Explained, ExplainedInput, ExplainedVariable
from strandline.model.node import By, Input, Lookup, Matched, NewRows, Node, Via, Whole
from strandline.model.plan import Plan, Strategy
from strandline.model.report import listed
from strandline.model.traits import ColumnOrigin

from .draft import Draft
from .own_columns import define
from .request import Observed
from .strategies import FOLLOWING, Way, find_way


def explain_node(node: Node, plan: Plan, observed: Observed) -> Explained:
    record = observed.view.nodes.get(node.name)
    cursors = record.cursors if record else {}
    written = record.configs if record else ()
    held = _find_held_columns(node, plan, observed) if node.traits.origins else {}
    return Explained(
        node=node.name,
        kind=node.kind,
        how=node.traits.how,
        key=node.key,
        inputs=tuple(
            ExplainedInput(
                name=input_.name,
                dataset=input_.dataset,
                relation=_relation_name(input_),
                strategy=_strategy(node, input_),
                why=_why(node, input_),
                cursor=cursors[input_.dataset].version if input_.dataset in cursors else None,
                version=observed.tables[input_.dataset].version
                if input_.dataset in observed.tables
                else None,
            )
            for input_ in node.inputs
        ),
        variables=tuple(
            ExplainedVariable(
                name=origin.name,
                read_from=origin.read_from,
                strategy=way.strategy,
                why=f"{held[origin.part]}; then {way.why}" if origin.part in held else way.why,
                window=origin.window,
                written=bool(written)
                and written[-1].parts.get(origin.part) == node.config.parts[origin.part],
            )
            for origin in node.traits.origins
            for way in [_way(node, origin, plan, observed)]
        ),
        config=node.config.hash,
        parts=node.config.parts,
        stale=next((h for h in plan.stale if h.node == node.name), None),
        frozen=next((h for h in plan.frozen if h.node == node.name), None),
        next_task=next((t for t in plan.tasks if t.node == node.name), None),
    )


def _find_held_columns(node: Node, plan: Plan, observed: Observed) -> dict[str, str]:
    """By part: why its column is not kept up to date now."""
    draft = Draft(tasks={task.node: task for task in plan.tasks})
    record = observed.view.nodes.get(node.name)
    found = define(node, record, node.config, observed, draft)
    told = dict.fromkeys(
        found.changed,
        f"stale: its column stays as published until `strandline backfill {node.name} --stale` fills it",
    )
    names = {i.dataset: i.name for i in node.inputs}
    for part, datasets in found.waiting.items():
        inputs = dict.fromkeys(names[dataset] for dataset in datasets)
        waits = f"{listed(inputs)}, which {'was' if len(inputs) == 1 else 'were'} never received"
        told[part] = f"it waits for {waits if inputs else 'a variable that it names'}"
    return told


def _way(node: Node, origin: ColumnOrigin, plan: Plan, observed: Observed) -> Way:
    """How the next change reaches a column: with all others, if the next task computes everything."""
    way = find_way(origin, observed)
    task = next((t for t in plan.tasks if t.node == node.name), None)
    if (
        task is None
        or task.strategy is not Strategy.FULL
        or task.cause not in FOLLOWING
        or not origin.read_from
    ):
        return way
    return Way(strategy=Strategy.FULL, why=f"{task.reason}; else {way.strategy}, as {way.why}")


def _relation_name(input_: Input) -> str:
    match input_.relation:
        case NewRows():
            return "new_rows"
        case By():
            return "by"
        case Via():
            return "via"
        case Whole():
            return "whole"
        case Lookup():
            return "lookup"
        case Matched():
            return "matched"


def _strategy(node: Node, input_: Input) -> Strategy | None:
    match input_.relation:
        case NewRows():
            return Strategy.APPEND
        case Lookup():
            return None
        case Whole():
            return Strategy.FULL
        case _:
            return Strategy.RECOMPUTE


def _why(node: Node, input_: Input) -> str:
    known = "proved from the SQL" if input_.proved else "declared"
    match input_.relation:
        case NewRows():
            return "each new row gives rows of its own"
        case By(columns=columns):
            return node.traits.key_is_named_by or f"its columns {', '.join(columns)} are the key ({known})"
        case Via(input=through, on=on):
            joined = ", ".join(here if here == there else f"{here} = {there}" for here, there in on)
            return f"its key is found through `{through}` on {joined}, before and after the change ({known})"
        case Whole() if node.traits.whole:
            return "mode `full` reads every input whole"
        case Whole():
            return (
                f"it is read whole ({known}), so a change in it may touch every row:"
                " the task is widened to everything"
            )
        case Lookup():
            return "it is a lookup: a change touches no row, and makes what is written stale"
        case Matched(columns=columns):
            return f"it is looked up by {', '.join(columns)}: a change touches the rows that look it up"
