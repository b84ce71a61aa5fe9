"""From checked declarations to nodes, inputs before readers."""

from collections.abc import Mapping

from strandline.model.errors import Place
from strandline.model.node import By, Input, NewRows, Node
from strandline.model.project import Calendar, FactDataset, FileSource, Job, Quarantine, Snapshot
from strandline.model.report import Report

from .config import facts_config, job_config, quarantine_config, source_config
from .schema import SourceSpec
from .traits import facts_traits, job_traits, quarantine_traits, snapshot_traits, source_traits


def source_node(source: FileSource, spec: SourceSpec) -> Node:
    return Node(
        name=source.name,
        inputs=(),
        definition=source,
        config=source_config(source, spec),
        traits=source_traits(source),
    )


def dataset_nodes(dataset: FactDataset, source: FileSource, calendar: Calendar) -> tuple[Node, ...]:
    """The facts, the quarantine, and for a record set its snapshot."""
    columns = () if dataset.takes_other_columns else tuple(column.name for column in dataset.columns)
    received = Input(name=dataset.source, dataset=dataset.source, relation=NewRows())
    facts = Node(
        name=f"{dataset.name}_facts",
        inputs=(received,),
        definition=dataset,
        config=facts_config(dataset, source, calendar),
        traits=facts_traits(dataset),
        columns=columns,
    )
    quarantine = Node(
        name=f"{dataset.name}_quarantine",
        inputs=(received,),
        definition=Quarantine(facts=dataset),
        config=quarantine_config(dataset, calendar),
        traits=quarantine_traits(dataset),
    )
    if dataset.record_set is None:
        return facts, quarantine
    snapshot = Node(
        name=dataset.name,
        inputs=(
            Input(name=facts.name, dataset=facts.name, relation=By(columns=dataset.record_set.scope_key)),
        ),
        definition=Snapshot(facts=dataset),
        config=facts.config,
        traits=snapshot_traits(dataset),
        columns=columns,
    )
    return facts, quarantine, snapshot


def job_node(
    job: Job,
    inputs: tuple[Input, ...],
    lookups: tuple[str, ...],
    calendar: Calendar,
    positions: Mapping[str, tuple[str, ...]],
    columns: tuple[str, ...] = (),
) -> Node:
    config = job_config(job, inputs, lookups, calendar, positions)
    return Node(
        name=job.output,
        inputs=inputs,
        definition=job,
        config=config,
        traits=job_traits(job),
        columns=columns,
    )


def sort_jobs(reads: Mapping[str, tuple[str, ...]], places: Mapping[str, Place], report: Report) -> list[str]:
    """Job outputs so that each comes after what it reads; those on a cycle, and their readers, are left out and reported."""
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
            f"the job that writes `{cycle[0]}` reads it.",
            "Read the dataset it is made from instead.",
            places[cycle[0]],
        )
        return
    told = " reads ".join(f"`{name}`" for name in cycle)
    report.add(
        "cycle",
        f"these jobs wait for each other: {told}.",
        "Take one of these inputs away.",
        places[cycle[0]],
    )
