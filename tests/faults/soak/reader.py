"""A reader that queries all the time, and what it may rely on at any moment."""

import threading
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from strandline.app.query import query
from strandline.app.reading import open_reading
from strandline.model.errors import CallError

ONCE = {
    "item_lines": "_source_position",
    "rate_lines": "_source_position",
    "block_lines": "_source_position",
    "item_facts": "_source_position",
    "item_quarantine": "_source_position",
    "rate_facts": "_source_position",
    "block": "hash",
    "item": "id",
    "rate": "kind",
    "hot": "number",
    "worth": "kind",
    "sizes": "items",
    "shelves": "id",
    "told": "kind, price",
    "alerts": "hash",
}
"""By dataset: columns in which no two rows are ever equal (L3, L5, L8, L10)."""
PUBLISHED_ONCE = {"dear_items": "id", "item_changes": "version, position", "dear": "event_id"}
"""The same for what is published."""
PAUSE = 1.0
"""Seconds between two queries. The reader must not slow the run down."""


class Reader:
    """Queries in a thread until it is stopped. Broken promises are in `broken`."""

    def __init__(self, folder: Path, may_read: AbstractContextManager[object] | None = None) -> None:
        """`may_read`: a lock, held by whoever breaks the project on purpose."""
        self._folder = folder
        self._may_read = may_read or nullcontext()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, name="reader", daemon=True)
        self.queries = 0
        self.broken: list[str] = []

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _read(self) -> None:
        while not self._stop.is_set():
            for dataset in (*ONCE, *PUBLISHED_ONCE):
                if self._stop.wait(PAUSE):
                    return
                try:
                    with self._may_read:
                        self.broken += find_twice(self._folder, dataset)
                except Exception as error:  # noqa: BLE001 a query that fails is what this looks for
                    self.broken.append(
                        f"a query of {dataset} at {time.monotonic():.1f} failed: "
                        f"{type(error).__name__} {error}"
                    )
                self.queries += 1


def find_twice(folder: Path, dataset: str) -> list[str]:
    """Rows that occur twice although they must be unique."""
    columns = (ONCE | PUBLISHED_ONCE)[dataset]
    sql = f"select {columns}, count(*) as n from {dataset} group by {columns} having count(*) > 1"
    try:
        answer = query(open_reading(folder), sql)
    except CallError as error:
        if error.slug == "never-built":
            return []
        raise
    return [f"{dataset} at {dict(answer.version)}: twice {row}" for row in answer.rows]
