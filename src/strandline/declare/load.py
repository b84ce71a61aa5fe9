"""Loads a project: the file becomes a `model.node.Project`, or a report of every mistake in it."""

from collections.abc import Mapping
from pathlib import Path

from strandline.model.errors import Mistake, ProjectError
from strandline.model.node import Project
from strandline.model.project import Calendar
from strandline.model.publishing import RowKey
from strandline.model.report import Report
from strandline.sql.known_columns import Known

from . import sections
from .loading import Draft, Loading
from .names import NameRegistry
from .order import sort_outputs
from .section import Section
from .serve_settings import check_key_sources
from .settings import Secrets, is_local, make_calendar, make_settings
from .shape import check_shape
from .yaml_lines import Document, load_yaml

PROJECT_FILE = "strandline.yaml"


def find_project_file(start: Path) -> Path:
    """`strandline.yaml` in the folder or the nearest one above it."""
    if start.is_file():
        return start.resolve()
    folder = start.resolve()
    for candidate in (folder, *folder.parents):
        if (candidate / PROJECT_FILE).is_file():
            return candidate / PROJECT_FILE
    what = f"there is no {PROJECT_FILE} in {folder} or any folder above it."
    remedy = "Change to the project's folder, or create one with `strandline init`."
    raise ProjectError([Mistake(slug="project-not-found", what=what, remedy=remedy)])


def load_project(start: Path, environ: Mapping[str, str]) -> Project:
    """The checked project that contains `start`. Raises one ProjectError that contains every mistake."""
    file = find_project_file(start)
    report = Report()
    try:
        raw = file.read_bytes()
    except OSError as error:
        what = f"{file} cannot be read: {error.strerror}."
        raise ProjectError(
            [Mistake(slug="project-not-found", what=what, remedy="Make the file readable.")]
        ) from error
    document = load_yaml(raw, file.name, report)
    project = (
        _load(document, file.parent, environ, sections.SECTIONS, report) if document is not None else None
    )
    report.raise_if_any()
    assert project is not None
    return project


def _load(
    document: Document,
    folder: Path,
    environ: Mapping[str, str],
    all_sections: tuple[Section, ...],
    report: Report,
) -> Project | None:
    shape = check_shape(document, all_sections, report)
    document, head = shape.document, shape.head
    secrets = Secrets(environ, document, report)
    calendar = make_calendar(head, document, report) if head else Calendar()
    settings = make_settings(head, folder, secrets, environ, document, report) if head else None
    loading = Loading(
        document=document,
        folder=folder,
        report=report,
        registry=NameRegistry(report, shape.broken),
        calendar=calendar,
        secrets=secrets,
        entries=shape.entries,
        written=shape.written,
        follow_ups=shape.follow_ups,
        lake_is_local=settings is None or is_local(settings.lake),
    )
    for section in all_sections:
        section.load(shape.entries[section.key], loading)
    if settings is not None:
        check_key_sources(settings.serve, loading.source_names, document, report)
    _build_drafts(loading)
    if len(report) or head is None or settings is None:
        return None
    return Project(
        name=head.project,
        folder=str(folder),
        calendar=calendar,
        settings=settings,
        nodes=tuple(loading.nodes),
        names=loading.names,
        tables=loading.tables,
        declared=_count(all_sections, loading),
        endpoints=loading.endpoints,
        row_keys={
            name: RowKey(columns=known.row_key, always_named=known.always_named, types=_find_types(known))
            for name, known in loading.known.items()
            if known.row_key and name in loading.tables
        },
    )


def _find_types(known: Known) -> tuple[tuple[str, str], ...]:
    """The types of all columns. Empty if some are known only once the table is there."""
    types = tuple((name, type_) for name, type_ in known.types.items() if type_ is not None)
    return types if known.complete and len(types) == len(known.types) else ()


def _build_drafts(loading: Loading) -> None:
    """Build the entries that may read each other, each one after what it reads."""
    drafts = {output: draft.settle(loading) for output, draft in loading.drafts.items()}
    for output in _sort(drafts, loading):
        drafts[output].build(loading)


def _sort(drafts: Mapping[str, Draft], loading: Loading) -> list[str]:
    """All outputs, each one after what it reads.

    A cycle is reported, unless it exists only because a misspelt input was read as another.
    """
    places = {output: draft.place for output, draft in drafts.items()}
    written = {o: tuple(n for n in d.reads if n not in d.guessed) for o, d in drafts.items()}
    order = sort_outputs(written, places, loading.report)
    loading.mark_broken(*(output for output in drafts if output not in order))
    meant = sort_outputs({o: d.reads for o, d in drafts.items()}, places, Report())
    order = meant if len(meant) == len(order) else order
    return [*order, *(output for output in drafts if output not in order)]


def _count(all_sections: tuple[Section, ...], loading: Loading) -> dict[str, int]:
    """The number of entries of each section, by the word that `check` uses for them."""
    counts = {
        section: sum(map(section.is_counted, loading.entries[section.key].values()))
        for section in all_sections
    }
    return {s.counted_as: count for s, count in counts.items() if count or s.counted_if_none}
