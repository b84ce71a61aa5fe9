"""File sources: their files, the format, and the columns that the files have now."""

import csv
import glob
import gzip
import re
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from strandline.declare.settings import Secrets, as_text
from strandline.declare.yaml_lines import Document
from strandline.model.columns import native_name
from strandline.model.project import FileFormat, FileSource
from strandline.model.report import Report

from .spec import SourceSpec

_MOST_FILES = 200
"""With more files than this, columns are checked only when the files are read."""

_UNREADABLE = (
    "Remove it: a row that cannot be read goes to the quarantine of the datasets that read the source."
)
_FIXED_CSV_OPTIONS = {
    "linesep": "Remove it, and write files whose lines end with LF, CR LF or CR.",
    "unescapedquotehandling": "Remove it: a quote that does not begin a field is part of its text.",
    "chartoescapequoteescaping": (
        "Remove it, and set `escape` if quotes are escaped by another character than a second quote."
    ),
    "mode": _UNREADABLE,
    "columnnameofcorruptrecord": _UNREADABLE,
}
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")


def make_source(
    name: str, spec: SourceSpec, secrets: Secrets, document: Document, report: Report
) -> FileSource | None:
    path = ("sources", name)
    place = document.place(*path)
    assert spec.files is not None
    if scheme := _SCHEME.match(spec.files):
        what = f"Files at `{scheme[0]}` are not supported by this version yet."
        report.add(
            "not-yet",
            what,
            "Name files in a folder, relative to the project.",
            document.place(*path, "files"),
        )
        return None
    format_ = FileFormat(spec.format) if spec.format else find_format(spec.files)
    if format_ is None:
        what = f"the ending of `{spec.files}` does not determine a format."
        report.add(
            "unknown-format",
            what,
            "Add `format: jsonl`, `json`, `csv` or `parquet`.",
            document.place(*path, "files"),
        )
        return None
    if format_ is FileFormat.CSV:
        _check_csv_options(spec, path, document, report)
    return FileSource(
        name=name,
        place=place,
        files=secrets.fill(spec.files, (*path, "files")),
        format=format_,
        complete=spec.complete,
        offer_rewritten_again=spec.on_rewrite == "offer_again",
        options={
            key: secrets.fill(as_text(value), (*path, "options", key)) for key, value in spec.options.items()
        },
    )


def _check_csv_options(spec: SourceSpec, path: tuple[str, ...], document: Document, report: Report) -> None:
    """Refuse options that would move the ends of records.

    The engine itself determines where a record ends, so that positions never change.
    """
    for option, value in spec.options.items():
        remedy = _FIXED_CSV_OPTIONS.get(option.lower())
        if remedy is not None and not (
            option.lower() == "linesep" and as_text(value) in ("\n", "\r\n", "\r")
        ):
            what = f"`{option}` of a CSV source cannot be set."
            report.add("option-not-taken", what, remedy, document.place(*path, "options", option))


def find_format(files: str) -> FileFormat | None:
    """The format according to the ending: `.jsonl`, `.csv.gz`, ... None if the ending is not known."""
    ending = files.lower().removesuffix(".gz").rsplit(".", 1)[-1]
    if ending == "ndjson":
        return FileFormat.JSONL
    return FileFormat(ending) if ending in set(FileFormat) else None


def find_columns(source: FileSource, folder: Path) -> frozenset[str] | None:
    """The columns of the existing files, by the names under which the source stores them.

    None if they are not known: messages, no files yet, a file that cannot be read, or too many files. They
    are then checked at run time.
    """
    if source.format.holds_messages:
        return None
    files = sorted(glob.glob(source.files, root_dir=folder, recursive=True))  # noqa: PTH207 - absolute globs
    if not files or len(files) > _MOST_FILES:
        return None
    columns: set[str] = set()
    for file in files:
        try:
            columns |= (
                _csv_header(folder / file, source.options)
                if source.format is FileFormat.CSV
                else _parquet_columns(folder / file)
            )
        except Exception:  # noqa: BLE001 - only the run refuses a bad file; verbs that only read ignore it
            return None
    return frozenset(columns)


def _csv_header(file: Path, options: Mapping[str, str]) -> set[str]:
    lower = {key.lower(): value for key, value in options.items()}
    delimiter = (lower.get("sep") or lower.get("delimiter") or ",").replace("\\t", "\t")
    quote, comment = lower.get("quote") or '"', lower.get("comment") or "\n"
    with _open_text(file, lower.get("encoding") or lower.get("charset") or "utf-8") as text:
        lines = (line.removeprefix("\ufeff") for line in text)
        first = next(line for line in lines if line.strip() and not line.startswith(comment))
    if first.count(quote) % 2:
        raise ValueError("the header continues in the next line")
    fields = next(csv.reader([first.rstrip("\r\n")], delimiter=delimiter, quotechar=quote))
    if lower.get("header", "true").lower() == "false":
        return {f"_c{number}" for number in range(len(fields))}
    return {native_name(name) or f"_c{number}" for number, name in enumerate(fields)}


def _open_text(file: Path, encoding: str) -> IO[str]:
    if file.suffix.lower() == ".gz":
        return gzip.open(file, "rt", encoding=encoding, newline="")
    return file.open(encoding=encoding, newline="")


def _parquet_columns(file: Path) -> set[str]:
    from pyarrow import parquet  # slow to import, and most projects have no parquet files

    return {native_name(name) for name in parquet.read_schema(file).names}
