"""Failpoints do what the environment says at the named point and node. A misspelt one is an error."""

import threading
import time
from pathlib import Path

import pytest

from strandline.dispatch.failpoints import POINTS, FailpointError, hits, reach


def ask(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("STRANDLINE_FAILPOINTS", text)


def test_without_the_environment_a_point_only_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STRANDLINE_FAILPOINTS", raising=False)
    before = hits["before-write"]

    reach("before-write", "item")
    reach("before-write", "other")

    assert hits["before-write"] == before + 2


def test_a_point_that_acts_is_counted_too(monkeypatch: pytest.MonkeyPatch) -> None:
    ask(monkeypatch, "before-write=raise")
    before = hits["before-write"]

    with pytest.raises(FailpointError):
        reach("before-write", "item")

    assert hits["before-write"] == before + 1


def test_a_point_without_a_node_acts_at_every_node_and_at_no_other_point(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ask(monkeypatch, "after-write=raise")

    reach("before-write", "item")
    for node in ("item", "other"):
        with pytest.raises(FailpointError, match=f"failpoint after-write of {node}"):
            reach("after-write", node)


def test_a_point_of_one_node_acts_at_that_node_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    ask(monkeypatch, "after-write:item_facts=raise")

    reach("after-write", "item")
    reach("after-write", "item_facts_too")
    with pytest.raises(FailpointError):
        reach("after-write", "item_facts")


def test_several_points_may_be_asked_for_with_blanks_between(monkeypatch: pytest.MonkeyPatch) -> None:
    ask(monkeypatch, "before-write:item=raise, after-record=raise")

    with pytest.raises(FailpointError):
        reach("before-write", "item")
    with pytest.raises(FailpointError):
        reach("after-record", "other")


def test_a_numbered_point_acts_at_that_hit_of_its_node_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    before = hits["after-write:names"]
    ask(monkeypatch, f"after-write:names#{before + 2}=raise")

    reach("after-write", "names")
    reach("after-write", "item")
    with pytest.raises(FailpointError):
        reach("after-write", "names")
    reach("after-write", "names")

    assert hits["after-write:names"] == before + 3


def test_a_number_without_a_node_counts_the_hits_of_all_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    ask(monkeypatch, f"before-pin#{hits['before-pin'] + 2}=raise")

    reach("before-pin", "names")
    with pytest.raises(FailpointError):
        reach("before-pin", "item")
    reach("before-pin", "names")


def test_a_lost_answer_looks_like_a_lost_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    ask(monkeypatch, "after-write:item=lose")

    with pytest.raises(ConnectionError, match="the answer was lost"):
        reach("after-write", "item")


def test_only_a_commit_that_stands_has_an_answer_to_lose(monkeypatch: pytest.MonkeyPatch) -> None:
    ask(monkeypatch, "before-write=lose")

    with pytest.raises(ValueError, match="is not an action"):
        reach("before-write", "item")


@pytest.mark.parametrize("action", ["explode", "", "raised", "sleep:long"])
def test_an_unknown_action_is_an_error(monkeypatch: pytest.MonkeyPatch, action: str) -> None:
    ask(monkeypatch, f"before-write={action}")

    with pytest.raises(ValueError, match=r"use kill, raise, sleep|could not convert"):
        reach("before-write", "item")


@pytest.mark.parametrize("name", ["afterwrite", "after_write:item", "", "item"])
def test_a_point_that_does_not_exist_is_an_error_wherever_it_is_noticed(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    ask(monkeypatch, f"{name}=raise")

    with pytest.raises(ValueError, match="is not a point"):
        reach("before-lease", "whatever")


def test_only_declared_points_can_be_reached() -> None:
    with pytest.raises(AssertionError, match="in-the-middle"):
        reach("in-the-middle", "item")

    assert len(set(POINTS)) == len(POINTS)


def test_sleep_waits_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    ask(monkeypatch, "before-write=sleep:0.05")
    began = time.monotonic()

    reach("before-write", "item")

    assert time.monotonic() - began >= 0.05


def test_block_waits_for_its_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ask(monkeypatch, f"before-write=block:{tmp_path / 'go'}")
    passed = threading.Event()

    def wait() -> None:
        reach("before-write", "item")
        passed.set()

    waiting = threading.Thread(target=wait)
    waiting.start()

    assert not passed.wait(0.1)
    (tmp_path / "go").touch()
    assert passed.wait(5)
    waiting.join()
