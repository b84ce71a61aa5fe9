"""What is fresh, behind, stale, frozen or failed, and since when. Starts no Spark."""

import argparse
from collections import Counter
from pathlib import Path

from strandline.app.status import DatasetStatus, read_status
from strandline.app.workspace import open_workspace

from .output import emit
from .tables import moment, plural, render_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="a dataset, source or job; by default all")


def run(call: argparse.Namespace) -> int:
    with open_workspace(Path(call.project)) as workspace:
        found = read_status(workspace, call.name)
    emit(call.output, "status", {"datasets": [_dataset(s) for s in found]}, "datasets", lambda: render_status(found))
    return 0


def _dataset(status: DatasetStatus) -> dict[str, object]:
    return {
        "dataset": status.dataset,
        "kind": status.kind,
        "state": status.state,
        "since": status.since,
        "table_version": status.table_version,
        "rows": status.rows,
        "counts": dict(status.counts),
        "reason": status.reason,
    }


def render_status(found: tuple[DatasetStatus, ...]) -> str:
    columns = ("dataset", "kind", "state", "since", "version", "rows", "more")
    table = render_table(columns, [_row(s) for s in found], wrap_last=True, right=("version",), grouped=True)
    states = Counter(s.state for s in found)
    return "\n".join([table, "", f"{plural(len(found), 'dataset')}: {', '.join(f'{n} {state}' for state, n in states.items())}."])


def _row(status: DatasetStatus) -> tuple[object, ...]:
    version = "" if status.table_version is None else str(status.table_version)
    return (status.dataset, status.kind, status.state, moment(status.since), version, status.rows, _more(status))


def _more(status: DatasetStatus) -> str:
    counts = ", ".join(f"{number:,} {name.replace('_', ' ')}" for name, number in status.counts.items() if number and name != "received")
    return "; ".join(part for part in (" ".join(status.reason.split()), counts.replace(" offered, ", " offered: ", 1)) if part)
