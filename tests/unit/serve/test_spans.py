"""Spans around work and its tasks, as a tracer of OpenTelemetry sees them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, SpanContext

from strandline.app.watching import Watcher
from strandline.model.plan import Cause, Status, Strategy, Task, conclude
from strandline.model.project import Snapshot
from strandline.model.scope import NOTHING
from strandline.serve import spans

TASK = Task(
    node="orders",
    kind=Snapshot.kind,
    cause=Cause.NEW_INPUT,
    strategy=Strategy.RECOMPUTE,
    reason="new rows",
    scope=NOTHING,
)


class Recorded(NonRecordingSpan):
    def __init__(self, name: str, parent: object, attributes: dict[str, Any]) -> None:
        super().__init__(SpanContext(1, 1, is_remote=False))
        self.name, self.parent, self.attributes, self.ended = name, parent, attributes, False

    def set_attribute(self, key: str, value: Any) -> None:
        self.attributes[key] = value

    def end(self, end_time: int | None = None) -> None:
        self.ended = True


class Tracer:
    """The part of a tracer that is used here, which keeps every span."""

    def __init__(self) -> None:
        self.spans: list[Recorded] = []

    def start_span(self, name: str, context: Any = None, attributes: Any = None) -> Recorded:
        parent = trace.get_current_span(context) if context else None
        self.spans.append(Recorded(name, parent, dict(attributes or {})))
        return self.spans[-1]

    @contextmanager
    def start_as_current_span(self, name: str, attributes: Any = None) -> Iterator[Recorded]:
        span = self.start_span(name, attributes=attributes)
        try:
            yield span
        finally:
            span.end()


@pytest.fixture
def tracer(monkeypatch: pytest.MonkeyPatch) -> Tracer:
    made = Tracer()
    monkeypatch.setattr(spans, "tracer", made)
    return made


def test_a_task_has_a_span_inside_that_of_its_work(tracer: Tracer) -> None:
    told: list[object] = []

    with spans.traced("run", "r-1", Watcher(started=told.append, ended=told.append)) as watcher:
        watcher.started(TASK)
        watcher.ended(conclude(TASK, Status.DONE))

    run, task = tracer.spans
    assert (run.name, run.attributes, run.ended) == ("run", {"strandline.request": "r-1"}, True)
    assert (task.name, task.parent, task.ended) == ("task", run, True)
    assert task.attributes["strandline.node"] == "orders"
    assert task.attributes["strandline.status"] == "done"
    assert told == [TASK, conclude(TASK, Status.DONE)]


def test_a_task_that_never_ended_leaves_no_open_span(tracer: Tracer) -> None:
    def interrupted() -> None:
        with spans.traced("run", "", Watcher()) as watcher:
            watcher.started(TASK)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()

    assert [span.ended for span in tracer.spans] == [True, True]
