"""Spark is reported as lost only if nobody knows what it did.

A fence follows, and a wrong report would send people to the wrong place.
"""

from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from strandline.dispatch import workers
from strandline.lake import writes
from strandline.model.commits import Operation
from strandline.model.errors import OutsideError, WorkError
from strandline.spark.session import SPARK_LOST, answers

REFUSED = Py4JError(
    "An error occurred while calling o7.nope. Trace:\npy4j.Py4JException: Method nope([]) does not exist\n"
)
UNKNOWN = Py4JError("com.example.Nope does not exist in the JVM")
UNREACHED = ConnectionRefusedError("a web page that a job asks for")


def told_of(error: Exception) -> Exception:
    """The report of an error while a table is written."""
    with pytest.raises(Exception) as told, writes.explained("names"):  # noqa: PT011 any
        raise error
    return told.value


def raised_by_a_job(error: Exception) -> WorkError:
    wrapped = WorkError("job.py: `totals` raised it", slug="python-raised")
    wrapped.__cause__ = error
    return wrapped


@pytest.mark.parametrize(
    "error",
    [
        Py4JNetworkError("Answer from Java side is empty"),
        Py4JError("An error occurred while calling o7.save"),
    ],
    ids=str,
)
@pytest.mark.parametrize("wrap", [lambda e: e, raised_by_a_job], ids=["plain", "by a job"])
def test_a_call_whose_answer_never_came(
    error: Exception, wrap: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same holds for a Spark that still runs: it may be writing."""
    monkeypatch.setattr(writes, "answers", lambda: True)

    told = told_of(wrap(error))

    assert isinstance(told, OutsideError)
    assert told.slug == SPARK_LOST


@pytest.mark.parametrize(
    "error", [REFUSED, UNKNOWN, UNREACHED, raised_by_a_job(REFUSED), raised_by_a_job(UNREACHED)], ids=repr
)
def test_a_mistake_while_spark_answers_is_told_as_it_is(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writes, "answers", lambda: True)

    assert told_of(error) is error


@pytest.mark.parametrize("error", [UNKNOWN, UNREACHED, raised_by_a_job(UNREACHED)], ids=repr)
def test_the_same_while_spark_does_not_answer(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writes, "answers", lambda: False)

    told = told_of(error)

    assert isinstance(told, OutsideError)
    assert told.slug == SPARK_LOST


def refuse() -> int:
    raise ConnectionRefusedError


def gateway(*, ended: bool, reached: bool) -> SimpleNamespace:
    system = SimpleNamespace(nanoTime=(lambda: 1) if reached else refuse)
    jvm = SimpleNamespace(java=SimpleNamespace(lang=SimpleNamespace(System=system)))
    return SimpleNamespace(proc=SimpleNamespace(poll=lambda: -9 if ended else None), jvm=jvm)


@pytest.mark.parametrize(
    ("fake", "expected"),
    [
        (None, False),
        (gateway(ended=True, reached=True), False),
        (gateway(ended=False, reached=False), False),
        (gateway(ended=False, reached=True), True),
    ],
    ids=["never started", "its process ended", "out of reach", "there"],
)
def test_spark_answers_if_its_process_is_there_and_takes_calls(
    fake: object, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyspark.SparkContext._gateway", fake)

    assert answers() is expected


def test_a_fence_that_does_not_reach_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by the soak: it was reported as a failure of Spark, and the lease was given back."""
    monkeypatch.setattr(writes, "answers", lambda: False)

    def session() -> None:
        raise UNREACHED

    desk: Any = SimpleNamespace(session=session)
    node: Any = SimpleNamespace(name="names")
    with pytest.raises(OutsideError) as told:
        workers.commit_nothing(desk, node, None, Operation.FENCE)  # type: ignore[arg-type]

    assert told.value.slug == SPARK_LOST
