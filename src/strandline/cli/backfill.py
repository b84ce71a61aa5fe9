"""Run nodes again with the current configuration, and bring everything that depends on them up to date.

--stale rewrites what an older configuration wrote; --partitions and --where rewrite a part of it; --all
rewrites everything, which also ends a freeze. The plan is printed, with what it will read, before anything is
done. `strandline status` shows what is stale or frozen and why, and the one command that settles all of it.
"""

import argparse
from dataclasses import replace
from pathlib import Path

from .requests import add_guard, add_quiet, make_request
from .run import work


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "names", metavar="NAME", nargs="+", help="a dataset or a job; several with --stale and --all"
    )
    scope = parser.add_mutually_exclusive_group(required=True)
    scope.add_argument("--stale", action="store_true", help="what an older configuration wrote")
    scope.add_argument("--all", action="store_true", help="everything")
    scope.add_argument(
        "--partitions", metavar="A,B", type=_names, help="these partitions of a job in mode `partition`"
    )
    scope.add_argument(
        "--where",
        metavar="EXPR",
        type=_filter,
        help="the scopes of the output rows that match: comparisons, BETWEEN, IN and AND",
    )
    parser.add_argument("--reason", metavar="R", default="", help="why, for the record")
    parser.add_argument("--as-of", metavar="T", help="the logical time of the run; by default its start")
    parser.set_defaults(select=None)
    add_guard(parser)
    add_quiet(parser)


def run(call: argparse.Namespace) -> int:
    request = replace(
        make_request(call),
        backfill=" ".join(call.names),
        only_stale=call.stale,
        reason=call.reason,
        partitions=call.partitions or (),
        where=call.where or "",
    )
    return work(Path(call.project), request, call.output, "backfill")


def _names(text: str) -> tuple[str, ...]:
    """An empty list is refused, because a backfill without a scope is one of everything: that is `--all`."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise argparse.ArgumentTypeError("no partition is named; `--all` means all")
    return names


def _filter(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("the filter is empty; `--all` means everything")
    return text
