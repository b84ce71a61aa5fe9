"""How an answer is printed: a stable JSON document, CSV, or text for people."""

import csv
import json
import sys
from collections.abc import Callable, Mapping, Sequence

from strandline.model.json_values import json_value

Document = Mapping[str, object]


def emit(output: str, verb: str, document: Document, listed: str, text: Callable[[], str]) -> None:
    """Print an answer. `listed` names the part of the document that is its list, which is what CSV shows."""
    match output:
        case "json":
            print_json(verb, document)
        case "csv":
            rows = document[listed]
            assert isinstance(rows, list)
            columns = list(dict.fromkeys(name for row in rows for name in row))
            print_csv(columns, [[row.get(name) for name in columns] for row in rows])
        case _:
            print(text())


def print_json(verb: str, document: Document) -> None:
    print(
        json.dumps(
            json_value({"schema": f"strandline/{verb}/v1", **document}),
            ensure_ascii=False,
            separators=(", ", ": "),
        )
    )


def print_csv(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    if columns:
        writer.writerow(columns)
    writer.writerows([_field(value) for value in row] for row in rows)


def _field(value: object) -> str:
    match json_value(value):
        case None:
            return ""
        case bool() as truth:
            return "true" if truth else "false"
        case (dict() | list()) as nested:
            return json.dumps(nested, ensure_ascii=False)
        case other:
            return str(other)


def say(text: str = "") -> None:
    """Print a line for the person at the terminal, apart from the data."""
    print(text, file=sys.stderr, flush=True)
