"""Record that a part of a dataset must be processed again by the jobs that read it, and why.

EXPR may contain comparisons, BETWEEN, IN and AND, for example "block_number between 995 and 1005". The next
run processes it.
"""

import argparse
import json
from pathlib import Path

from strandline.app.watching import Watcher
from strandline.model.errors import CallError
from strandline.pages.documents.invalidation import invalidate_document

from .doing import do_work
from .output import emit
from .quiet import quiet_spark


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dataset", metavar="DATASET", help="a dataset that jobs read")
    scope = parser.add_mutually_exclusive_group(required=True)
    scope.add_argument("--where", metavar="EXPR", help="the rows: comparisons, BETWEEN, IN and AND")
    scope.add_argument(
        "--row-filter", metavar="JSON", help="the rows as JSON: columns, each with operators and values"
    )
    scope.add_argument(
        "--partition", metavar="P", help="the rows of one partition, for example 1000000-1010000"
    )
    parser.add_argument(
        "--reason",
        metavar="R",
        required=True,
        help="why: reorg, correction, manual, schema_change, or your own words",
    )


def run(call: argparse.Namespace) -> int:
    from strandline.app.invalidate import Invalidated, InvalidateRequest

    row_filter = _parse_json(call.row_filter) if call.row_filter is not None else None
    request = InvalidateRequest(
        dataset=call.dataset,
        reason=call.reason,
        where=call.where or "",
        row_filter=row_filter,
        partition=call.partition or "",
    )
    with quiet_spark():
        done: Invalidated = do_work(Path(call.project), "invalidate", request, Watcher())
    text = (
        f"{done.dataset}: {done.text} ({done.invalidation.reason}), version {done.table_version}."
        f" To process: {', '.join(done.jobs)}."
    )
    emit(
        call.output,
        "invalidate",
        invalidate_document(done),
        "invalidations",
        lambda: f"{text}\nThe next `strandline run` does it.",
    )
    return 0


def _parse_json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        remedy = 'Write it as {"block_number": {"gte": 995, "lte": 1005}}.'
        raise CallError(
            f"`--row-filter` is not JSON: {error}.", remedy=remedy, slug="filter-unknown"
        ) from error
