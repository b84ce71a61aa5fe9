"""What was refused and why.

With --release those positions are decoded again, what now passes is taken in, and all that depends on it is brought up to date.
"""

import argparse
from pathlib import Path

from strandline.app.quarantine import Refused, read_quarantine
from strandline.app.reading import open_reading

from .output import emit
from .tables import moment, plural, render_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dataset", metavar="DATASET", help="a fact dataset")
    parser.add_argument("--release", action="store_true", help="decode what was refused again, after the declaration was corrected")
    parser.add_argument(
        "--accept-guard", metavar="NAME", nargs="*", help="with --release: let a snapshot lose more records than its guard allows"
    )


def run(call: argparse.Namespace) -> int:
    if call.release:
        return _release(call)
    rows = read_quarantine(open_reading(Path(call.project)), call.dataset)
    emit(call.output, "quarantine", {"rows": [_row(r) for r in rows]}, "rows", lambda: render_refused(call.dataset, rows))
    return 0


def _release(call: argparse.Namespace) -> int:
    from strandline.app.planning import RunRequest
    from strandline.app.workspace import open_workspace

    from .run import work

    accepted = None if call.accept_guard is None else tuple(call.accept_guard)
    with open_workspace(Path(call.project)) as workspace:
        return work(workspace, RunRequest(release=call.dataset, accept_guard=accepted), call.output, "quarantine")


def _row(refused: Refused) -> dict[str, object]:
    return {
        "source_position": list(refused.source_position),
        "reason": refused.reason,
        "slug": refused.slug,
        "payload": refused.payload,
        "ingested_at": refused.ingested_at,
    }


def render_refused(dataset: str, rows: tuple[Refused, ...]) -> str:
    if not rows:
        return f"Nothing of {dataset} is in quarantine."
    cells = [(_place(r), moment(r.ingested_at), r.slug, r.reason) for r in rows]
    lines = [
        f"{plural(len(rows), 'row')} of {dataset} in quarantine:",
        "",
        render_table(("from", "learnt", "slug", "reason"), cells, wrap_last=True),
    ]
    return "\n".join([*lines, "", *(f"{_place(r)}  {r.payload}" for r in rows)])


def _place(refused: Refused) -> str:
    name, part, place = refused.source_position
    return f"{name}{f' ({part})' if part else ''}:{place}"
