"""`/healthz`, `/readyz` and `/metrics`."""

import time

from starlette.responses import Response

from strandline.app.figures import Figures, read_figures
from strandline.app.workspace import Workspace
from strandline.model.serving import Role
from strandline.pages.prometheus import Metric, Sample, make_timeline_metrics, render_metrics

from .answers import answer
from .bodies import check_parameters
from .declared import Call, Route
from .threads import in_thread

_TEXT = "text/plain; version=0.0.4; charset=utf-8"
_KEPT_SECONDS = 2.0
"""Figures that are younger are told again, so that several monitoring systems cost one reading."""


async def answer_health(_: Call) -> Response:
    return answer("health", {"alive": True})


async def answer_ready(call: Call) -> Response:
    """Ready, or what is missing. Anyone may ask, so what exactly is wrong is told by `/v1/status`."""
    served, trouble = call.served, call.served.work.state().trouble
    missing = [served.missing] if served.missing else []
    if trouble is not None:
        missing.append(f"No work can be done: {trouble.slug}.")
    document = {"ready": not missing, "missing": missing, "project_error": bool(served.project_error)}
    return answer("ready", document, 503 if missing else 200)


class MetricsRoute:
    """Tells what the server counted, and what the catalog and the lake tell."""

    def __init__(self) -> None:
        self._read_at = 0.0
        self._figures: tuple[Workspace, Figures] | None = None

    async def answer(self, call: Call) -> Response:
        check_parameters(call)
        figures = await self._read(call.served.workspace)
        metrics = (*make_timeline_metrics(figures.timelines), *_make(figures), *call.served.measures.read())
        return Response(render_metrics(metrics) + "\n", media_type=_TEXT)

    async def _read(self, workspace: Workspace) -> Figures:
        known = self._figures
        if known and known[0] is workspace and time.monotonic() - self._read_at < _KEPT_SECONDS:
            return known[1]
        figures = await in_thread(lambda: read_figures(workspace))
        self._figures, self._read_at = (workspace, figures), time.monotonic()
        return figures


def _make(figures: Figures) -> tuple[Metric, ...]:
    return (
        Metric(
            name="behind_seconds",
            type="gauge",
            help="Since when a dataset has not been fresh; 0 if it is.",
            samples=tuple(
                Sample(value=seconds, labels={"dataset": dataset})
                for dataset, seconds in figures.behind_seconds.items()
            ),
        ),
        Metric(
            name="quarantined_rows",
            type="gauge",
            help="Rows in quarantine.",
            samples=tuple(
                Sample(value=rows, labels={"dataset": dataset})
                for dataset, rows in figures.quarantined_rows.items()
            ),
        ),
        Metric(
            name="deliveries",
            type="gauge",
            help="Deliveries that are kept, by their status.",
            samples=tuple(
                Sample(value=count, labels={"endpoint": endpoint, "status": status})
                for (endpoint, status), count in figures.deliveries.items()
            ),
        ),
        Metric(
            name="oldest_delivery_seconds",
            type="gauge",
            help="The age of the oldest delivery that waits; 0 if none does.",
            samples=tuple(
                Sample(value=seconds, labels={"endpoint": endpoint})
                for endpoint, seconds in figures.oldest_seconds.items()
            ),
        ),
    )


def make_health_routes() -> tuple[Route, ...]:
    return (
        Route(method="GET", path="/healthz", role=None, answer=answer_health),
        Route(method="GET", path="/readyz", role=None, answer=answer_ready),
        Route(method="GET", path="/metrics", role=Role.READ, answer=MetricsRoute().answer),
    )
