"""Receive what is posted to an HTTP source: check it, and keep it in the lake's inbox. Starts no Spark."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Never

from strandline.catalog import audit, find_run, read_runs, read_tasks
from strandline.ingest.inbox import Head, is_waiting, keep, make_key
from strandline.ingest.splitting import split_json, split_lines
from strandline.lake.lock import unwritable
from strandline.lake.received import find_receiver
from strandline.model.errors import CallError
from strandline.model.files import Content
from strandline.model.plan import TaskResult
from strandline.model.report import suggest

from .clock import now
from .workspace import Workspace

MOST_BYTES = 16 << 20
MOST_MESSAGES = 100_000
MOST_DEPTH = 64
_RUNS_TO_SEARCH = 20
_KEY = re.compile(r"[\x21-\x7e]{1,200}")
_NESTING = re.compile(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """A body that was posted to a source."""

    source: str
    key: str | None
    """The `Idempotency-Key`. None if the poster gave none."""
    content: Content
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The answer to a post, once it is safe on disk."""

    source: str
    received: int
    """The number of messages in the body."""
    position: tuple[str, int, int]
    """Of the first message: the key, 1, and its place. The place is 0 if there is no message."""
    duplicate: bool
    """The same body was posted with this key before, and is received once."""


class TooLargeError(CallError):
    """A body with more bytes or messages than a post may have."""

    slug = "body-too-large"


class UnknownSourceError(CallError):
    """Nothing can be posted under this name."""

    slug = "unknown-source"


def receive(workspace: Workspace, posted: Posted, at: datetime | None = None) -> Receipt:
    """Keep a post. All of its messages are JSON, or nothing is kept."""
    require_source(workspace, posted.source)
    at = at or now()
    if posted.key is not None and not _KEY.fullmatch(posted.key):
        raise CallError(
            f"`Idempotency-Key` has {len(posted.key)} characters, and not 1 to 200 visible ones (ASCII).",
            remedy="Send a UUID, or the id of what is posted, or leave the header out.",
            slug="bad-idempotency-key",
        )
    if len(posted.body) > MOST_BYTES:
        raise TooLargeError(
            f"The body has {len(posted.body):,} bytes, and at most {MOST_BYTES:,} are taken.",
            remedy="Post it in parts, each with a key of its own.",
        )
    places = _check(posted.content, posted.body)
    head = Head(
        key=posted.key if posted.key is not None else make_key(at),
        chosen=posted.key is not None,
        content=posted.content,
        messages=len(places),
        first_place=places[0] if places else 0,
        digest=hashlib.sha256(posted.body).hexdigest(),
        posted_ns=int(at.timestamp() * 1_000_000) * 1000,
    )
    inbox = workspace.lake.inbox(posted.source)
    try:
        kept = keep(inbox, head, posted.body, at)
    except OSError as error:
        raise unwritable(inbox, error) from error
    return Receipt(
        source=posted.source,
        received=kept.head.messages,
        position=(kept.head.key, 1, kept.head.first_place),
        duplicate=kept.duplicate,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PostedBy:
    """What somebody has posted to a source over some time."""

    source: str
    actor: str
    posts: int
    messages: int

    def joined(self, more: "PostedBy") -> "PostedBy":
        return replace(self, posts=self.posts + more.posts, messages=self.messages + more.messages)


def record_poster(workspace: Workspace, posted: PostedBy) -> None:
    """Write into the audit log who has posted. One line stands for many posts, so that it stays small."""
    audit(workspace.catalog, "facts", asdict(posted))


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """The run that has received a post, and the last attempt of each of its tasks."""

    run: str
    tasks: tuple[TaskResult, ...]


def still_waits(workspace: Workspace, receipt: Receipt) -> bool:
    """Whether no run has received a post yet."""
    return is_waiting(workspace.lake.inbox(receipt.source), receipt.position[0])


def find_published(workspace: Workspace, receipt: Receipt) -> Published | None:
    """The run that has received a post, once that run has ended. None if the post still waits."""
    if still_waits(workspace, receipt):
        return None
    receiver = find_receiver(workspace.lake.table(receipt.source), receipt.position[0])
    known = find_run(workspace.catalog, receiver) if receiver else None
    # A post without messages has no rows. Of a run that the catalog has lost, a later one is as good.
    for run in (known,) if known else read_runs(workspace.catalog, _RUNS_TO_SEARCH):
        tasks = {task.node: task for task in read_tasks(workspace.catalog, run.run)}
        if run.ended_at is not None and receipt.source in tasks:
            return Published(run=run.run, tasks=tuple(tasks.values()))
    return None


def require_source(workspace: Workspace, name: str) -> None:
    """Refuse a name that is not an HTTP source."""
    sources = sorted(node.name for node in workspace.project.nodes if node.traits.inbox)
    if name not in sources:
        raise UnknownSourceError(
            f"`{name}` is not an HTTP source of this project.",
            remedy=suggest(name, sources, "HTTP sources")
            if sources
            else "Declare one: `sources: {pushed: {http: {}}}`.",
        )


def _check(content: Content, body: bytes) -> list[int]:
    """The places of the messages of a body, all of which are JSON."""
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise _not_json(f"byte {error.start + 1} is not UTF-8") from error
    places: list[int] = []
    try:
        for place, message in _split(content, text, body):
            _require_shallow(message)
            if len(places) == MOST_MESSAGES:
                raise TooLargeError(
                    f"The body has more than {MOST_MESSAGES:,} messages.",
                    remedy="Post it in parts, each with a key of its own.",
                )
            places.append(place)
    except RecursionError as error:
        raise _too_deep() from error
    except json.JSONDecodeError as error:
        raise _not_json(f"line {error.lineno}, column {error.colno}: {error.msg}") from error
    except ValueError as error:
        raise _not_json(str(error)) from error
    return places


def _split(content: Content, text: str, body: bytes) -> Iterable[tuple[int, str]]:
    return _lines(body) if content is Content.LINES else split_json(text, _STRICT)


def _lines(body: bytes) -> Iterator[tuple[int, str]]:
    for place, line in split_lines([body], "utf-8", 1):
        try:
            _STRICT.decode(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"line {place}: {error.msg}") from error
        yield place, line


def _refuse_constant(name: str) -> Never:
    raise ValueError(f"`{name}` is not a JSON value")


_STRICT = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_refuse_constant)


def _require_shallow(message: str) -> None:
    if message.count("[") + message.count("{") <= MOST_DEPTH:
        return
    depth = 0
    for token in _NESTING.finditer(message):
        if token[0] in "[{":
            depth += 1
            if depth > MOST_DEPTH:
                raise _too_deep()
        elif token[0] in "]}":
            depth -= 1


def _too_deep() -> CallError:
    return CallError(
        f"A message is nested more than {MOST_DEPTH} deep.",
        remedy="Post flatter messages, or the nested part as text.",
        slug="body-too-deep",
    )


def _not_json(why: str) -> CallError:
    return CallError(
        f"The body is not JSON: {why}. Nothing of it was received.",
        remedy="Post one JSON message, an array of messages, or lines of JSON as `application/x-ndjson`.",
        slug="not-json",
    )
