"""What is posted is JSON as a whole, or nothing of it is kept."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.app.planning import RunRequest, make_plan
from strandline.app.receiving import MOST_BYTES, MOST_MESSAGES, Posted, Receipt, receive
from strandline.app.workspace import Workspace, open_workspace
from strandline.ingest.inbox import list_inbox
from strandline.model.errors import StrandlineError
from strandline.model.files import Content

YAML = """
project: shop
sources:
  pushed: {http: {}}
  events: {files: "d/*.jsonl"}
datasets:
  item:
    from: pushed
    columns: {id: id, n: {path: n, type: bigint}}
    record_set: {key: [id], order_by: [n]}
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    (tmp_path / "strandline.yaml").write_text(YAML)
    with open_workspace(tmp_path, {}) as opened:
        yield opened


def post(
    workspace: Workspace,
    body: bytes,
    key: str | None = "k",
    content: Content = Content.JSON,
    to: str = "pushed",
) -> Receipt:
    return receive(workspace, Posted(source=to, key=key, content=content, body=body))


def waiting(workspace: Workspace) -> int:
    return len(list_inbox(workspace.lake.inbox("pushed")))


@pytest.mark.parametrize(
    ("body", "content", "received", "place"),
    [
        (b'{"id": 1}', Content.JSON, 1, 1),
        (b" [1, 2, 3] ", Content.JSON, 3, 1),
        (b"[]", Content.JSON, 0, 0),
        (b'\n{"id": 1}\n\n{"id": 2}', Content.LINES, 2, 2),
        (b"", Content.LINES, 0, 0),
        (("[" * 64 + "]" * 64).encode(), Content.LINES, 1, 1),
        (b'"' + b"[" * 100 + b'"', Content.JSON, 1, 1),
    ],
)
def test_a_post_is_answered_with_its_count_and_its_first_position(
    workspace: Workspace, body: bytes, content: Content, received: int, place: int
) -> None:
    receipt = post(workspace, body, content=content)

    assert receipt == Receipt(source="pushed", received=received, position=("k", 1, place), duplicate=False)
    assert post(workspace, body, content=content).duplicate
    assert waiting(workspace) == 1


@pytest.mark.parametrize(
    ("slug", "body", "key", "content", "mended"),
    [
        ("not-json", b"{", "k", Content.JSON, b"{}"),
        ("not-json", b"", "k", Content.JSON, b"{}"),
        ("not-json", b'{"id": NaN}', "k", Content.JSON, b'{"id": null}'),
        ("not-json", b'[1, {"id": -Infinity}]', "k", Content.JSON, b"[1]"),
        ("not-json", b'{"id": "\xff"}', "k", Content.JSON, b'{"id": "x"}'),
        ("not-json", b"\xef\xbb\xbf{}", "k", Content.JSON, b"{}"),
        ("not-json", b"{}\n{", "k", Content.LINES, b"{}\n{}"),
        ("not-json", b"{}\n{}", "k", Content.JSON, b"[{},{}]"),
        ("body-too-deep", b"[" * 66 + b"]" * 66, "k", Content.JSON, b"[1]"),
        ("body-too-deep", b"[" * 100_000, "k", Content.LINES, b"[1]"),
        ("body-too-large", b"[" + b"1," * MOST_MESSAGES + b"1]", "k", Content.JSON, b"[1]"),
        ("body-too-large", b'"' + b"x" * (MOST_BYTES - 1) + b'"', "k", Content.JSON, b'"x"'),
    ],
)
def test_a_body_that_is_not_taken_leaves_nothing_and_its_key_free(
    workspace: Workspace, slug: str, body: bytes, key: str, content: Content, mended: bytes
) -> None:
    with pytest.raises(StrandlineError) as refused:
        post(workspace, body, key, content)

    assert (refused.value.slug, waiting(workspace)) == (slug, 0)
    assert not post(workspace, mended, key, content).duplicate


def test_the_largest_body_is_taken(workspace: Workspace) -> None:
    assert post(workspace, b'"' + b"x" * (MOST_BYTES - 2) + b'"', "a").received == 1
    assert post(workspace, b"[" + b"1," * (MOST_MESSAGES - 1) + b"1]", "b").received == MOST_MESSAGES


@pytest.mark.parametrize("key", ["", "x" * 201, "a b", "a\tb", "é", "a\n"])
def test_a_key_has_1_to_200_visible_characters(workspace: Workspace, key: str) -> None:
    with pytest.raises(StrandlineError) as refused:
        post(workspace, b"1", key)

    assert refused.value.slug == "bad-idempotency-key"
    assert post(workspace, b"1", "11d7cb34-54cf-4f37-8a53-5b2f1a6f5b0e").received == 1
    assert post(workspace, b"1", None).received == 1


@pytest.mark.parametrize(
    "key", ["x" * 200, "../../etc/passwd", ".", "_", "a/b", '"quoted"', "%00", "~!@#$^&*()"]
)
def test_any_visible_characters_are_a_key(workspace: Workspace, key: str) -> None:
    assert post(workspace, b"1", key).position == (key, 1, 1)
    assert post(workspace, b"1", key).duplicate


def test_posts_without_a_key_are_never_duplicates(workspace: Workspace) -> None:
    assert [post(workspace, b"1", None).duplicate for _ in range(20)] == [False] * 20
    assert waiting(workspace) == 20


@pytest.mark.parametrize("name", ["item", "events", "pushd", "nothing"])
def test_only_an_http_source_is_posted_to(workspace: Workspace, name: str) -> None:
    with pytest.raises(StrandlineError) as refused:
        post(workspace, b"1", to=name)

    assert refused.value.slug == "unknown-source"
    assert post(workspace, b"1", to="pushed").received == 1


def test_a_project_without_http_source_is_told_how_to_declare_one(tmp_path: Path) -> None:
    (tmp_path / "strandline.yaml").write_text(YAML.replace("{http: {}}", "{files: 'p/*.jsonl'}"))
    with open_workspace(tmp_path, {}) as workspace, pytest.raises(StrandlineError) as refused:
        post(workspace, b"1")

    assert "sources: {pushed: {http: {}}}" in refused.value.remedy


def test_a_plan_sees_what_was_posted_without_spark(workspace: Workspace) -> None:
    nothing = make_plan(workspace, RunRequest())[0].tasks[0]
    post(workspace, b"[1, 2]", "a")
    post(workspace, b"3", "b")

    task = make_plan(workspace, RunRequest())[0].tasks[0]

    assert (nothing.node, nothing.reason) == ("pushed", "nothing was posted yet: an empty table")
    assert (task.node, task.reason, len(task.files)) == ("pushed", "2 posts wait in the inbox", 2)
