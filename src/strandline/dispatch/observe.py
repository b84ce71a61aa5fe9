"""Observe everything once, before planning: catalog, tables' logs, sources' listings. Starts no Spark."""

from strandline.catalog import Catalog, read_view
from strandline.ingest.inbox import list_inbox
from strandline.ingest.listing import list_files
from strandline.lake.dates import read_dates
from strandline.lake.location import Lake
from strandline.lake.ranges import read_ranges
from strandline.lake.state import find_state
from strandline.model.catalog_records import CatalogView
from strandline.model.commits import TableState
from strandline.model.files import FileSeen
from strandline.model.node import Lookup, Project
from strandline.plan import Observed


def observe(project: Project, catalog: Catalog, lake: Lake) -> Observed:
    view = read_view(catalog)
    tables: dict[str, TableState] = {}
    for node in project.nodes:
        state = find_state(lake, node.name, _oldest_cursor(project, view, node.name))
        if state is not None:
            tables[node.name] = state
    listings = list_received(project, lake, frozenset(tables))
    dates = {
        node.name: read_dates(lake, of.dataset, tables[of.dataset].version, of.column)
        for node in project.nodes
        if (of := node.traits.business_dates) is not None and of.dataset in tables and node.name in tables
    }
    watched: dict[str, set[str]] = {}
    for node in project.nodes:
        if node.traits.own_clock is not None and node.name in tables:
            for border in node.traits.own_clock.borders:
                watched.setdefault(border.dataset, set()).add(border.column)
    ranges = {
        (name, column): files
        for name, columns in watched.items()
        if name in tables
        for column, files in read_ranges(lake, name, tables[name].version, columns).items()
    }
    return Observed(view=view, tables=tables, listings=listings, business_dates=dates, ranges=ranges)


def list_received(project: Project, lake: Lake, built: frozenset[str]) -> dict[str, tuple[FileSeen, ...]]:
    """By source: its files as they are now.

    The inbox of a source whose table is not `built` also lists what was received before.
    """
    return {
        node.name: list_inbox(lake.inbox(node.name), again=node.name not in built)
        if node.traits.inbox
        else list_files(node.traits.pattern, project.folder)
        for node in project.nodes
        if node.traits.receives
    }


def _oldest_cursor(project: Project, view: CatalogView, dataset: str) -> int | None:
    """Commits of a table matter after this version: the oldest cursor on it, or what was last recorded."""
    record = view.nodes.get(dataset)
    if record is None:
        return None
    versions = [record.table_version]
    for reader in project.readers_of(dataset):
        if any(i.dataset == dataset and isinstance(i.relation, Lookup) for i in reader.inputs):
            return None  # a lookup's last row-changing commit may lie anywhere
        reading = view.nodes.get(reader.name)
        if reading and dataset in reading.cursors:
            versions.append(reading.cursors[dataset].version)
    return min(versions)
