"""Which strategy a change of each input of a node leads to, and why."""

from strandline.model.explained import Explained, ExplainedInput
from strandline.model.node import By, Input, Lookup, NewRows, Node, NodeKind, Via, Whole
from strandline.model.plan import Plan, Strategy
from strandline.model.project import Chain, FileSource, Job, Language, Mode

from .request import Observed


def explain_node(node: Node, plan: Plan, observed: Observed) -> Explained:
    record = observed.view.nodes.get(node.name)
    cursors = record.cursors if record else {}
    return Explained(
        node=node.name,
        kind=node.kind,
        how=_how(node),
        key=node.key,
        inputs=tuple(
            ExplainedInput(
                name=given.name,
                dataset=given.dataset,
                relation=_relation_name(given),
                strategy=_strategy(node, given),
                why=_why(node, given),
                cursor=cursors[given.dataset].version if given.dataset in cursors else None,
                version=observed.tables[given.dataset].version if given.dataset in observed.tables else None,
            )
            for given in node.inputs
        ),
        config=node.config.hash,
        parts=node.config.parts,
        stale=next((h for h in plan.stale if h.node == node.name), None),
        frozen=next((h for h in plan.frozen if h.node == node.name), None),
        next_task=next((t for t in plan.tasks if t.node == node.name), None),
    )


def _how(node: Node) -> str:
    key = ", ".join(node.key)
    match node.definition:
        case FileSource(files=files):
            return f"Files matching {files} are read once and every row is appended as it came."
        case Chain(head=head, blocks=blocks):
            rule = f"{head.kind} {head.column}".replace("_", " ").strip()
            return f"The branch of the best head ({rule}) among the blocks of `{blocks}`: only numbers whose block differs are replaced."
        case Job(mode=Mode.FULL):
            return "Mode `full`: computed anew as a whole whenever an input changes."
        case Job() as job:
            return _how_job(job) + (" It uses :as_of, so it is computed anew as a whole when that moves." if job.uses_as_of else "")
        case _ if node.kind is NodeKind.FACTS:
            return "What the source received is decoded once; what passes is appended."
        case _ if node.kind is NodeKind.QUARANTINE:
            return "What the source received is decoded once; what fails is appended, with the reason."
        case _:
            return f"The newest fact of each key ({key}): new facts are compared with the row of their key, and what differs is replaced."


def _how_job(job: Job) -> str:
    code, key = "SQL" if job.language is Language.SQL else "Python", ", ".join(job.key)
    if job.partition is not None:
        final = f", once it lies {job.partition.final_after} behind the newest" if job.partition.final_after is not None else ""
        return f"Mode `partition`: the {code} is run for the partitions of {key} that a change touches, and each is replaced whole{final}."
    if job.unique_key:
        new = f"rows whose ({', '.join(job.unique_key)}) is new are inserted; nothing leaves"
        return f"Mode `cursor`, appending: the {code} is run for the values of {key} that a change touches, and {new}."
    what = f"values of {key}" if job.mode is Mode.CURSOR else f"keys ({key})"
    return f"Mode `{job.mode}`: the {code} is run for the {what} that a change touches, and only those are replaced."


def _relation_name(given: Input) -> str:
    match given.relation:
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


def _strategy(node: Node, given: Input) -> Strategy | None:
    match given.relation:
        case NewRows():
            return Strategy.APPEND
        case Lookup():
            return None
        case Whole():
            return Strategy.FULL
        case _:
            return Strategy.RECOMPUTE


def _why(node: Node, given: Input) -> str:
    known = "proved from the SQL" if given.proved else "declared"
    match given.relation:
        case NewRows():
            return "each new row gives rows of its own"
        case By(columns=columns) if node.kind is NodeKind.JOB:
            return f"its columns {', '.join(columns)} are the key ({known})"
        case By():
            return "each fact names its key"
        case Via(input=through, on=on):
            joined = ", ".join(here if here == there else f"{here} = {there}" for here, there in on)
            return f"its key is found through `{through}` on {joined}, before and after the change ({known})"
        case Whole() if isinstance(node.definition, Job) and node.definition.mode is Mode.FULL:
            return "mode `full` reads every input whole"
        case Whole():
            return f"it is read whole ({known}), so a change in it may touch every row: the task is widened to everything"
        case Lookup():
            return "it is a lookup: a change touches no row, and makes what is written stale"
