"""Write a small runnable project, or a copy of an example. Existing files are never touched."""

import argparse
from pathlib import Path

from strandline.app.init import Initialised, init

from .output import emit


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", metavar="DIR", nargs="?", help="where to; by default --project, or the working directory"
    )
    parser.add_argument("--example", metavar="NAME", help="copy this example, for instance property_tax")


def run(call: argparse.Namespace) -> int:
    made = init(Path(call.folder or call.project), call.example)
    document = {"folder": str(made.folder), "files": [{"file": name} for name in made.files]}
    emit(call.output, "init", document, "files", lambda: render(made, call.example))
    return 0


def render(made: Initialised, example: str | None) -> str:
    next_steps = ["strandline run"] if example is None else ["(its README.md explains it)"]
    if example is None:
        next_steps += ['strandline query "SELECT * FROM customer_totals"', "strandline history orders A-1"]
    there = [] if made.folder.resolve() == Path.cwd() else [f"cd {made.folder}"]
    return "\n".join(
        [
            f"Wrote to {made.folder}:",
            *(f"  {name}" for name in made.files),
            "",
            "Next:",
            *(f"  {s}" for s in [*there, *next_steps]),
        ]
    )
