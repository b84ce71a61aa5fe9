"""Compact and clean tables.

Small files are merged, deleted rows leave their files, and files that nobody needs any more are removed.
Nothing is removed that a job has yet to read, or that --known-at may ask for within `settings.keep` (by
default 30 days).
"""

import argparse
from pathlib import Path

from strandline.app.maintain import MaintainOutcome, MaintainRequest, preview_tables
from strandline.app.watching import Watcher
from strandline.app.workspace import open_workspace
from strandline.model.maintained import Maintained
from strandline.pages.documents.maintain import maintain_document
from strandline.pages.wording import plural

from .doing import do_work
from .output import emit, say
from .quiet import quiet_spark
from .tables import render_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", metavar="NAME", nargs="?", help="a dataset, source or job; by default everything"
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="show what would be rewritten and removed, and change nothing",
    )


def run(call: argparse.Namespace) -> int:
    if call.dry_run:
        return _preview(call)
    with quiet_spark():
        request = MaintainRequest(name=call.name)
        outcome: MaintainOutcome = do_work(Path(call.project), "maintain", request, Watcher())
    emit(call.output, "maintain", maintain_document(outcome), "tables", lambda: _render(outcome))
    for table in outcome.tables:
        if table.error:
            say(f"{table.dataset}: {table.error}")
    return outcome.exit_code


def _preview(call: argparse.Namespace) -> int:
    with open_workspace(Path(call.project)) as workspace:
        outcome = preview_tables(workspace, call.name)
    document = {"dry_run": True, **maintain_document(outcome)}
    emit(call.output, "maintain", document, "tables", lambda: render_preview(outcome.tables))
    return 0


def _render(outcome: MaintainOutcome) -> str:
    text = render_maintained(outcome.tables)
    if not outcome.forgotten:
        return text
    return f"{text}\n\nRemoved {plural(outcome.forgotten, 'delivery')} that ended before `settings.keep`."


def render_maintained(tables: tuple[Maintained, ...]) -> str:
    if not tables:
        return "There is no table yet."
    cells = [
        (
            t.dataset,
            f"{t.files_before} -> {t.files_after}",
            _size(t.freed_bytes),
            plural(t.removed_files, "file"),
            _kept(t),
        )
        for t in tables
    ]
    return render_table(("dataset", "files", "freed", "removed", "kept"), cells, wrap_last=True)


def render_preview(tables: tuple[Maintained, ...]) -> str:
    if not tables:
        return "There is no table yet."
    cells = [
        (
            t.dataset,
            str(t.files_before),
            "; ".join(t.notes),
            plural(t.removed_files, "file"),
            _size(t.freed_bytes),
            _kept(t),
        )
        for t in tables
    ]
    shown = render_table(
        ("dataset", "files", "to write again", "to remove", "to free", "to keep"), cells, wrap_last=True
    )
    return (
        f"{shown}\n\nNothing was changed."
        " What is written again frees its old files once they are no longer kept."
    )


def _kept(table: Maintained) -> str:
    if not table.kept_files:
        return ""
    return f"{plural(table.kept_files, 'file')}, {_size(table.kept_bytes)}: {table.kept_because}"


def _size(count: int) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000  # type: ignore[assignment]
    return f"{count:.1f} TB"
