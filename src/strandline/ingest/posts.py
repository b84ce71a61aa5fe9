"""The task of an HTTP source: the messages that were posted and not received yet, with positions.

A position is the post's key, 1, and the place of the message in its body. A key may be used again once it is
forgotten: its next post has the part 2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.lake.location import INBOX
from strandline.lake.received import find_received
from strandline.lake.work import Prepared, Work, Write
from strandline.model.columns import INGESTED_AT, PAYLOAD, POSITION
from strandline.model.commits import Operation
from strandline.model.files import Content, FileRead
from strandline.model.project import HttpSource
from strandline.model.scope import NOTHING, Rows

from .inbox import REMEMBERED, Head, begin, locate, open_post, remembers_all
from .splitting import split_document, split_lines
from .staging import TextWriter
from .text import FileRefusedError, decode_line

_RECENTLY = REMEMBERED / 2
"""A row that came this long before a post, or later, is of that post: an earlier one is remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Post:
    path: str
    file: Path
    head: Head
    part: int = 1


@dataclass(slots=True)
class _Taken:
    """What was found in the inbox."""

    new: list[_Post] = field(default_factory=list)
    had: list[str] = field(default_factory=list)
    """Paths of posts that the table has: their task died before they were put away."""
    refused: dict[str, FileRefusedError] = field(default_factory=dict)


def receive_posts(work: Work, source: HttpSource) -> Prepared:
    inbox = work.lake.inbox(source.name)
    entry = f"{INBOX}/{source.name}"
    known = work.files.get(entry) or FileRead(
        path=entry, revision=1, bytes=0, rows=0, digest="", size=0, modified_ns=0
    )
    if work.own_version is None:
        begin(inbox)
    taken = _look(work, source, inbox, known)
    writer = TextWriter(f"{work.staging}/received/posts.parquet")
    count, size = 0, 0
    for post in taken.new:
        _, body = open_post(post.file)
        for place, text in split_body(post.head.content, body):
            writer.add(post.head.key, post.part, place, text)
            count += 1
        size += len(body)
    rows = writer.read(work.session)
    read = FileRead(
        path=entry,
        revision=1,
        bytes=known.bytes + size,
        rows=known.rows + count,
        digest="",
        size=known.size + size,
        modified_ns=max((known.modified_ns, *(post.head.posted_ns for post in taken.new))),
    )
    return _conclude(work, taken, rows, count, read)


def split_body(content: Content, body: bytes) -> Sequence[tuple[int, str]]:
    """(place, text) of each message of a body."""
    if content is Content.LINES:
        return list(split_lines([body], "utf-8", 1))
    return list(split_document(*decode_line(body, "utf-8")))


def _conclude(work: Work, taken: _Taken, rows: DataFrame, count: int, read: FileRead) -> Prepared:
    posts = (*(post.path for post in taken.new), *taken.had)
    notes = (
        (f"{len(taken.had)} posts had been received, and were not put away: they are now",)
        if taken.had
        else ()
    )
    refused = next(iter(taken.refused.values()), None)
    if not count and work.own_version is not None:
        return Prepared(
            write=None,
            live_rows=work.live_rows,
            files=(read,) if taken.new else (),
            posts=posts,
            notes=notes,
            refused=refused,
            scope=NOTHING,
        )
    messages = rows.select(F.col("text").alias(PAYLOAD), F.struct("name", "part", "place").alias(POSITION))
    return Prepared(
        write=Write(
            operation=Operation.APPEND if count else Operation.COUNTS,
            rows=messages.withColumn(INGESTED_AT, F.lit(work.now)),
            received=True,
        ),
        rows_read=count,
        rows_written=count,
        rows_full=work.live_rows + count,
        live_rows=work.live_rows + count,
        counts={"received": count},
        whole=False,
        files=(read,),
        posts=posts,
        scope=Rows(count=len(taken.new), of="posts"),
        notes=notes,
        refused=refused,
    )


def _look(work: Work, source: HttpSource, inbox: Path, known: FileRead) -> _Taken:
    """Tell posts that are new from those that the table has, and from files that were damaged.

    Only a post that may be in the table is looked for there: one from before the newest that was received,
    or one whose key may have been used and forgotten.
    """
    taken, posts = _Taken(), []
    for path in work.task.files:
        file = locate(inbox, path)
        try:
            head, _ = open_post(file)
        except FileNotFoundError:  # another run has received it since the plan was made
            continue
        except (ValueError, OSError) as error:
            taken.refused[path] = FileRefusedError(
                f"{source.place}: `{file}`, which was posted to `{source.name}`, cannot be read: {error}.",
                remedy="Move the file out of the inbox, and have its facts posted again.",
                slug="file-unreadable",
            )
            continue
        posts.append(_Post(path=path, file=file, head=head))
    suspects = [
        post.head.key
        for post in posts
        if post.head.posted_ns <= known.modified_ns or (post.head.chosen and not remembers_all(inbox))
    ]
    received: Mapping[str, tuple[int, datetime]] = {}
    if suspects and work.own_version is not None:
        received = find_received(work.lake.table(work.node.name), work.own_version, suspects)
    for post in sorted(posts, key=lambda post: (post.head.posted_ns, post.head.key)):
        part, came_at = received.get(post.head.key, (0, None))
        if came_at is not None and came_at >= _posted_at(post.head) - _RECENTLY:
            taken.had.append(post.path)
        else:
            taken.new.append(_Post(path=post.path, file=post.file, head=post.head, part=part + 1))
    return taken


def _posted_at(head: Head) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=head.posted_ns // 1000)
