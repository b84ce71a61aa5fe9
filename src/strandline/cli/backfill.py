"""Run a node again with the current configuration, and bring all that depends on it up to date.

--stale writes again what an older configuration wrote; --all everything, which is also what ends a freeze.
`strandline plan` shows what is stale or frozen and why.
"""

import argparse
from dataclasses import replace
from pathlib import Path

from strandline.app.workspace import open_workspace

from .requests import add_guard, make_request
from .run import work


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a dataset or a job")
    scope = parser.add_mutually_exclusive_group(required=True)
    scope.add_argument("--stale", action="store_true", help="what an older configuration wrote")
    scope.add_argument("--all", action="store_true", help="everything")
    parser.add_argument("--reason", metavar="R", default="", help="why, for the record")
    parser.add_argument("--as-of", metavar="T", help="the logical time of the run; by default its start")
    parser.set_defaults(select=None)
    add_guard(parser)


def run(call: argparse.Namespace) -> int:
    request = replace(make_request(call), backfill=call.name, only_stale=call.stale, reason=call.reason)
    with open_workspace(Path(call.project)) as workspace:
        return work(workspace, request, call.output, "backfill")
