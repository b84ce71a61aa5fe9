"""What is fresh, behind, stale, frozen or failed, and since when. Starts no Spark.

With NAME also its partitions, if it has any. `--output html` prints a page with a drawing of all datasets,
`--output prometheus` the figures of timelines for a monitoring system.
"""

import argparse
from collections import Counter
from pathlib import Path

from strandline.app.status import read_overview
from strandline.app.workspace import open_workspace
from strandline.model.statuses import FRESH, PARTITION_STATES, DatasetStatus, Overview
from strandline.pages.documents.status import status_document
from strandline.pages.prometheus import make_timeline_metrics, render_metrics
from strandline.pages.wording import describe_keys, moment, plural, size

from .held import render_held
from .output import emit
from .tables import render_table

OUTPUTS = ("table", "json", "csv", "html", "prometheus")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="a dataset, source or job; by default all")


def run(call: argparse.Namespace) -> int:
    with open_workspace(Path(call.project)) as workspace:
        overview = read_overview(workspace, call.name, with_dates=call.output == "html")
    if call.output == "prometheus":
        print(render_metrics(make_timeline_metrics(overview.timelines)))
        return 0
    if call.output == "html":
        from strandline.pages.status import render_html

        print(render_html(overview))
        return 0
    emit(
        call.output,
        "status",
        status_document(overview, with_partitions=call.output == "json"),
        "datasets",
        lambda: render_status(overview, with_partitions=bool(call.name)),
    )
    return 0


def render_status(overview: Overview, *, with_partitions: bool = False) -> str:
    statuses = overview.statuses
    columns = ("dataset", "kind", "state", "since", "version", "rows", "more")
    table = render_table(
        columns, [_row(s) for s in statuses], wrap_last=True, right=("version",), grouped=True
    )
    states = Counter(s.state for s in statuses)
    partitions = [
        line for s in statuses if with_partitions and s.partitioned_by for line in _partition_lines(s)
    ]
    total = f"{plural(len(statuses), 'dataset')}: {', '.join(f'{n} {state}' for state, n in states.items())}."
    return "\n".join([table, *partitions, "", total, *render_held(overview.held)])


def _row(status: DatasetStatus) -> tuple[object, ...]:
    version = "" if status.table_version is None else str(status.table_version)
    return (
        status.dataset,
        status.kind,
        status.state,
        moment(status.since),
        version,
        status.rows,
        _more(status),
    )


def _more(status: DatasetStatus) -> str:
    counts = ", ".join(
        f"{number:,} {name.replace('_', ' ')}"
        for name, number in status.counts.items()
        if number and name != "received"
    )
    return "; ".join(
        part
        for part in (
            " ".join(status.reason.split()),
            describe_keys(status.keys) if status.keys else "",
            counts.replace(" offered, ", " offered: ", 1),
        )
        if part
    )


def _partition_lines(status: DatasetStatus) -> list[str]:
    """The number of partitions in each state, and each partition that is not fresh."""
    number_by_state = Counter(p.state for p in status.partitions)
    counts = ", ".join(
        f"{number_by_state[state]:,} {state}" for state in PARTITION_STATES if state in number_by_state
    )
    partitions = f"{plural(len(status.partitions), 'partition')} of {status.partitioned_by}"
    first = f"{status.dataset} has {partitions}{': ' if counts else ''}{counts}."
    rows = [
        (
            p.partition_key,
            p.state,
            *(
                (f"{p.rows:,}", size(p.bytes), moment(p.version), str(p.table_version))
                if p.version
                else [""] * 4
            ),
        )
        for p in status.partitions
        if p.state != FRESH
    ]
    columns, right = ("partition", "state", "rows", "size", "built", "version"), ("rows", "size", "version")
    return ["", first, *([render_table(columns, rows, right=right, indent="  ")] if rows else [])]
