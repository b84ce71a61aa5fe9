"""Read published data with SQL. The SQL is DataFusion's and no Spark is started.

Datasets are used by their names: `property` is the newest row of each key, `property_facts` every fact,
`property_quarantine` what was refused. Metadata columns (_source_at, _ingested_at, _source_position, ...)
appear only if they are named.
"""

import argparse
from pathlib import Path

from strandline.app.query import KnownAt, QueryResult, parse_known_at, query
from strandline.app.reading import Reading, open_reading
from strandline.app.reprocessing import read_reprocessing
from strandline.model.errors import CallError
from strandline.pages.documents.query import query_document
from strandline.pages.wording import plural

from .output import print_csv, print_json, say
from .quiet import quiet_spark
from .tables import render_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sql", metavar="SQL", help="one SELECT; in quotes, so that the shell leaves it alone")
    parser.add_argument(
        "--known-at",
        metavar="T",
        help="what was known at an instant (2024-01-13T08:30:00Z), or DATASET=VERSION,...",
    )
    parser.add_argument(
        "--fresh",
        action="store_true",
        help="as after a run: includes what was not read yet, and commits nothing",
    )
    parser.add_argument(
        "--engine",
        choices=("datafusion", "spark"),
        default="datafusion",
        help="whose SQL it is; by default datafusion",
    )


def run(call: argparse.Namespace) -> int:
    _refuse_contradictions(call)
    reading = open_reading(Path(call.project))
    known_at = None if call.known_at is None else parse_known_at(reading.project, call.known_at)
    result = _ask(call, reading, known_at)
    match call.output:
        case "json":
            status = read_reprocessing(reading, result.version, known_at)
            told = {"reprocessing_status": status} if status else {}
            print_json("query", {**query_document(result), **told})
        case "csv":
            print_csv(result.columns, result.rows)
        case _:
            print(render_table(result.columns, result.rows))
            say(plural(len(result.rows), "row"))
    if call.output != "json":
        for note in result.notes:
            say(f"Note: {note}")
    return 0


def _ask(call: argparse.Namespace, reading: Reading, known_at: KnownAt | None) -> QueryResult:
    if not call.fresh and call.engine == "datafusion":
        return query(reading, call.sql, known_at)
    from strandline.app.fresh import QueryRequest
    from strandline.app.watching import Watcher

    from .doing import do_work

    request = QueryRequest(sql=call.sql, fresh=call.fresh, known_at=call.known_at)
    with quiet_spark():
        result: QueryResult = do_work(Path(call.project), "query", request, Watcher())
        return result


def _refuse_contradictions(call: argparse.Namespace) -> None:
    if call.fresh and call.known_at is not None:
        raise CallError(
            "--fresh is about now and --known-at about then.", remedy="Leave one of them out.", slug="call"
        )
    if call.fresh and call.engine == "spark":
        raise CallError(
            "--fresh runs the SQL of DataFusion.", remedy="Leave out --engine spark.", slug="call"
        )
