"""`init`: write a small runnable project, or a copy of an example."""

import re
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path

from strandline.declare import PROJECT_FILE
from strandline.model.errors import CallError, OutsideError

_LEFT_BY_RUNNING = (
    *("data", ".strandline", "received", "spark-warehouse"),
    *("__pycache__", ".mypy_cache", ".ruff_cache"),
)

_PROJECT = """\
project: {name}
timezone: UTC                           # for days and months; everything stored is UTC

sources:
  order_events: {{files: "data/orders/*.jsonl"}}     # every line as it came, read once; files may grow

datasets:
  orders:                               # the newest fact about each order
    from: order_events
    columns:
      order_id:   orderId
      customer:   customer
      amount:     {{path: amount, type: "decimal(12,2)"}}
      status:     status
      changed_at: {{path: changedAt, type: timestamp}}
    record_set: {{key: [order_id], order_by: [changed_at], deleted: "status = 'CANCELLED'"}}
    source_at: changed_at

jobs:
  - name: customer_totals               # computed again for just the customers whose orders changed
    input_datasets: [orders]
    output_dataset: customer_totals
    incremental: {{mode: keyed, key: [customer]}}
    sql: jobs/customer_totals.sql
"""

_SQL = """\
SELECT customer, count(*) AS orders, sum(amount) AS amount
FROM orders
GROUP BY customer
"""

_DATA = """\
{"orderId": "A-1", "customer": "Asha", "amount": 120.00, "status": "PLACED", \
"changedAt": "2024-01-12T09:00:00Z"}
{"orderId": "A-2", "customer": "Asha", "amount": 35.50, "status": "PLACED", \
"changedAt": "2024-01-12T09:30:00Z"}
{"orderId": "B-1", "customer": "Bilal", "amount": 80.00, "status": "PLACED", \
"changedAt": "2024-01-12T10:00:00Z"}
{"orderId": "A-1", "customer": "Asha", "amount": 100.00, "status": "PLACED", \
"changedAt": "2024-01-12T11:00:00Z"}
{"orderId": "C-1", "customer": "Chen", "amount": 12.25, "status": "PLACED", \
"changedAt": "2024-01-12T12:00:00Z"}
{"orderId": "A-2", "customer": "Asha", "amount": 35.50, "status": "CANCELLED", \
"changedAt": "2024-01-12T13:00:00Z"}
{"orderId": "B-1", "customer": "Bilal", "amount": 75.00, "status": "PLACED", \
"changedAt": "2024-01-12T08:00:00Z"}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Initialised:
    folder: Path
    files: tuple[str, ...]


def init(folder: Path, example: str | None = None) -> Initialised:
    """Write the project's files. If one of them exists already, nothing is written at all."""
    texts = _starter(folder) if example is None else _example(example)
    taken = [name for name in texts if (folder / name).exists()]
    if taken:
        raise CallError(
            f"`{folder / taken[0]}` exists already.",
            remedy="Name a new folder: `strandline init DIR`.",
            slug="already-there",
        )
    try:
        for name, text in texts.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(text)
    except OSError as error:
        raise OutsideError(
            f"`{folder}` cannot be written: {error.strerror}.",
            remedy="Name another folder.",
            slug="folder-unwritable",
        ) from error
    return Initialised(folder=folder, files=tuple(sorted(texts)))


def _starter(folder: Path) -> dict[str, bytes]:
    name = re.sub(r"\W+", "_", folder.resolve().name.lower()).strip("_") or "project"
    texts = {
        PROJECT_FILE: _PROJECT.format(name=name if name[0].isalpha() else f"project_{name}"),
        "jobs/customer_totals.sql": _SQL,
        "data/orders/2024-01-12.jsonl": _DATA,
        ".gitignore": ".strandline/\n",
    }
    return {file: text.encode() for file, text in texts.items()}


def _example(name: str) -> dict[str, bytes]:
    root = find_examples()
    names = sorted(path.parent.name for path in root.glob(f"*/{PROJECT_FILE}")) if root else []
    if root is None or name not in names:
        close = get_close_matches(name, names, 1)
        remedy = (
            f"Did you mean `{close[0]}`?"
            if close
            else f"Examples: {', '.join(names) or 'none in this installation'}."
        )
        raise CallError(f"There is no example `{name}`.", remedy=remedy, slug="unknown-example")
    files = (path for path in (root / name).rglob("*") if path.is_file())
    relative = ((path.relative_to(root / name), path) for path in files)
    return {
        str(short): path.read_bytes()
        for short, path in relative
        if not set(short.parts) & set(_LEFT_BY_RUNNING)
    }


def find_examples() -> Path | None:
    """Where the examples are: in the installed package, or beside its source."""
    packaged = Path(str(files("strandline"))) / "_examples"
    beside = Path(__file__).parents[3] / "examples"
    return next((folder for folder in (packaged, beside) if folder.is_dir()), None)
