"""Loading a project: from the file to `model.Project`, or to every mistake in it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from strandline.model.columns import POSITION
from strandline.model.errors import Mistake, ProjectError
from strandline.model.node import Node, Project
from strandline.model.project import Calendar, Chain, FactDataset, FileFormat, FileSource
from strandline.model.report import Report, find_nearest, suggest
from strandline.sql.known_columns import NOTHING, Known

from .chains import chain_node, follow_node, make_chain
from .datasets import make_fact_dataset
from .job_inputs import make_inputs, relate_inputs
from .jobs import Draft, check_tables, draft_job, make_job, mend_inputs
from .mending import UNKNOWN_INPUT
from .names import NameRegistry
from .nodes import dataset_nodes, job_node, sort_jobs, source_node
from .reads import find_positions
from .schema import ChainSpec, FactDatasetSpec, OutputSpec
from .settings import Secrets, make_calendar, make_settings
from .shape import Shape, check_shape
from .sources import find_columns, make_source
from .yaml_lines import Document, load_yaml

PROJECT_FILE = "strandline.yaml"


def find_project_file(start: Path) -> Path:
    """`strandline.yaml` in the folder or the nearest one above it."""
    if start.is_file():
        return start.resolve()
    folder = start.resolve()
    for candidate in (folder, *folder.parents):
        if (candidate / PROJECT_FILE).is_file():
            return candidate / PROJECT_FILE
    what = f"there is no {PROJECT_FILE} in {folder} or any folder above it."
    remedy = "Change to the project's folder, or make one with `strandline init`."
    raise ProjectError([Mistake(slug="project-not-found", what=what, remedy=remedy)])


def load_project(start: Path, environ: Mapping[str, str]) -> Project:
    """The checked project that `start` lies in. Raises one ProjectError that holds every mistake."""
    file = find_project_file(start)
    report = Report()
    try:
        raw = file.read_bytes()
    except OSError as error:
        what = f"{file} cannot be read: {error.strerror}."
        raise ProjectError(
            [Mistake(slug="project-not-found", what=what, remedy="Make the file readable.")]
        ) from error
    document = load_yaml(raw, file.name, report)
    project = _Loading(document, file.parent, environ, report).load() if document is not None else None
    report.raise_if_any()
    assert project is not None
    return project


@dataclass
class _Loading:
    """One loading of a project: what was found so far, by name."""

    document: Document
    folder: Path
    environ: Mapping[str, str]
    report: Report
    nodes: list[Node] = field(default_factory=list)
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)
    known: dict[str, Known] = field(default_factory=dict)
    """By SQL name: the columns a table has."""

    def load(self) -> Project | None:
        shape = check_shape(self.document, self.report)
        self.document = shape.document
        self.registry = NameRegistry(self.report, shape.broken)
        secrets = Secrets(self.environ, self.document, self.report)
        head = shape.head
        calendar = make_calendar(head, self.document, self.report) if head else Calendar()
        settings = (
            make_settings(head, self.folder, secrets, self.environ, self.document, self.report)
            if head
            else None
        )
        sources = self.load_sources(shape, secrets)
        self.load_datasets(shape, sources, calendar)
        self.load_chains(shape, calendar)
        self.load_jobs(shape, calendar)
        if len(self.report) or head is None or settings is None:
            return None
        return Project(
            name=head.project,
            folder=str(self.folder),
            calendar=calendar,
            settings=settings,
            nodes=tuple(self.nodes),
            names=self.names,
            tables=self.tables,
        )

    def load_sources(self, shape: Shape, secrets: Secrets) -> dict[str, FileSource]:
        sources = {}
        for name, spec in shape.sources.items():
            place = self.document.place("sources", name)
            source = make_source(name, spec, secrets, self.document, self.report)
            if not self.registry.claim(name, "source", place) or source is None:
                self.registry.broken |= {name}
                continue
            sources[name] = source
            columns = find_columns(source, self.folder)
            messages = source.format.holds_messages
            other = "string" if source.format is FileFormat.CSV else None
            self.add_table(
                name,
                name,
                Known(
                    types={}, complete=messages, other_type=other, names=frozenset() if messages else columns
                ),
            )
            self.names[name] = (name,)
            if self.right:
                self.nodes.append(source_node(source, spec))
        return sources

    def load_datasets(self, shape: Shape, sources: Mapping[str, FileSource], calendar: Calendar) -> None:
        for name, spec in shape.datasets.items():
            if not isinstance(spec, FactDatasetSpec):
                continue
            claimed = self.registry.claim(name, "dataset", self.document.place("datasets", name))
            candidates = self.find_sources(name, spec, sources, shape)
            quiet = shape.follow_ups.get(("datasets", name), frozenset())
            dataset, known = self.make_dataset(name, spec, candidates, self.report.without(quiet))
            if "unknown-column" in quiet:
                known = replace(known, complete=False, names=None)  # what its columns are was not understood
            if not claimed or quiet or len(candidates) > 1:
                self.registry.broken |= {name, f"{name}_facts", f"{name}_quarantine"}
            if not claimed:
                continue
            if self.right:
                self.nodes += dataset_nodes(dataset, candidates[0], calendar)
            nodes = (f"{name}_facts", f"{name}_quarantine", *((name,) if dataset.record_set else ()))
            self.names |= {node: (node,) for node in nodes}
            self.names[name] = nodes
            told_apart = replace(known, unique=_unique(dataset))
            self.add_table(f"{name}_facts", f"{name}_facts", known if dataset.record_set else told_apart)
            self.add_table(f"{name}_quarantine", f"{name}_quarantine", NOTHING)
            self.add_table(name, name if dataset.record_set else f"{name}_facts", told_apart)

    def find_sources(
        self, name: str, spec: FactDatasetSpec, sources: Mapping[str, FileSource], shape: Shape
    ) -> tuple[FileSource, ...]:
        """The source of a dataset. Of one that is not there the nearest; else two that differ in all that a dataset may depend on."""
        if spec.from_ in sources:
            return (sources[spec.from_],)
        if spec.from_ and spec.from_ not in self.registry.broken:
            what = f"the dataset `{name}` is taken from `{spec.from_}`, which is not a source."
            place = self.document.place("datasets", name, "from")
            self.report.add("unknown-source", what, suggest(spec.from_, shape.source_names, "sources"), place)
            if (nearest := find_nearest(spec.from_, sources)) is not None:
                return (sources[nearest],)
        place = self.document.place("datasets", name)
        return tuple(
            FileSource(name=spec.from_, place=place, files="", format=format_, complete=False, options={})
            for format_ in (FileFormat.JSONL, FileFormat.PARQUET)
        )

    def make_dataset(
        self, name: str, spec: FactDatasetSpec, candidates: tuple[FileSource, ...], report: Report
    ) -> tuple[FactDataset, Known]:
        """The dataset, with the mistakes that it has whichever of these its source is."""
        reports = [Report() for _ in candidates]
        made = []
        for source, own in zip(candidates, reports, strict=True):
            native = None if source.format.holds_messages else self.known.get(source.name, NOTHING).names
            made.append(make_fact_dataset(name, spec, source, native, self.document, own))
        report.add_all(m for m in reports[0].mistakes if all(m in other.mistakes for other in reports[1:]))
        dataset, known = made[0]
        return dataset, known if len(candidates) == 1 else replace(known, complete=False, names=None)

    def load_chains(self, shape: Shape, calendar: Calendar) -> None:
        for name, spec in shape.chains.items():
            claimed = self.registry.claim(name, "chain", self.document.place("chains", name))
            blocks = self.find_stream(name, spec)
            known = self.known.get(blocks, NOTHING) if blocks else NOTHING
            chain, sound = make_chain(name, spec, known, self.document, self.report)
            if not claimed or not sound or not blocks or blocks in self.registry.broken:
                self.registry.broken |= {name}
            if claimed:
                if self.right:
                    self.nodes.append(chain_node(chain, known.order))
                self.names[name] = (name,)
                self.add_table(name, name, replace(known, unique=(chain.key,)))
            for output, dataset in spec.follow.items():
                self.load_follow(
                    output, dataset, chain, (*chain.group_by, chain.hash) if sound else (), shape, calendar
                )

    def find_stream(self, name: str, spec: ChainSpec) -> str | None:
        """The event stream that a chain is made of, or the nearest to a name that means nothing."""
        if self.tables.get(spec.from_) == f"{spec.from_}_facts" or spec.from_ in self.registry.broken:
            return spec.from_
        what = f"the chain `{name}` is made of `{spec.from_}`, which is not an event stream."
        streams = [n for n, table in self.tables.items() if table == f"{n}_facts"]
        place = self.document.place("chains", name, "from")
        self.report.add("chain-needs-stream", what, suggest(spec.from_, streams, "event streams"), place)
        return None if spec.from_ in self.tables else find_nearest(spec.from_, streams)

    def load_follow(
        self, name: str, dataset: str, chain: Chain, key: tuple[str, ...], shape: Shape, calendar: Calendar
    ) -> None:
        """`key`: the columns of the chain that the dataset must have, as far as they are known."""
        place = self.document.place("chains", chain.name, "follow", name)
        claimed = self.registry.claim(name, "dataset that follows a chain", place)
        if dataset not in self.tables and dataset not in self.registry.broken:
            self.refuse_follow(name, dataset, chain, shape)
            dataset = find_nearest(dataset, self.tables) or dataset
        known = self.known.get(dataset, NOTHING)
        if missing := [column for column in key if not known.may_have(column)]:
            what = f"`{dataset}` has no column `{missing[0]}`, by which `{name}` would follow the chain `{chain.name}`."
            self.report.add("unknown-column", what, suggest(missing[0], known.names or (), "columns"), place)
        if not claimed or dataset not in self.tables or dataset in self.registry.broken:
            self.registry.broken |= {name}
        if claimed:
            if self.right:
                self.nodes.append(follow_node(name, dataset, chain, self.tables, calendar, known.order))
            self.names[name] = (name,)
            self.add_table(name, name, known)

    def refuse_follow(self, name: str, dataset: str, chain: Chain, shape: Shape) -> None:
        place = self.document.place("chains", chain.name, "follow", name)
        follows = f"`{name}` follows the chain `{chain.name}` with `{dataset}`"
        output_by_name = {
            word: job.output_dataset for job in shape.jobs.values() for word in (job.output_dataset, job.name)
        }
        if dataset in output_by_name:
            what = f"{follows}, which is a job's output and not an event stream or record set."
            join = f"LEFT SEMI JOIN {chain.name} USING ({', '.join((*chain.group_by, chain.hash))})"
            remedy = f"Follow a dataset that the job reads, or write a job with `SELECT * FROM {output_by_name[dataset]} {join}`."
            self.report.add("follow-needs-dataset", what, remedy, place)
        else:
            self.report.add(
                "unknown-dataset",
                f"{follows}, which is not a dataset.",
                suggest(dataset, self.tables, "datasets"),
                place,
            )

    def load_jobs(self, shape: Shape, calendar: Calendar) -> None:
        drafts: dict[str, Draft] = {}
        for index, spec in shape.jobs.items():
            report = self.report.without(shape.follow_ups.get(("jobs", index), ()))
            draft = draft_job(index, spec, self.folder, self.document, report)
            if self.registry.claim(
                draft.output, "job's output", self.document.place(*draft.path, "output_dataset")
            ):
                drafts[draft.output] = draft
                self.tables[draft.output] = draft.output
            else:
                self.registry.broken |= {draft.output}
                drafts[f"jobs[{index}]"] = draft  # checked, under a name that nobody can read it by
        for draft in drafts.values():
            if draft.spec.name != draft.output:
                self.registry.claim(draft.spec.name, "job", self.document.place(*draft.path, "name"))
        row_keys = self.load_row_keys(shape, drafts)
        for output, draft in drafts.items():
            report = self.report.without(shape.follow_ups.get(draft.path, ()))
            drafts[output] = mend_inputs(draft, self.tables, self.registry, self.document, report)
        for output in self.sort(drafts):
            report = self.report.without(shape.follow_ups.get(drafts[output].path, ()))
            self.load_job(output, drafts[output], row_keys.get(output, ()), calendar, report)

    def sort(self, drafts: Mapping[str, Draft]) -> list[str]:
        """All jobs, each after what it reads. A cycle is reported, unless a misspelt input that was read as another makes it."""
        places = {output: draft.place for output, draft in drafts.items()}
        written = {
            o: tuple(n for n in (*d.inputs, *d.lookups) if n not in d.meant.values())
            for o, d in drafts.items()
        }
        order = sort_jobs(written, places, self.report)
        self.registry.broken |= {output for output in drafts if output not in order}
        meant = sort_jobs({o: (*d.inputs, *d.lookups) for o, d in drafts.items()}, places, Report())
        order = meant if len(meant) == len(order) else order
        return [*order, *(output for output in drafts if output not in order)]

    def load_job(
        self, output: str, draft: Draft, row_key: tuple[str, ...], calendar: Calendar, report: Report
    ) -> None:
        """What reads something that was not understood is checked as far as it can be, and not understood itself."""
        sound = check_tables(draft, self.tables, self.document, report)
        sound &= all(
            name in self.known and name not in self.registry.broken
            for name in (*draft.inputs, *draft.lookups)
        )
        if not sound:
            self.registry.broken |= {output}
            report = report.without(UNKNOWN_INPUT)
        relations, known = relate_inputs(draft, self.known, calendar, self.document, report)
        known = replace(known, unique=(*known.unique, *(key for key in (row_key, draft.unique_key) if key)))
        self.known[output] = known
        if known.names is not None and (
            missing := [column for column in row_key if column not in known.names]
        ):
            place = self.document.place("datasets", draft.output, "key")
            what = f"the key of `{draft.output}` names `{missing[0]}`, which job `{draft.spec.name}` does not give."
            report.add("unknown-column", what, suggest(missing[0], known.names, "columns"), place)
        if self.right:
            inputs = make_inputs(draft, relations, self.tables)
            positions = find_positions(draft.code, inputs, self.known) if draft.code else {}
            self.nodes.append(
                job_node(make_job(draft, row_key), inputs, draft.lookups, calendar, positions, known.order)
            )
        self.names[draft.output] = (draft.output,)
        self.names[draft.spec.name] = (draft.output,)

    def load_row_keys(self, shape: Shape, drafts: Mapping[str, Draft]) -> dict[str, tuple[str, ...]]:
        """The keys described under `datasets:` for outputs of jobs."""
        row_keys = {}
        for name, spec in shape.datasets.items():
            if not isinstance(spec, OutputSpec):
                continue
            if name not in drafts and name not in self.registry.broken:
                what = f"`{name}` under `datasets` has no `from`, and no job writes it."
                remedy = f"{suggest(name, drafts, 'outputs of jobs')} A dataset decoded from a source needs `from`."
                self.report.add("unknown-dataset", what, remedy, self.document.place("datasets", name))
                name = (
                    find_nearest(name, [output for output in drafts if output not in shape.datasets]) or name
                )
            row_keys[name] = tuple(dict.fromkeys(column.lower() for column in spec.key))
        return row_keys

    @property
    def right(self) -> bool:
        """Whether nothing is wrong so far: of a project with mistakes nothing is built."""
        return not len(self.report)

    def add_table(self, name: str, node: str, known: Known) -> None:
        self.tables[name] = node
        self.known[name] = known


def _unique(dataset: FactDataset) -> tuple[tuple[str, ...], ...]:
    """What tells the rows of a snapshot, or the facts of an event stream, apart."""
    if dataset.record_set is not None:
        return (dataset.record_set.key,)
    # All elements of one message share its position.
    positions = () if dataset.explode else ((POSITION,),)
    return (*((dataset.identity,) if dataset.identity else ()), *positions)
