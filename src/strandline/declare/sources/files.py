"""Sources: files, their format, and the columns their files have now."""

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
"""With more files than this, columns are left to be checked when they are read."""

_FIXED_CSV_OPTIONS = {
    "linesep": "Remove it: a line ends with LF, CR LF or CR. Write the files so.",
    "unescapedquotehandling": "Remove it: a quote that does not begin a field is part of its text.",
    "chartoescapequoteescaping": "Remove it, and say `escape` if quotes are escaped by another character than a second quote.",
    "mode": "Remove it: a row that cannot be read goes to the quarantine of the datasets that read the source.",
    "columnnameofcorruptrecord": "Remove it: a row that cannot be read goes to the quarantine of the datasets that read the source.",
}
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")


def make_source(
    name: str, spec: SourceSpec, secrets: Secrets, document: Document, report: Report
) -> FileSource | None:
    path = ("sources", name)
    place = document.place(*path)
    if scheme := _SCHEME.match(spec.files):
        what = f"Files at `{scheme[0]}` are not supported by this version yet."
        report.add(
            "not-yet",
            what,
            "Name files in a folder, relative to the project.",
            document.place(*path, "files"),
        )
        return None
    found = FileFormat(spec.format) if spec.format else find_format(spec.files)
    if found is None:
        what = f"the ending of `{spec.files}` tells no format."
        report.add(
            "unknown-format",
            what,
            "Add `format: jsonl`, `json`, `csv` or `parquet`.",
            document.place(*path, "files"),
        )
        return None
    if found is FileFormat.CSV:
        _check_csv_options(spec, path, document, report)
    return FileSource(
        name=name,
        place=place,
        files=secrets.fill(spec.files, (*path, "files")),
        format=found,
        complete=spec.complete,
        offer_rewritten_again=spec.on_rewrite == "offer_again",
        options={
            key: secrets.fill(as_text(value), (*path, "options", key)) for key, value in spec.options.items()
        },
    )


def _check_csv_options(spec: SourceSpec, path: tuple[str, ...], document: Document, report: Report) -> None:
    """The engine finds where a record ends by itself, so that positions never change. What would move those ends is refused."""
    for option, value in spec.options.items():
        remedy = _FIXED_CSV_OPTIONS.get(option.lower())
        if remedy is not None and not (
            option.lower() == "linesep" and as_text(value) in ("\n", "\r\n", "\r")
        ):
            what = f"`{option}` of a CSV source cannot be set."
            report.add("option-not-taken", what, remedy, document.place(*path, "options", option))


def find_format(files: str) -> FileFormat | None:
    """The format that the ending tells: `.jsonl`, `.csv.gz`, ..."""
    ending = files.lower().removesuffix(".gz").rsplit(".", 1)[-1]
    if ending == "ndjson":
        return FileFormat.JSONL
    return FileFormat(ending) if ending in set(FileFormat) else None


def find_columns(source: FileSource, folder: Path) -> frozenset[str] | None:
    """The columns that the files present have, by the names under which the source keeps them.

    None when that cannot be told: messages, no files yet, a file that cannot be read, too many to open. Run time checks then.
    """
    if source.format.holds_messages:
        return None
    files = sorted(glob.glob(source.files, root_dir=folder, recursive=True))  # noqa: PTH207 - takes absolute globs too
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
        except Exception:  # noqa: BLE001 - an odd file is for the run to refuse, alone: a verb that only looks goes on without it
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
        raise ValueError("the header goes on in the next line")
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
