"""Jobs: their inputs, their outputs, and how a change in an input relates to the key."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from strandline.model.columns import METADATA_COLUMNS
from strandline.model.errors import Place
from strandline.model.node import By, Input, Lookup, Relation, Via, Whole
from strandline.model.project import Job, Language, Mode

from .code import Code, load_code
from .known import NOTHING, Known
from .names import NameRegistry
from .relations import Analysis, Table, analyse
from .report import Report, listed, suggest
from .schema import ByKey, JobSpec, RelationSpec, ViaInput
from .sql_parse import find_tables, line_of, table_name
from .yaml_lines import DataPath, Document


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A job whose own text is checked; how it relates to its inputs is not yet."""

    spec: JobSpec
    path: DataPath
    place: Place
    code: Code | None
    inputs: tuple[str, ...]
    lookups: tuple[str, ...]
    key: tuple[str, ...]
    mode: Mode

    @property
    def output(self) -> str:
        return self.spec.output_dataset


def draft_job(index: int, spec: JobSpec, folder: Path, document: Document, report: Report) -> Draft:
    path: DataPath = ("jobs", index)
    place = document.place(*path)
    mode = Mode(spec.incremental.mode) if spec.incremental else Mode.FULL
    _check_mode(spec, mode, path, document, report)
    key = tuple(dict.fromkeys(column.lower() for column in (spec.incremental.key or [] if spec.incremental else [])))
    for column in key:
        if column in METADATA_COLUMNS:
            what = f"the key of job `{spec.name}` names the metadata column `{column}`."
            report.add("metadata-column", what, "Use columns of the output.", document.place(*path, "incremental", "key"))
    if not spec.input_datasets:
        report.add("missing-key", f"job `{spec.name}` reads nothing.", "Add `input_datasets: [<dataset>]`.", place)
    for name in set(spec.input_datasets) & set(spec.lookup_datasets):
        what = f"job `{spec.name}` names `{name}` as an input and as a lookup."
        report.add("named-twice", what, "Keep it in one list.", document.place(*path, "lookup_datasets"))
    for word in ("input_datasets", "lookup_datasets"):
        names = getattr(spec, word)
        for name in {name for name in names if names.count(name) > 1}:
            report.add("named-twice", f"`{name}` stands twice in `{word}` of job `{spec.name}`.", "Keep one.", document.place(*path, word))
    return Draft(
        spec=spec,
        path=path,
        place=place,
        code=load_code(spec, path, folder, document, report),
        inputs=tuple(dict.fromkeys(spec.input_datasets)),
        lookups=tuple(dict.fromkeys(name for name in spec.lookup_datasets if name not in spec.input_datasets)),
        key=key if mode is Mode.KEYED else (),
        mode=mode,
    )


def _check_mode(spec: JobSpec, mode: Mode, path: DataPath, document: Document, report: Report) -> None:
    incremental = spec.incremental
    if mode is Mode.KEYED and incremental is not None and not incremental.key:
        what = f"job `{spec.name}` is keyed but has no key."
        remedy = "Add `key: [<columns of the output>]` to `incremental`."
        report.add("keyed-without-key", what, remedy, document.place(*path, "incremental"))
    if mode is Mode.FULL and incremental is not None:
        for word in ("key", "inputs"):
            if getattr(incremental, word):
                what = f"job `{spec.name}` has mode `full` and `{word}`, which only mode `keyed` has."
                report.add("unused-key", what, f"Remove `{word}`, or write `mode: keyed`.", document.place(*path, "incremental", word))


def check_inputs(draft: Draft, tables: Mapping[str, str], names: NameRegistry, document: Document, report: Report) -> bool:
    """Every input exists and is read, and everything read is an input. False when the job cannot be understood further."""
    spec, sound = draft.spec, True
    for word, inputs in (("input_datasets", draft.inputs), ("lookup_datasets", draft.lookups)):
        for name in inputs:
            if name in names.broken:
                sound = False
            elif name not in tables:
                sound = False
                what = f"job `{spec.name}` reads `{name}`, which is no dataset."
                report.add("unknown-dataset", what, suggest(name, tables, "datasets"), document.place(*draft.path, word))
    by_table: dict[str, str] = {}
    for name in (n for n in (*draft.inputs, *draft.lookups) if n in tables):
        other = by_table.setdefault(tables[name], name)
        if other != name:
            what = f"job `{spec.name}` reads `{other}` and `{name}`, which are one table: an event stream is its facts."
            report.add("named-twice", what, "Keep one of them.", document.place(*draft.path, "input_datasets"))
    if draft.code is None or draft.code.language is Language.PYTHON or draft.code.tree is None:
        return sound and draft.code is not None and draft.code.language is Language.PYTHON
    declared, used = {*draft.inputs, *draft.lookups}, set()
    for table in find_tables(draft.code.tree):
        name = table_name(table)
        used.add(name)
        if name not in declared:
            sound = False
            what = f"the SQL of job `{spec.name}` reads `{name}`, which is not among its inputs."
            remedy = f"Add `{name}` to `input_datasets`." if name in tables else suggest(name, declared, "inputs")
            report.add("undeclared-input", what, remedy, draft.code.place_of(line_of(table)))
    for name in (n for n in (*draft.inputs, *draft.lookups) if n not in used):
        word = "input_datasets" if name in draft.inputs else "lookup_datasets"
        what = f"job `{spec.name}` declares the input `{name}`, which its SQL does not read."
        report.add("unused-input", what, f"Remove it from `{word}`.", document.place(*draft.path, word))
    return sound


Relations = dict[str, tuple[Relation, bool]]
"""By input: how it relates to the key, and whether that was proved."""


def relate_inputs(draft: Draft, known: Mapping[str, Known], document: Document, report: Report) -> tuple[Relations, Known]:
    """How each input relates to the key, declared or proved, and what columns the output has."""
    relations: Relations = {name: (Lookup(), False) for name in draft.lookups}
    if draft.mode is Mode.FULL:
        relations |= {name: (Whole(), False) for name in draft.inputs}
    else:
        relations |= {name: (relation, False) for name, relation in _declared(draft, known, document, report).items()}
    code = draft.code
    if code is None:
        return relations, NOTHING
    analysis: Analysis | None = None
    if code.tree is not None:
        restricted = {name: relation.columns for name, (relation, _) in relations.items() if isinstance(relation, By)}
        open_inputs = {name: draft.key for name in draft.inputs if name not in relations}
        by = {**restricted, **open_inputs}
        tables = {name: Table(known=known[name], by=by.get(name, ())) for name in (*draft.inputs, *draft.lookups)}
        analysis = analyse(code.tree, draft.key, tables)
        relations |= {name: (By(columns=draft.key), True) for name in open_inputs if name in analysis.proved}
        _check_columns(draft, code, analysis, document, report)
    _ask_for_relations(draft, [n for n in draft.inputs if n not in relations], analysis, known, document, report)
    return relations, analysis.output if analysis else NOTHING


def _declared(draft: Draft, known: Mapping[str, Known], document: Document, report: Report) -> dict[str, Relation]:
    specs = draft.spec.incremental.inputs if draft.spec.incremental else {}
    relations: dict[str, Relation] = {}
    for name, spec in specs.items():
        place = document.place(*draft.path, "incremental", "inputs", name)
        if name not in draft.inputs:
            what = f"job `{draft.spec.name}` says how `{name}` relates to its key, but `{name}` is not among its `input_datasets`."
            report.add("unknown-dataset", what, suggest(name, draft.inputs, "inputs"), place)
        elif relation := _make_relation(draft, name, spec, known, place, report):
            relations[name] = relation
    _check_via(draft, relations, document, report)
    return relations


def _make_relation(draft: Draft, name: str, spec: RelationSpec, known: Mapping[str, Known], place: Place, report: Report) -> Relation:
    match spec:
        case ByKey(by=list() as columns):
            here = {column.lower(): column.lower() for column in columns}
        case ByKey(by=dict() as columns):
            here = {key.lower(): column.lower() for key, column in columns.items()}
        case ViaInput(via=other, on=on):
            pairs = tuple((a.lower(), b.lower()) for a, b in (on.items() if isinstance(on, dict) else zip(on, on, strict=True)))
            for column, there in pairs:
                _check_column(column, name, known, place, report)
                if other in draft.inputs:
                    _check_column(there, other, known, place, report)
            return Via(input=other, on=pairs)
        case _:
            return Whole()
    if set(here) != set(draft.key):
        what = f"`by` of the input `{name}` names {listed(here) or 'nothing'}, but job `{draft.spec.name}` is keyed by {listed(draft.key)}."
        mapping = ", ".join(f"{column}: <column of {name}>" for column in draft.key)
        report.add("by-is-not-the-key", what, f"Name each key column: `by: {{{mapping}}}`.", place)
    for column in here.values():
        _check_column(column, name, known, place, report)
    return By(columns=tuple(here.get(column, column) for column in draft.key))


def _check_column(column: str, dataset: str, known: Mapping[str, Known], place: Place, report: Report) -> None:
    columns = known.get(dataset)
    if columns is not None and columns.names is not None and column not in columns.names and column not in METADATA_COLUMNS:
        report.add("unknown-column", f"`{dataset}` has no column `{column}`.", suggest(column, columns.names, "columns"), place)


def _check_via(draft: Draft, relations: Mapping[str, Relation], document: Document, report: Report) -> None:
    for name, relation in relations.items():
        place = document.place(*draft.path, "incremental", "inputs", name)
        seen = [name]
        while isinstance(relation, Via):
            other = relation.input
            if other in seen:
                what = f"the inputs {listed([*seen[seen.index(other) :], other])} of job `{draft.spec.name}` are found `via` each other."
                report.add("via-cycle", what, "Relate one of them `by` the key.", place)
                break
            if other not in draft.inputs:
                what = f"`{name}` is found `via: {other}`, which is not among the inputs of job `{draft.spec.name}`."
                report.add("unknown-dataset", what, suggest(other, [n for n in draft.inputs if n != name], "inputs"), place)
                break
            if isinstance(relations.get(other), Whole):
                what = f"`{name}` is found `via: {other}`, which is read `whole`, so no key can be found through it."
                report.add("via-whole", what, f"Relate `{other}` `by` the key, or read `{name}` whole.", place)
                break
            seen.append(other)
            relation = relations.get(other) or Whole()


def _check_columns(draft: Draft, code: Code, analysis: Analysis, document: Document, report: Report) -> None:
    """The columns that the SQL names exist, and the key is among those it gives."""
    for column, there in analysis.unknown_columns:
        what = f"the SQL of job `{draft.spec.name}` names `{column.sql(dialect='spark')}`, which is no column of what it reads."
        report.add("unknown-column", what, suggest(column.name, there, "columns"), code.place_of(line_of(column)))
    names = analysis.output.names
    for name in (column for column in draft.key if names is not None and column not in names):
        what = f"job `{draft.spec.name}` is keyed by `{name}`, which its SQL does not give."
        report.add("key-not-in-output", what, suggest(name, names or (), "columns"), document.place(*draft.path, "incremental", "key"))


def _ask_for_relations(
    draft: Draft, names: list[str], analysis: Analysis | None, known: Mapping[str, Known], document: Document, report: Report
) -> None:
    if not names or not draft.key:
        return
    key = ", ".join(draft.key)
    reasons = {name: (analysis.reasons.get(name) if analysis else None) or "Python jobs always declare `inputs`" for name in names}
    told = "; ".join(f"`{name}`: {reason}" for name, reason in reasons.items())
    relate = "relates" if len(names) == 1 else "relate"
    what = f"job `{draft.spec.name}` is keyed by ({key}), and how {listed(names)} {relate} to that key is not known ({told})."
    width = max(len(name) for name in names) + 1
    lines = [f"      {(name + ':').ljust(width)} whole   # or {_other_ways(name, draft, known)}" for name in names]
    say = "Say so under `incremental` (`whole` is always right; a change in it recomputes everything):"
    remedy = "\n".join([say, "    inputs:", *lines])
    report.add("input-relation-unknown", what, remedy, document.place(*draft.path, "incremental"))


def _other_ways(name: str, draft: Draft, known: Mapping[str, Known]) -> str:
    columns = known.get(name)
    has = {c for c in draft.key if columns is None or columns.names is None or c in columns.names}
    if has == set(draft.key):
        by = f"{{by: [{', '.join(draft.key)}]}}"
    else:
        pairs = (f"{column}: {column if column in has else f'<column of {name}>'}" for column in draft.key)
        by = f"{{by: {{{', '.join(pairs)}}}}}"
    others = [other for other in draft.inputs if other != name]
    return f"{by}, {{via: {others[0]}, on: [<columns>]}}" if others else by


def make_job(draft: Draft, row_key: tuple[str, ...]) -> Job:
    assert draft.code is not None
    return Job(
        name=draft.spec.name,
        place=draft.place,
        output=draft.output,
        mode=draft.mode,
        key=draft.key,
        language=draft.code.language,
        code=draft.code.text,
        file=draft.code.file,
        function=draft.code.function,
        strict_incremental=draft.spec.strict_incremental,
        uses_as_of=draft.code.uses_as_of,
        config=draft.spec.config,
        row_key=row_key,
    )


def make_inputs(draft: Draft, relations: Relations, tables: Mapping[str, str]) -> tuple[Input, ...]:
    return tuple(
        Input(name=name, dataset=tables[name], relation=relations[name][0], proved=relations[name][1])
        for name in (*draft.inputs, *draft.lookups)
        if name in relations
    )
