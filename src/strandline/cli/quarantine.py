"""What was refused and why: the number of rows for each reason, examples of each, then the rows as received.

With --release those positions are decoded again. What now passes is taken in, and everything that depends on
it is brought up to date.
"""

import argparse
from pathlib import Path

from strandline.app.quarantine import QuarantineContent, Refused, read_quarantine
from strandline.app.reading import open_reading
from strandline.pages.documents.quarantine import quarantine_document
from strandline.pages.wording import moment, plural, share

from .output import emit
from .tables import as_text, render_table

LISTED = 20
"""At most this many rows are listed for people by default. JSON and CSV contain all."""

SHOWN = 200
"""At most this many characters of an example's payload are shown."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dataset", metavar="DATASET", help="a fact dataset")
    parser.add_argument(
        "--limit",
        metavar="N",
        type=_whole_number,
        help=f"list at most N rows; by default {LISTED}, in JSON and CSV all",
    )
    parser.add_argument(
        "--release",
        action="store_true",
        help="decode what was refused again, after the declaration was corrected",
    )
    parser.add_argument(
        "--accept-guard",
        metavar="NAME",
        nargs="*",
        help="with --release: let a snapshot lose more records than its guard allows",
    )


def _whole_number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"`{text}` is not a whole number")
    return int(text)


def run(call: argparse.Namespace) -> int:
    if call.release:
        return _release(call)
    limit = LISTED if call.limit is None and call.output == "table" else call.limit
    content = read_quarantine(open_reading(Path(call.project)), call.dataset, limit)
    emit(
        call.output,
        "quarantine",
        quarantine_document(content),
        "rows",
        lambda: render_refused(call.dataset, content),
    )
    return 0


def _release(call: argparse.Namespace) -> int:
    from strandline.app.planning import RunRequest

    from .run import work

    accepted = None if call.accept_guard is None else tuple(call.accept_guard)
    request = RunRequest(release=call.dataset, accept_guard=accepted)
    return work(Path(call.project), request, call.output, "quarantine")


def render_refused(dataset: str, content: QuarantineContent) -> str:
    if not content.total:
        return f"Nothing of {dataset} is in quarantine."
    lines = [
        f"{plural(content.total, 'row')} of {dataset} in quarantine,"
        f" for {plural(len(content.counts), 'reason')}:",
        "",
    ]
    for slug, number in content.counts.items():
        lines.append(f"{slug}: {plural(number, 'row')} ({share(number, content.total)})")
        for example in content.examples[slug]:
            lines += [f"  {_place(example)}  {example.reason}", f"    {_shorten(example.payload)}"]
        lines.append("")
    if not content.rows:
        return "\n".join(lines[:-1])
    cells = [(_place(r), moment(r.ingested_at), r.slug, r.reason) for r in content.rows]
    table = render_table(("from", "learnt", "slug", "reason"), cells, wrap_last=True)
    lines += [table, "", *(f"{_place(r)}  {r.payload}" for r in content.rows)]
    if len(content.rows) < content.total:
        lines += [
            "",
            f"{len(content.rows):,} of {plural(content.total, 'row')} are listed; `--limit N` lists N.",
        ]
    return "\n".join(lines)


def _place(refused: Refused) -> str:
    name, part, place = refused.source_position
    return f"{name}{f' ({part})' if part else ''}:{place}"


def _shorten(payload: str | None) -> str:
    text = as_text(payload)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}... ({len(text):,} characters)"
