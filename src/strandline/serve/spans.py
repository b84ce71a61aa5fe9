"""Spans of work: one for each run and each of its tasks. Without a tracer they cost nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from opentelemetry import trace
from opentelemetry.trace import Span

from strandline.app.watching import Watcher
from strandline.model.plan import Task, TaskResult

tracer = trace.get_tracer("strandline.work")


@contextmanager
def traced(verb: str, request: str, watcher: Watcher) -> Iterator[Watcher]:
    """A span for one piece of work. The watcher that it gives adds one for each task.

    `request` is empty for a run that nobody asked for. Tasks may end in any thread.
    """
    with tracer.start_as_current_span(verb, attributes={"strandline.request": request}) as span:
        parent, open_spans = trace.set_span_in_context(span), dict[str, Span]()

        def started(task: Task) -> None:
            attributes = {"strandline.node": task.node, "strandline.strategy": str(task.strategy)}
            open_spans[task.node] = tracer.start_span("task", parent, attributes=attributes)
            watcher.started(task)

        def ended(result: TaskResult) -> None:
            own = open_spans.pop(result.node, None)
            if own is not None:
                own.set_attribute("strandline.status", str(result.status))
                own.set_attribute("strandline.rows_written", result.rows_written)
                own.end()
            watcher.ended(result)

        try:
            yield replace(watcher, started=started, ended=ended)
        finally:
            for left in open_spans.values():
                left.end()
