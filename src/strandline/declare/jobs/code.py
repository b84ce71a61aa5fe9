"""A job's code: SQL text, a SQL file or a Python module. It is parsed and checked, never run."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from strandline.declare.python_code.load import Wanted, load_python
from strandline.declare.text_files import load_text
from strandline.declare.yaml_lines import DataPath, Document
from strandline.model.errors import Place
from strandline.model.project import Language, Module
from strandline.model.report import Report
from strandline.sql.checks import check_deterministic, check_parameters, check_tables_are_named
from strandline.sql.parse import PlaceOfLine, Query, parse_query

from .spec import JobSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """What a job computes.

    `tree` is None for Python, and for SQL that could not be parsed and was reported.
    """

    language: Language
    text: str
    file: str
    function: str = ""
    tree: Query | None = None
    place_of: PlaceOfLine
    uses_as_of: bool = False
    modules: tuple[Module, ...] = ()
    """The files of the project that Python code imports."""


def load_code(spec: JobSpec, path: DataPath, folder: Path, document: Document, report: Report) -> Code | None:
    """The code of a job. None, with a mistake, if it cannot be loaded."""
    place = document.place(*path)
    if spec.sql is not None and spec.python is not None:
        report.add(
            "sql-and-python", f"job `{spec.name}` has both `sql` and `python`.", "Keep one of them.", place
        )
        return None
    if spec.python is not None:
        return _load_python(spec.python, spec.name, document.place(*path, "python"), folder, report)
    if spec.sql is not None:
        return _load_sql(spec.sql, (*path, "sql"), spec.config, folder, document, report)
    report.add(
        "job-without-code",
        f"job `{spec.name}` has neither `sql` nor `python`.",
        f"Add, for example, `sql: jobs/{spec.name}.sql`.",
        place,
    )
    return None


def _load_sql(
    sql: str, path: DataPath, config: Mapping[str, object], folder: Path, document: Document, report: Report
) -> Code | None:
    text, file = sql, document.file

    def place_of(line: int) -> Place:
        return document.place_in_text(path, line) if file == document.file else Place(file=file, line=line)

    if sql.strip().lower().endswith(".sql") and "\n" not in sql.strip():
        loaded = load_text(sql.strip(), folder, document.place(*path), report)
        if loaded is None:
            return None
        file, text = loaded
    tree = parse_query(text, place_of, report)
    uses_as_of = False
    if tree is not None:
        check_deterministic(tree, text, place_of, report)
        check_tables_are_named(tree, text, place_of, report)
        uses_as_of = check_parameters(tree, config, text, place_of, report)
    return Code(
        language=Language.SQL, text=text, file=file, tree=tree, place_of=place_of, uses_as_of=uses_as_of
    )


def _load_python(spec: str, job: str, place: Place, folder: Path, report: Report) -> Code | None:
    code = load_python(spec, Wanted(word="python", example=f"jobs/{job}.py", name=job), place, folder, report)
    if code is None:
        return None
    return Code(
        language=Language.PYTHON,
        text=code.text,
        file=code.file,
        function=code.function,
        place_of=lambda line: Place(file=code.file, line=line),
        uses_as_of=code.uses_as_of,
        modules=code.modules,
    )
