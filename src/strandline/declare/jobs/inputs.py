"""How a job's inputs relate to its key. The relation is declared or proved, or else a mistake asks for it."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from strandline.declare.yaml_lines import Document
from strandline.model.columns import METADATA_COLUMNS, is_column_name
from strandline.model.errors import Place
from strandline.model.node import By, Input, Lookup, Relation, Via, Whole
from strandline.model.project import Calendar, Language, Mode
from strandline.model.report import Report, find_nearest, listed, suggest
from strandline.sql.known_columns import NOTHING, Known
from strandline.sql.parse import find_line, line_of
from strandline.sql.partition_expressions import find_steps
from strandline.sql.proof import Analysis, Table, analyse, prove

from .code import Code
from .draft import Draft
from .follow_ups import UNKNOWN_INPUT
from .reads import find_reads
from .spec import ByKey, RelationSpec, ViaInput

_ROUNDS = 5
"""How often misspelt columns are read as the nearest ones.

More than once, because a column that an inner query returns may be misspelt in an outer query.
"""

Relations = dict[str, tuple[Relation, bool]]
"""By input: how it relates to the key, and whether that was proved."""


def relate_inputs(
    draft: Draft, known: Mapping[str, Known], calendar: Calendar, document: Document, report: Report
) -> tuple[Relations, Known]:
    """How each input relates to the key, declared or proved, and the columns of the output."""
    code = draft.code
    output = _check_columns(draft, code, known, report) if code is not None else None
    names = output.names if output else None
    draft = _check_key(draft, names, document, report)
    if output is None or (
        names is not None and not {*draft.unique_key, *_named_key(draft)} <= {*names, *METADATA_COLUMNS}
    ):
        report = report.without(UNKNOWN_INPUT)
    relations: Relations = {name: (Lookup(), False) for name in draft.lookups}
    if draft.mode is Mode.FULL:
        relations |= {name: (Whole(), False) for name in draft.inputs}
    else:
        relations |= {
            name: (relation, False) for name, relation in _declared(draft, known, document, report).items()
        }
    if code is None or output is None:
        return relations, NOTHING
    analysis: Analysis | None = None
    if code.tree is not None:
        restricted = {
            name: relation.columns for name, (relation, _) in relations.items() if isinstance(relation, By)
        }
        open_inputs = {name: draft.key for name in draft.inputs if name not in relations}
        by = {**restricted, **open_inputs}
        tables = {
            name: Table(known=known.get(name, NOTHING), by=by.get(name, ()))
            for name in (*draft.inputs, *draft.lookups)
        }
        steps = find_steps(draft.partition, calendar) if draft.partition else None
        analysis = prove(
            code.tree, draft.key, tables, open_inputs, by_name=draft.partition is None, steps=steps
        )
        for tie in analysis.ties:
            what = f"the SQL of job `{draft.spec.name}`: {tie.what}"
            report.add("order-not-total", what, tie.remedy, code.place_of(line_of(tie.node)))
        relations |= {name: (By(columns=draft.key), True) for name in open_inputs if name in analysis.proved}
    _check_partition(draft, relations, document, report)
    _ask_for_relations(
        draft, [n for n in draft.inputs if n not in relations], analysis, known, document, report
    )
    return relations, analysis.output if analysis else NOTHING


def _check_partition(draft: Draft, relations: Relations, document: Document, report: Report) -> None:
    """At least one input must determine which partitions exist."""
    if (
        draft.partition
        and draft.inputs
        and set(draft.inputs) <= set(relations)
        and not any(isinstance(relations[n][0], By) for n in draft.inputs)
    ):
        what = (
            f"no input of job `{draft.spec.name}` is related `by` its partition's column,"
            " so nothing determines which partitions exist."
        )
        key = ", ".join(draft.key)
        remedy = f"Relate one of them: `inputs: {{{draft.inputs[0]}: {{by: [{key}]}}}}`."
        report.add("partition-needs-by", what, remedy, document.place(*draft.path, "incremental"))


def _declared(
    draft: Draft, known: Mapping[str, Known], document: Document, report: Report
) -> dict[str, Relation]:
    specs = draft.spec.incremental.inputs if draft.spec.incremental else {}
    relations: dict[str, Relation] = {}
    for word, spec in specs.items():
        place = document.place(*draft.path, "incremental", "inputs", word)
        name: str | None = draft.meant.get(word, word)
        if name not in draft.inputs:
            what = (
                f"job `{draft.spec.name}` declares how `{word}` relates to its key,"
                f" but `{word}` is not one of its `input_datasets`."
            )
            report.add("unknown-dataset", what, suggest(word, draft.inputs, "inputs"), place)
            name = find_nearest(word, [n for n in draft.inputs if n not in specs])
        if name is not None:
            relations[name] = _make_relation(draft, name, spec, known, place, report)
    _check_via(draft, relations, document, report)
    return relations


def _make_relation(
    draft: Draft, name: str, spec: RelationSpec, known: Mapping[str, Known], place: Place, report: Report
) -> Relation:
    match spec:
        case ByKey(by=list() as columns):
            here = {column.lower(): column.lower() for column in columns}
        case ByKey(by=dict() as columns):
            here = {key.lower(): column.lower() for key, column in columns.items()}
        case ViaInput(via=other, on=on):
            pairs = tuple(
                (a.lower(), b.lower())
                for a, b in (on.items() if isinstance(on, dict) else zip(on, on, strict=True))
            )
            for column, there in pairs:
                _check_column(column, name, known, place, report)
                if other in draft.inputs:
                    _check_column(there, other, known, place, report)
            return Via(input=other, on=pairs)
        case _:
            return Whole()
    if set(here) != set(draft.key):
        what = (
            f"`by` of the input `{name}` names {listed(here) or 'nothing'},"
            f" but job `{draft.spec.name}` is keyed by {listed(draft.key)}."
        )
        mapping = ", ".join(f"{column}: <column of {name}>" for column in draft.key)
        report.add("by-is-not-the-key", what, f"Name each key column: `by: {{{mapping}}}`.", place)
    for column in (there for key, there in here.items() if key in draft.key or key != there):
        _check_column(column, name, known, place, report)
    return By(columns=tuple(here.get(column, column) for column in draft.key))


def _check_column(
    column: str, dataset: str, known: Mapping[str, Known], place: Place, report: Report
) -> None:
    columns = known.get(dataset)
    if (
        columns is not None
        and columns.names is not None
        and column not in columns.names
        and column not in METADATA_COLUMNS
    ):
        report.add(
            "unknown-column",
            f"`{dataset}` has no column `{column}`.",
            suggest(column, columns.names, "columns"),
            place,
        )


def _check_via(draft: Draft, relations: Mapping[str, Relation], document: Document, report: Report) -> None:
    for name, relation in relations.items():
        place = document.place(*draft.path, "incremental", "inputs", name)
        seen = [name]
        while isinstance(relation, Via):
            other = relation.input
            if other in seen:
                cycle = listed([*seen[seen.index(other) :], other])
                what = f"the inputs {cycle} of job `{draft.spec.name}` are looked up `via` each other."
                report.add("via-cycle", what, "Relate one of them `by` the key.", place)
                break
            if other not in draft.inputs:
                what = (
                    f"`{name}` is looked up `via: {other}`, which is not an input of job `{draft.spec.name}`."
                )
                report.add(
                    "unknown-dataset",
                    what,
                    suggest(other, [n for n in draft.inputs if n != name], "inputs"),
                    place,
                )
                break
            if isinstance(relations.get(other), Whole):
                what = (
                    f"`{name}` is looked up `via: {other}`, which is read `whole`,"
                    " so it does not determine a key."
                )
                report.add(
                    "via-whole", what, f"Relate `{other}` `by` the key, or read `{name}` whole.", place
                )
                break
            seen.append(other)
            relation = relations.get(other) or Whole()


def _check_columns(draft: Draft, code: Code, known: Mapping[str, Known], report: Report) -> Known | None:
    """The columns of the output, as far as they follow from the code.

    A column that the SQL names and that does not exist is read as the nearest one. None if no column is near.
    """
    if code.tree is None:
        return NOTHING if code.language is Language.PYTHON else None
    tables = {name: Table(known=known.get(name, NOTHING), by=()) for name in (*draft.inputs, *draft.lookups)}
    for _ in range(_ROUNDS):
        analysis = analyse(code.tree, (), tables)
        unknown = analysis.unknown_columns
        if not unknown:
            _check_names(draft, code, analysis.output, report)
            return analysis.output
        for column, there in unknown:
            what = (
                f"the SQL of job `{draft.spec.name}` names `{column.sql(dialect='spark')}`,"
                " which is not a column of its inputs."
            )
            report.add(
                "unknown-column", what, suggest(column.name, there, "columns"), code.place_of(line_of(column))
            )
        if any(find_nearest(column.name, there) is None for column, there in unknown):
            return None
        for column, there in unknown:
            nearest = find_nearest(column.name, there)
            if nearest == column.name.lower():
                column.set("table", None)  # the table is misspelt, not the column
            column.this.set("this", nearest)
    return None


def _check_names(draft: Draft, code: Code, output: Known, report: Report) -> None:
    """Report output columns whose name is reserved for the engine, or that a table cannot have."""
    for name in sorted({*(output.names or ()), *output.types}):
        line = find_line(code.tree, name) if code.tree else 1
        if name in METADATA_COLUMNS:
            what = f"job `{draft.spec.name}` returns a column `{name}`, the name of a metadata column."
            remedy = (
                f"Give it another name: `AS {name.lstrip('_')}`."
                " Metadata columns exist without being selected."
            )
            report.add("metadata-column", what, remedy, code.place_of(line))
        elif name and not is_column_name(name):
            what = f"job `{draft.spec.name}` returns a column `{name}`, which is not a valid name."
            remedy = "Give it another name with `AS`: letters, digits and `_`, but not `__` at the start."
            report.add("bad-name", what, remedy, code.place_of(line))


def _named_key(draft: Draft) -> tuple[str, ...]:
    """The key columns that the output must contain. A partition's columns are required only of inputs."""
    return draft.key if draft.partition is None else ()


def _check_key(draft: Draft, names: Collection[str] | None, document: Document, report: Report) -> Draft:
    """Report key columns that the SQL does not return. Each is then read as the nearest column."""
    needed = {"key": _named_key(draft), "unique_key": draft.unique_key}
    meant: dict[str, str] = {}
    for word, columns in needed.items():
        for name in (
            column
            for column in columns
            if names is not None and column not in names and column not in METADATA_COLUMNS
        ):
            what = (
                f"the {word.replace('_', ' ')} of job `{draft.spec.name}` names `{name}`,"
                " which its SQL does not return."
            )
            report.add(
                "key-not-in-output",
                what,
                suggest(name, names or (), "columns"),
                document.place(*draft.path, "incremental"),
            )
            meant[name] = find_nearest(name, names or ()) or name
    if not meant:
        return draft
    key, unique_key = (
        tuple(dict.fromkeys(meant.get(name, name) for name in columns))
        for columns in (draft.key, draft.unique_key)
    )
    return replace(draft, key=key, unique_key=unique_key)


def _ask_for_relations(
    draft: Draft,
    names: list[str],
    analysis: Analysis | None,
    known: Mapping[str, Known],
    document: Document,
    report: Report,
) -> None:
    if not names or not draft.key or set(draft.key) & set(METADATA_COLUMNS):
        return  # an invalid key has already been reported
    key = ", ".join(draft.key)
    scope = {Mode.CURSOR: f"follows `{key}`", Mode.PARTITION: f"is partitioned by ({key})"}.get(
        draft.mode, f"is keyed by ({key})"
    )
    reasons = {
        name: (analysis.reasons.get(name) if analysis else None) or "Python jobs always declare `inputs`"
        for name in names
    }
    why = "; ".join(f"`{name}`: {reason}" for name, reason in reasons.items())
    relate = "relates" if len(names) == 1 else "relate"
    that = "that key" if draft.mode is Mode.KEYED else "that"
    what = (
        f"job `{draft.spec.name}` {scope}, and how {listed(names)} {relate} to {that} is not known ({why})."
    )
    width = max(len(name) for name in names) + 1
    lines = [
        f"      {(name + ':').ljust(width)} whole   # or {_other_ways(name, draft, known)}" for name in names
    ]
    hint = "Declare it under `incremental` (`whole` is always valid; a change in it recomputes everything):"
    remedy = "\n".join([hint, "    inputs:", *lines])
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


def make_inputs(draft: Draft, relations: Relations, tables: Mapping[str, str]) -> tuple[Input, ...]:
    assert draft.code is not None
    reads = find_reads(draft.code, (*draft.inputs, *draft.lookups))
    inputs = []
    for name in (n for n in (*draft.inputs, *draft.lookups) if n in relations):
        relation, proved = relations[name]
        related = _columns_of(name, {other: relation for other, (relation, _) in relations.items()})
        inputs.append(
            Input(
                name=name, dataset=tables[name], relation=relation, proved=proved, reads=reads[name] | related
            )
        )
    return tuple(inputs)


def _columns_of(name: str, relations: Mapping[str, Relation]) -> frozenset[str]:
    """The columns by which an input, or another one that is looked up in it, relates to the key."""
    here = relations[name]
    own = (
        here.columns
        if isinstance(here, By)
        else tuple(c for c, _ in here.on)
        if isinstance(here, Via)
        else ()
    )
    through = (
        there for r in relations.values() if isinstance(r, Via) and r.input == name for _, there in r.on
    )
    return frozenset((*own, *through))
