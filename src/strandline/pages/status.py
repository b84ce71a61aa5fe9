"""The status of a project as one HTML file: a drawing of the datasets, and tables.

The page loads nothing from outside and needs no script.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from importlib.resources import files

from strandline.model.json_values import instant_text
from strandline.model.statuses import DatasetStatus, HeldWork, InvalidationStatus, Overview
from strandline.pages.wording import describe_held, describe_keys, moment, plural

from .dates import show_timeline
from .drawing import anchor, draw_statuses, state_class
from .markup import Markup, element, join
from .strip import show_partitions

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
LONG_NAME = 30
"""A name of at least this length may be broken anywhere."""


def render_html(overview: Overview) -> str:
    """The whole page. Statuses come with inputs before readers."""
    project_name, statuses = overview.project, overview.statuses
    partitioned = [s for s in statuses if s.partitioned_by or s.partitions]
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{project_name}: status"),
        element("link", rel="icon", href="data:,"),
        element("style", Markup(files("strandline.cli").joinpath("status_page.css").read_text("utf-8"))),
    )
    body = element(
        "body",
        element("a", "To the table of datasets", href="#datasets", class_="skip"),
        _show_header(project_name, statuses, overview.made_at),
        element(
            "main",
            _section("held", "Waits for a backfill", *_show_held(overview.held))
            if overview.held.nodes
            else "",
            _section("drawing", "What reads what", *_show_drawing(statuses)),
            _section("datasets", "Datasets", *_show_table(statuses)),
            _section("timelines", "Timelines", *map(show_timeline, overview.timelines))
            if overview.timelines
            else "",
            _section("partitions", "Partitions", *map(show_partitions, partitioned)) if partitioned else "",
            _section(
                "invalidations",
                "Invalidations still to be processed",
                *_show_invalidations(overview.invalidations, statuses),
            ),
        ),
    )
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}"


def _show_header(project_name: str, statuses: Sequence[DatasetStatus], made_at: datetime) -> Markup:
    number_by_state = Counter(s.state for s in statuses)
    chips = [
        element("li", element("b", f"{number:,}"), f" {state}", class_=f"chip {state_class(state)}")
        for state, number in number_by_state.most_common()
    ]
    return element(
        "header",
        element("h1", project_name, element("span", " status")),
        element("p", "Made ", _time(made_at), ". All times are UTC."),
        element("ul", element("li", plural(len(statuses), "dataset"), class_="chip"), *chips, class_="chips"),
    )


def _section(name: str, title: str, *content: str) -> Markup:
    return element(
        "section",
        element("h2", title, id=f"{name}-title"),
        *content,
        id=name,
        aria_labelledby=f"{name}-title",
    )


def _scroll(name: str, content: Markup) -> Markup:
    """Content that is wider than the screen scrolls on its own, with the keyboard too."""
    return element(
        "div", content, class_="scroll", role="region", aria_labelledby=f"{name}-title", tabindex=0
    )


def _time(at: datetime | None) -> Markup:
    return element("time", moment(at), datetime=instant_text(at)) if at else Markup()


def _show_drawing(statuses: Sequence[DatasetStatus]) -> list[Markup]:
    if not statuses:
        return [element("p", "There is no dataset.")]
    hint = (
        "A dataset is to the right of what it reads, with its state and since when, its kind and its rows."
        " Choose one to go to its row"
    )
    return [
        element("p", f"{hint} in the table, which says the same and why."),
        _scroll("drawing", draw_statuses(statuses)),
    ]


def _show_table(statuses: Sequence[DatasetStatus]) -> list[Markup]:
    columns = ("dataset", "kind", "state", "since", "version", "rows", "reason", "counts", "reads")
    head = element(
        "tr",
        *(
            element("th", name, scope="col", class_="number" if name in ("version", "rows") else None)
            for name in columns
        ),
    )
    known = {s.dataset for s in statuses}
    rows = [_show_row(s, known) for s in statuses]
    return [
        _scroll(
            "datasets", element("table", element("thead", head), element("tbody", *rows), class_="datasets")
        )
    ]


def _show_held(held: HeldWork) -> list[Markup]:
    items = [
        element(
            "li",
            element("span", node.state, class_=f"chip {state_class(node.state)}"),
            f" {describe_held(node)}",
        )
        for node in held.nodes
    ]
    return [element("p", "This settles all of it: ", element("code", held.command)), element("ul", *items)]


def _show_row(status: DatasetStatus, known: set[str]) -> Markup:
    reads = [element("li", _link(name) if name in known else name) for name in status.inputs]
    counts = [
        element("li", f"{number:,} {name.replace('_', ' ')}")
        for name, number in status.counts.items()
        if number
    ]
    if status.keys:
        counts += [element("li", part) for part in describe_keys(status.keys).split("; ")]
    if status.partitions:
        link = element(
            "a", plural(len(status.partitions), "partition"), href=f"#{anchor('partitions', status.dataset)}"
        )
        counts.append(element("li", link))
    return element(
        "tr",
        element(
            "th", status.dataset, scope="row", class_="long" if len(status.dataset) > LONG_NAME else None
        ),
        element("td", str(status.kind)),
        element("td", element("span", status.state, class_=f"chip {state_class(status.state)}")),
        element("td", _time(status.since), class_="when"),
        element("td", "" if status.table_version is None else str(status.table_version), class_="number"),
        element("td", f"{status.rows:,}", class_="number"),
        element("td", status.reason, class_="reason"),
        element("td", element("ul", *counts) if counts else ""),
        element("td", element("ul", *reads) if reads else ""),
        id=anchor("dataset", status.dataset),
    )


def _link(name: str) -> Markup:
    return element("a", name, href=f"#{anchor('dataset', name)}")


def _show_invalidations(
    invalidations: Sequence[InvalidationStatus], statuses: Sequence[DatasetStatus]
) -> list[Markup]:
    """A table for each dataset that has some."""
    if not invalidations:
        return [element("p", "None: every job has processed every invalidation of what it reads.")]
    known = {s.dataset for s in statuses}
    shown = []
    for dataset in dict.fromkeys(i.dataset for i in invalidations):
        own = [i for i in invalidations if i.dataset == dataset]
        title = anchor("invalidations", dataset)
        columns = ("recorded", "covers", "reason", "version", "jobs")
        head = element(
            "tr",
            *(
                element("th", name, scope="col", class_="number" if name == "version" else None)
                for name in columns
            ),
        )
        table = element(
            "table", element("thead", head), element("tbody", *(_show_invalidation(i, known) for i in own))
        )
        heading = element(
            "h3",
            _link(dataset) if dataset in known else dataset,
            f": {plural(len(own), 'invalidation')}",
            id=f"{title}-title",
        )
        shown.append(join(heading, _scroll(title, table)))
    return shown


def _show_invalidation(invalidation: InvalidationStatus, known: set[str]) -> Markup:
    jobs = [
        element(
            "li",
            _link(job) if job in known else job,
            ": ",
            join("processed ", _time(at)) if at else element("b", "still to process"),
        )
        for job, at in invalidation.processed_at_by_job.items()
    ]
    return element(
        "tr",
        element("td", _time(invalidation.created_at), class_="when"),
        element("td", invalidation.scope),
        element("td", invalidation.reason, class_="reason"),
        element("td", str(invalidation.table_version), class_="number"),
        element("td", element("ul", *jobs)),
    )
