"""The options that `plan`, `run`, `backfill` and `quarantine --release` share, and the request they make."""

import argparse

from strandline.app.clock import parse_instant
from strandline.app.planning import RunRequest
from strandline.model.project import FailOn


def add_selection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--select",
        metavar="S",
        nargs="+",
        help="names; `+name` with all it is computed from, `name+` with all computed from it,"
        " `stale:` what is stale",
    )
    parser.add_argument(
        "--as-of",
        metavar="T",
        help="the logical time of the run, 2024-01-13 or 2024-01-13T08:30:00Z; by default its start",
    )


def add_fail_on(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--fail-on",
        choices=[str(word) for word in FailOn],
        help="`held`: end with 1 while something is stale or frozen and facts wait for it;"
        " by default as `settings.fail_on` says",
    )


def add_batches(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--batches",
        metavar="N",
        type=at_least_one,
        help="publish at most N batches of a timeline's reprocessing, and leave the rest to the next run",
    )


def at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"`{text}` is not a whole number of at least 1")
    return int(text)


def add_guard(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--accept-guard",
        metavar="NAME",
        nargs="*",
        help="let a snapshot lose more records, or a trigger tell about more events, than its guard allows;"
        " without names: all of them",
    )


def add_quiet(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--quiet",
        metavar="NAME",
        nargs="*",
        help="record the events of these triggers without telling their endpoints; without names: of all",
    )


def make_request(call: argparse.Namespace) -> RunRequest:
    accepted = getattr(call, "accept_guard", None)
    quiet = getattr(call, "quiet", None)
    fail_on = getattr(call, "fail_on", None)
    return RunRequest(
        select=" ".join(call.select) if call.select else None,
        as_of=None if call.as_of is None else parse_instant(call.as_of),
        batches=getattr(call, "batches", None),
        accept_guard=None if accepted is None else tuple(accepted),
        quiet=None if quiet is None else tuple(quiet),
        fail_on=FailOn(fail_on) if fail_on else None,
    )
