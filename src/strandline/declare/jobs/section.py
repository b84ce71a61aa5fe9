"""The section `jobs`."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from strandline.declare.loading import Loading, RowKey
from strandline.declare.section import Section
from strandline.declare.yaml_lines import DataPath
from strandline.model.errors import Place
from strandline.model.report import find_nearest, suggest
from strandline.sql.known_columns import Known

from .draft import Draft, check_tables, draft_job, make_job, mend_inputs
from .follow_ups import FOLLOW_UPS, UNKNOWN_INPUT
from .inputs import make_inputs, relate_inputs
from .node import make_node
from .reads import find_positions
from .spec import JobSpec

KEY = "jobs"


def load(jobs: Mapping[int, JobSpec], loading: Loading) -> None:
    drafts: dict[str, Draft] = {}
    for index, spec in jobs.items():
        report = loading.report_of(KEY, index)
        draft = draft_job(index, spec, loading.folder, loading.document, report)
        place = loading.document.place(*draft.path, "output_dataset")
        if loading.registry.claim(draft.output, "job's output", place):
            drafts[draft.output] = draft
            loading.tables[draft.output] = draft.output
        else:
            loading.mark_broken(draft.output)
            drafts[f"{KEY}[{index}]"] = draft  # it is checked under a name by which nothing can read it
    for draft in drafts.values():
        if draft.spec.name != draft.output:
            loading.registry.claim(draft.spec.name, "job", loading.document.place(*draft.path, "name"))
    row_keys = _find_row_keys(drafts, loading)
    for output, draft in drafts.items():
        loading.drafts[output] = JobDraft(output=output, draft=draft, row_key=row_keys.get(output))


def _find_row_keys(drafts: Collection[str], loading: Loading) -> dict[str, RowKey]:
    """The keys that are declared for outputs of jobs.

    A key for something that is not an output of a job is reported, and used for the nearest output.
    """
    row_keys = {}
    for name, key in loading.row_keys.items():
        if name not in drafts and name not in loading.registry.broken:
            what = f"`{name}` under `datasets` has no `from`, and no job writes it."
            remedy = (
                f"{suggest(name, drafts, 'outputs of jobs')} A dataset decoded from a source needs `from`."
            )
            loading.report.add("unknown-dataset", what, remedy, key.output_place)
            name = find_nearest(name, [output for output in drafts if output not in loading.row_keys]) or name
        row_keys[name] = key
    return row_keys


def find_outputs(loading: Loading) -> dict[str, str]:
    """By every name that means a job or its output: the output."""
    jobs: Mapping[int, JobSpec] = loading.entries[KEY]
    return {word: job.output_dataset for job in jobs.values() for word in (job.output_dataset, job.name)}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDraft:
    """A job that is built after what it reads."""

    output: str
    draft: Draft
    row_key: RowKey | None

    @property
    def place(self) -> Place:
        return self.draft.place

    @property
    def reads(self) -> tuple[str, ...]:
        return (*self.draft.inputs, *self.draft.lookups)

    @property
    def guessed(self) -> Collection[str]:
        return self.draft.meant.values()

    def settle(self, loading: Loading) -> "JobDraft":
        report = loading.report_of(*self.draft.path)
        return replace(
            self,
            draft=mend_inputs(self.draft, loading.tables, loading.registry, loading.document, report),
        )

    def build(self, loading: Loading) -> None:
        """Check the job against what it reads, and add its node.

        A job with an input that was not understood is checked as far as possible. The job itself then also
        counts as not understood.
        """
        draft, report = self.draft, loading.report_of(*self.draft.path)
        sound = check_tables(draft, loading.tables, loading.document, report)
        sound &= all(name in loading.known and name not in loading.registry.broken for name in self.reads)
        if not sound:
            loading.mark_broken(self.output)
            report = report.without(UNKNOWN_INPUT)
        relations, known = relate_inputs(draft, loading.known, loading.calendar, loading.document, report)
        row_key = self.row_key.columns if self.row_key else ()
        unique = (key for key in (row_key, draft.unique_key) if key)
        known = replace(known, unique=(*known.unique, *unique), row_key=draft.unique_key or row_key)
        loading.known[self.output] = known
        self._check_row_key(known, loading)
        if loading.right:
            inputs = make_inputs(draft, relations, loading.tables)
            positions = find_positions(draft.code, inputs, loading.known) if draft.code else {}
            job = make_job(draft, row_key)
            node = make_node(job, inputs, draft.lookups, loading.calendar, positions, known.order)
            loading.nodes.append(node)
        loading.names[draft.output] = (draft.output,)
        loading.names[draft.spec.name] = (draft.output,)

    def _check_row_key(self, known: Known, loading: Loading) -> None:
        if known.names is None or self.row_key is None:
            return
        if missing := [column for column in self.row_key.columns if column not in known.names]:
            what = (
                f"the key of `{self.draft.output}` names `{missing[0]}`, "
                f"which job `{self.draft.spec.name}` does not return."
            )
            remedy = suggest(missing[0], known.names, "columns")
            loading.report_of(*self.draft.path).add("unknown-column", what, remedy, self.row_key.place)


def _names(_: int, entry: object) -> Collection[str]:
    return (str(entry.get("name")), str(entry.get("output_dataset"))) if isinstance(entry, dict) else ()


def _stand_in(entry: Mapping[str, Any], place: DataPath) -> object | None:
    """A job without a name takes that of its output, and an output that of its job."""
    others: dict[DataPath, str] = {("name",): "output_dataset", ("output_dataset",): "name"}
    value = entry.get(others[place]) if place in others else None
    return value if isinstance(value, str) else None


JOBS = Section(
    key=KEY,
    spec=JobSpec,
    load=load,
    is_list=True,
    counted_as="job",
    counted_if_none=True,
    names=_names,
    stand_in=_stand_in,
    follow_ups=FOLLOW_UPS,
)
