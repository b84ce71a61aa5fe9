"""Build a new catalog from the tables alone, and replace the one in use by it.

For a catalog that was lost, is damaged, or was restored from an earlier copy. Refuses while somebody writes.
"""

import argparse
from dataclasses import asdict
from pathlib import Path

from strandline.app.rebuild_catalog import Rebuilt, rebuild_catalog
from strandline.pages.documents.rebuild_catalog import rebuilt_document
from strandline.pages.wording import plural

from .output import emit
from .tables import render_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None but those of every verb."""


def run(call: argparse.Namespace) -> int:
    done = rebuild_catalog(Path(call.project))
    emit(call.output, "rebuild-catalog", rebuilt_document(done), "tables", lambda: render_rebuilt(done))
    return 0


def render_rebuilt(done: Rebuilt) -> str:
    names = ("dataset", "version", "cursors", "files", "partitions", "invalidations")
    cells = [tuple(str(value) for value in asdict(table).values()) for table in done.tables]
    lines = [
        render_table(names, cells),
        "",
        f"{done.catalog} contains what {plural(len(cells), 'table')} recorded.",
    ]
    if done.damaged:
        lines.append(f"The damaged one is now {done.damaged}.")
    return "\n".join([*lines, *done.notes])
