"""Recompute in full, over the recorded input versions, and compare row by row with what is published.

Ends with 4 when something differs.
"""

import argparse
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from strandline.app.watching import Watcher
from strandline.model.errors import CallError
from strandline.pages.documents.verify import verify_document
from strandline.pages.wording import plural

from .doing import do_work
from .output import emit, say
from .quiet import quiet_spark
from .tables import as_text, render_table

if TYPE_CHECKING:
    from strandline.model.verified import VerifiedDataset, VerifyOutcome


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", metavar="NAME", nargs="*", help="datasets and jobs; by default all")
    parser.add_argument("--sample", metavar="P%", help="compare this share of the keys only, for example 5%%")


def run(call: argparse.Namespace) -> int:
    from strandline.app.verify import VerifyRequest

    sample = None if call.sample is None else parse_percent(call.sample)

    def progress(verified: "VerifiedDataset") -> None:
        if call.output == "table":
            say(f"  {verified.result}  {verified.dataset}  {plural(verified.compared_rows, 'row')}")

    request = VerifyRequest(names=tuple(call.names), sample_percent=sample)
    with quiet_spark():
        outcome: VerifyOutcome = do_work(Path(call.project), "verify", request, Watcher(verified=progress))
    emit(
        call.output,
        "verify",
        verify_document(outcome),
        "datasets",
        lambda: render_verified(outcome),
    )
    return outcome.exit_code


def parse_percent(text: str) -> float:
    """`5%` or `5` -> 5.0."""
    try:
        percent = float(text.strip().removesuffix("%"))
    except ValueError:
        percent = 0.0
    if not 0 < percent <= 100:
        raise CallError(
            f"`{text}` is not a share.",
            remedy="Write it as 5%, more than 0% and at most 100%.",
            slug="bad-share",
        )
    return percent


def render_verified(outcome: "VerifyOutcome") -> str:
    columns = ("dataset", "result", "compared", "differing", "stale", "kept", "over")
    rows = [
        (d.dataset, d.result, d.compared_rows, d.differing_rows, d.stale_rows, d.kept_rows, _versions(d))
        for d in outcome.datasets
    ]
    lines = [render_table(columns, rows, wrap_last=True, grouped=True)]
    for dataset in outcome.datasets:
        if dataset.reason:
            lines += ["", f"{dataset.dataset} is {dataset.result}: {dataset.reason}"]
        if dataset.failed_keys:
            lines += ["", f"{dataset.dataset} has {plural(dataset.failed_keys, 'FAILED key')}."]
        if dataset.reprocessing_keys:
            waiting = plural(dataset.reprocessing_keys, "key")
            lines += ["", f"{dataset.dataset} was compared without {waiting} that wait for a later batch."]
        if dataset.examples:
            lines += [
                "",
                f"{dataset.dataset} is {dataset.result}, for example:",
                *(f"  {as_text(example)}" for example in dataset.examples),
            ]
    results = Counter(d.result for d in outcome.datasets)
    counts = ", ".join(f"{number} {result}" for result, number in results.items())
    compared = sum(d.compared_rows for d in outcome.datasets)
    return "\n".join(
        [
            *lines,
            "",
            f"{plural(len(outcome.datasets), 'dataset')}, {plural(compared, 'row')} compared: {counts}.",
        ]
    )


def _versions(verified: "VerifiedDataset") -> str:
    return ", ".join(f"{name} {version}" for name, version in verified.input_versions.items())
