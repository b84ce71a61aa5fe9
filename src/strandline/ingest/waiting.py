"""What of an inbox is new: posts that wait, posts that the table has, and files that were damaged. No Spark.

A position is the post's key, 1, and the place of the message in its body. A key may be used again once it is
forgotten: its next post has the part 2.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from strandline.lake.location import INBOX
from strandline.model.files import Content, FileRead
from strandline.model.project import HttpSource

from .inbox import REMEMBERED, Head, locate, open_post, remembers_all
from .splitting import split_document, split_lines
from .text import FileRefusedError, decode_line

_RECENTLY = REMEMBERED / 2
"""A row that came this long before a post, or later, is of that post: an earlier one would be remembered."""
Find = Callable[[Sequence[str]], Mapping[str, tuple[int, datetime]]]
"""By key that the table has: the highest part, and when a row of it came last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    path: str
    file: Path
    head: Head
    part: int = 1

    def read(self) -> Sequence[tuple[int, str]]:
        """(place, text) of each message."""
        _, body = open_post(self.file)
        return split_body(self.head.content, body)


@dataclass(slots=True)
class Waiting:
    """What was found in an inbox."""

    new: list[Post] = field(default_factory=list)
    had: list[str] = field(default_factory=list)
    """Paths of posts that the table has: their task died before they were put away."""
    refused: dict[str, FileRefusedError] = field(default_factory=dict)

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that may be put away once the new posts are recorded."""
        return (*(post.path for post in self.new), *self.had)

    @property
    def notes(self) -> tuple[str, ...]:
        had = len(self.had)
        return (f"{had} posts had been received, and were not put away: they are now",) if had else ()


def find_entry(source: HttpSource, files: Mapping[str, FileRead]) -> FileRead:
    """The one entry of an inbox among what the catalog knows of files: how much was received of it."""
    path = f"{INBOX}/{source.name}"
    return files.get(path) or FileRead(
        path=path, revision=1, bytes=0, rows=0, digest="", size=0, modified_ns=0
    )


def add_to_entry(entry: FileRead, posts: Sequence[Post], messages: int) -> FileRead:
    """The entry once these posts are received. Its time is that of the newest post."""
    size = entry.bytes + sum(post.file.stat().st_size for post in posts)
    newest = max((entry.modified_ns, *(post.head.posted_ns for post in posts)))
    return replace(entry, bytes=size, size=size, rows=entry.rows + messages, modified_ns=newest)


def look(
    source: HttpSource, inbox: Path, paths: Sequence[str], entry: FileRead, find: Find | None
) -> Waiting:
    """Tell the posts of these files apart. `find` looks into the table; None if there is no table.

    Only a post that may be in the table is looked for there: one from before the newest that was received, or
    one whose key may have been used and forgotten.
    """
    waiting, posts = Waiting(), []
    for path in paths:
        file = locate(inbox, path)
        try:
            head, _ = open_post(file)
        except FileNotFoundError:  # another run has received it since the plan was made
            continue
        except (ValueError, OSError) as error:
            waiting.refused[path] = FileRefusedError(
                f"{source.place}: `{file}`, which was posted to `{source.name}`, cannot be read: {error}.",
                remedy="Move the file out of the inbox, and have its facts posted again.",
                slug="file-unreadable",
            )
            continue
        posts.append(Post(path=path, file=file, head=head))
    nothing_forgotten = remembers_all(inbox)
    suspects = [
        post.head.key
        for post in posts
        if post.head.posted_ns <= entry.modified_ns or (post.head.chosen and not nothing_forgotten)
    ]
    received = find(suspects) if suspects and find else {}
    for post in sorted(posts, key=lambda post: (post.head.posted_ns, post.head.key)):
        part, came_at = received.get(post.head.key, (0, None))
        if came_at is not None and (nothing_forgotten or came_at >= _posted_at(post.head) - _RECENTLY):
            waiting.had.append(post.path)
        else:
            waiting.new.append(replace(post, part=part + 1))
    return waiting


def split_body(content: Content, body: bytes) -> Sequence[tuple[int, str]]:
    """(place, text) of each message of a body."""
    if content is Content.LINES:
        return list(split_lines([body], "utf-8", 1))
    return list(split_document(*decode_line(body, "utf-8")))


def _posted_at(head: Head) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=head.posted_ns // 1000)
