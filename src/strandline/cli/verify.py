"""Recompute in full, over the recorded input versions, and compare row by row with what is published.

Ends with 4 when something differs.
"""

import argparse
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from strandline.app.watching import Watcher
from strandline.model.errors import CallError
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

    sample = parse_percent(call.sample) if call.sample else None

    def progress(verified: "VerifiedDataset") -> None:
        if call.output == "table":
            say(f"  {verified.result}  {verified.dataset}  {plural(verified.compared_rows, 'row')}")

    request = VerifyRequest(names=tuple(call.names), sample_percent=sample)
    with quiet_spark():
        outcome: VerifyOutcome = do_work(Path(call.project), "verify", request, Watcher(verified=progress))
    emit(
        call.output,
        "verify",
        {"datasets": [_dataset(d) for d in outcome.datasets]},
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


def _dataset(verified: "VerifiedDataset") -> dict[str, object]:
    return {
        "dataset": verified.dataset,
        "result": verified.result,
        "equal": verified.equal,
        "compared_rows": verified.compared_rows,
        "differing_rows": verified.differing_rows,
        "stale_rows": verified.stale_rows,
        "kept_rows": verified.kept_rows,
        "input_versions": dict(verified.input_versions),
        "as_of": verified.as_of,
        "examples": list(verified.examples),
        **({"reason": verified.reason} if verified.reason else {}),
        **(_keys_left_out(verified) if verified.failed_keys is not None else {}),
    }


def _keys_left_out(verified: "VerifiedDataset") -> dict[str, int]:
    return {
        "failed_keys": verified.failed_keys or 0,
        "reprocessing_keys": verified.reprocessing_keys or 0,
    }


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
