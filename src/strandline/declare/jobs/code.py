"""A job's code: SQL text, a SQL file or a Python module. It is parsed and checked, never run."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from strandline.declare.yaml_lines import DataPath, Document
from strandline.model.errors import Place
from strandline.model.project import Language, Module
from strandline.model.report import Report, find_nearest, suggest
from strandline.sql.checks import check_deterministic, check_parameters, check_tables_are_named
from strandline.sql.parse import PlaceOfLine, Query, parse_query

from .python_checks import check_python, find_function, mentions_as_of
from .python_modules import follow_imports
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
    file, colon, function = spec.rpartition(":")
    if not colon or not file.endswith(".py") or not function.isidentifier():
        named = next((text for text in (spec, file) if text.endswith(".py")), f"jobs/{job}.py")
        report.add(
            "bad-python",
            f"`python: {spec}` does not name a function in a file.",
            f"Write, for example, `{named}:{job}`.",
            place,
        )
        return None
    loaded = load_text(file, folder, place, report)
    if loaded is None:
        return None
    file, text = loaded
    module = find_function(text, function, file, place, report)
    if module is None:
        return None
    check_python(module, file, report)
    imported = follow_imports(module, file, folder, report)
    for helper in imported:
        check_python(helper.tree, helper.file, report)
    return Code(
        language=Language.PYTHON,
        text=text,
        file=file,
        function=function,
        place_of=lambda line: Place(file=file, line=line),
        uses_as_of=any(mentions_as_of(tree) for tree in (module, *(m.tree for m in imported))),
        modules=tuple(Module(name=m.name, file=m.file, code=m.text) for m in imported),
    )


def load_text(file: str, folder: Path, place: Place, report: Report) -> tuple[str, str] | None:
    """The name and the text of a file of the project.

    If it does not exist, the file with the nearest name is read. None if there is none.
    """
    path = folder / file
    try:
        return file, path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        report.add("file-not-text", f"`{file}` is not UTF-8.", "Save it as UTF-8.", place)
    except (OSError, ValueError) as error:
        if path.is_dir() or isinstance(error, PermissionError):
            what = f"`{file}` cannot be read: {getattr(error, 'strerror', error)}."
            report.add("file-not-found", what, "Name a file that can be read.", place)
            return None
        others = _files_like(path, folder)
        report.add(
            "file-not-found",
            f"there is no file `{file}` in the project.",
            suggest(file, others, "files"),
            place,
        )
        nearest = find_nearest(file, others)
        return load_text(nearest, folder, place, report) if nearest is not None and nearest != file else None
    return None


def _files_like(path: Path, folder: Path) -> list[str]:
    """Files of the project with the same suffix, outside hidden folders."""
    try:
        files = (p.relative_to(folder) for p in folder.rglob(f"*{path.suffix}"))
        return [
            str(p)
            for p, _ in zip(
                (p for p in files if not any(part.startswith(".") for part in p.parts)),
                range(500),
                strict=False,
            )
        ]
    except (OSError, ValueError):
        return []
