"""Jobs before their inputs are known: their own text is checked, then the names of what they read."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from strandline.declare.names import NameRegistry, lowered
from strandline.declare.yaml_lines import DataPath, Document
from strandline.model.columns import METADATA_COLUMNS
from strandline.model.errors import Place
from strandline.model.project import Job, Language, Mode, Partitioning
from strandline.model.report import Report, find_nearest, suggest
from strandline.sql.parse import Table, find_tables, line_of, read_as, table_name

from .code import Code, load_code
from .modes import check_mode, make_partitioning, scope_key
from .spec import JobSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A job whose own text is checked. Its relation to its inputs is not checked yet."""

    spec: JobSpec
    path: DataPath
    place: Place
    code: Code | None
    inputs: tuple[str, ...]
    lookups: tuple[str, ...]
    key: tuple[str, ...]
    mode: Mode
    unique_key: tuple[str, ...] = ()
    partition: Partitioning | None = None
    meant: Mapping[str, str] = field(default_factory=dict)
    """By name of an input that does not exist: the dataset that is read instead. It may be the same name."""

    @property
    def output(self) -> str:
        return self.spec.output_dataset


def draft_job(index: int, spec: JobSpec, folder: Path, document: Document, report: Report) -> Draft:
    path: DataPath = ("jobs", index)
    place = document.place(*path)
    mode = Mode(spec.incremental.mode) if spec.incremental else Mode.FULL
    check_mode(spec, mode, path, document, report)
    partition = make_partitioning(spec, path, document, report) if mode is Mode.PARTITION else None
    key = scope_key(spec, mode, partition)
    unique_key = (
        lowered(spec.incremental.unique_key if spec.incremental else None)
        if spec.update_strategy == "append"
        else ()
    )
    for column in dict.fromkeys((*key, *unique_key)):
        if column in METADATA_COLUMNS:
            what = f"the key of job `{spec.name}` names the metadata column `{column}`."
            report.add(
                "metadata-column", what, "Use columns of the output.", document.place(*path, "incremental")
            )
    if not spec.input_datasets:
        report.add(
            "missing-key", f"job `{spec.name}` reads nothing.", "Add `input_datasets: [<dataset>]`.", place
        )
    for name in set(spec.input_datasets) & set(spec.lookup_datasets):
        what = f"job `{spec.name}` names `{name}` as an input and as a lookup."
        report.add("named-twice", what, "Keep it in one list.", document.place(*path, "lookup_datasets"))
    for word in ("input_datasets", "lookup_datasets"):
        names = getattr(spec, word)
        for name in {name for name in names if names.count(name) > 1}:
            report.add(
                "named-twice",
                f"`{name}` occurs twice in `{word}` of job `{spec.name}`.",
                "Keep one.",
                document.place(*path, word),
            )
    return Draft(
        spec=spec,
        path=path,
        place=place,
        code=load_code(spec, path, folder, document, report),
        inputs=tuple(dict.fromkeys(spec.input_datasets)),
        lookups=tuple(
            dict.fromkeys(name for name in spec.lookup_datasets if name not in spec.input_datasets)
        ),
        key=key,
        mode=mode,
        unique_key=unique_key,
        partition=partition,
    )


def mend_inputs(
    draft: Draft, tables: Mapping[str, str], names: NameRegistry, document: Document, report: Report
) -> Draft:
    """Report every input that does not exist, and continue with the nearest dataset instead."""
    spec = draft.spec
    meant: dict[str, str] = {}
    for word, inputs in (("input_datasets", draft.inputs), ("lookup_datasets", draft.lookups)):
        for name in inputs:
            if name in tables or name in names.broken:
                continue
            what = f"job `{spec.name}` reads `{name}`, which is not a dataset."
            report.add(
                "unknown-dataset", what, suggest(name, tables, "datasets"), document.place(*draft.path, word)
            )
            free = [
                table
                for table in tables
                if table not in (*draft.inputs, *draft.lookups, *meant.values(), draft.output)
            ]
            meant[name] = find_nearest(name, free) or name
    by_table: dict[str, str] = {}
    for name in (n for n in (*draft.inputs, *draft.lookups) if n in tables):
        other = by_table.setdefault(tables[name], name)
        if other != name:
            what = (
                f"job `{spec.name}` reads `{other}` and `{name}`, which are the same table:"
                " an event stream consists of its facts."
            )
            report.add(
                "named-twice", what, "Keep one of them.", document.place(*draft.path, "input_datasets")
            )
    inputs, lookups = (
        tuple(meant.get(name, name) for name in names_read) for names_read in (draft.inputs, draft.lookups)
    )
    return replace(draft, inputs=inputs, lookups=lookups, meant=meant)


def check_tables(draft: Draft, tables: Mapping[str, str], document: Document, report: Report) -> bool:
    """Report what the SQL reads that is not an input, and inputs that it does not read.

    False if it reads something unknown.
    """
    if draft.code is None or draft.code.tree is None:
        return draft.code is not None and draft.code.language is Language.PYTHON
    spec, sound, used = draft.spec, True, set()
    declared = {*draft.inputs, *draft.lookups}
    undeclared: list[Table] = []
    for table in find_tables(draft.code.tree):
        name = table_name(table)
        if name in draft.meant:
            name = draft.meant[name]
            read_as(table, name)
        used.add(name)
        if name not in declared:
            undeclared.append(table)
    for table in undeclared:
        name = table_name(table)
        what = f"the SQL of job `{spec.name}` reads `{name}`, which is not among its inputs."
        remedy = f"Add `{name}` to `input_datasets`." if name in tables else suggest(name, declared, "inputs")
        report.add("undeclared-input", what, remedy, draft.code.place_of(line_of(table)))
        nearest = (
            None if name in tables else find_nearest(name, declared - used) or find_nearest(name, declared)
        )
        if nearest is None:
            sound = False
        else:
            read_as(table, nearest)
            used.add(nearest)
    for name in (
        n
        for n in (*draft.inputs, *draft.lookups)
        if n in tables and n not in used and n not in draft.meant.values()
    ):
        word = "input_datasets" if name in draft.inputs else "lookup_datasets"
        what = f"job `{spec.name}` declares the input `{name}`, which its SQL does not read."
        report.add("unused-input", what, f"Remove it from `{word}`.", document.place(*draft.path, word))
    return sound


def make_job(draft: Draft, row_key: tuple[str, ...]) -> Job:
    assert draft.code is not None
    return Job(
        name=draft.spec.name,
        place=draft.place,
        output=draft.output,
        mode=draft.mode,
        key=draft.key,
        unique_key=draft.unique_key,
        partition=draft.partition,
        language=draft.code.language,
        code=draft.code.text,
        file=draft.code.file,
        function=draft.code.function,
        modules=draft.code.modules,
        strict_incremental=draft.spec.strict_incremental,
        uses_as_of=draft.code.uses_as_of,
        config=draft.spec.config,
        row_key=row_key,
    )
