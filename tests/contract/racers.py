"""Functions that other processes run in the race tests of the catalog, importable by name."""

from strandline.catalog import acquire_lease, open_catalog, read_view, start_run
from strandline.model.errors import ConflictError


def acquire(address: str, holder: str) -> int | None:
    """The token, or None if another process was first."""
    catalog = open_catalog(address)
    try:
        return acquire_lease(catalog, "orders", holder, 60, 0, False).token
    except ConflictError:
        return None
    finally:
        catalog.close()


def open_and_use(address: str, run: str) -> int:
    """Number of nodes in a newly opened catalog, after writing to it."""
    catalog = open_catalog(address)
    try:
        start_run(catalog, run, "2024-01-01", "person")
        return len(read_view(catalog).nodes)
    finally:
        catalog.close()
