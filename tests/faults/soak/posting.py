"""Posts what the feeder would write into files: each body with a key, again until it is answered."""

import random
import time
from collections.abc import Callable, Iterable
from http.client import HTTPException
from pathlib import Path

from tests.served_process import Answer, ServedProcess

from .feed import Feeder

LINES = {"content-type": "application/x-ndjson"}
_PAUSE = 0.1


class Poster(Feeder):
    """Posts until it is answered 202. A post whose answer was lost is sent again with the same key."""

    part = 1

    def __init__(self, folder: Path, chance: random.Random, find: Callable[[], ServedProcess | None]) -> None:
        self._find = find
        self.answered = self.unanswered = self.duplicates = self.refused = 0
        self.broken: list[str] = []
        super().__init__(folder, chance)

    def post_broken(self) -> None:
        """A body with a line that is not JSON is refused whole."""
        lines = [*self._some_items(), '{"id": "never", "price": 1, "at"']
        answer = self._post("items/broken", _body(lines))
        if answer is None:
            return
        self.refused += 1
        if answer.status != 400 or answer.document["error"]["slug"] != "not-json":
            self.broken.append(f"a body that is not JSON was answered {answer.status} {answer.body[:200]!r}")

    def _broken(self) -> str:
        """What is not JSON is refused by the server, so it is posted apart."""
        while (line := super()._broken())[-1:] != "}":
            pass
        return line

    def _write(self, path: str, lines: Iterable[str]) -> None:
        """The path is the key. A file that grows or repeats another one does not get here."""
        sent, tries = list(lines), 0
        answer: Answer | None = None
        while answer is None or answer.status in (429, 503):
            if tries:
                time.sleep(_PAUSE)
            tries += 1
            answer = self._post(path, _body(sent))
            self.unanswered += answer is None  # killed before it answered, or after it kept the post
        self.answered += 1
        said = answer.document
        self.duplicates += said.get("duplicate", False)
        expected = {"received": len(sent), "position": [path, 1, 1]}
        if answer.status != 202 or any(said.get(name) != value for name, value in expected.items()):
            self.broken.append(f"the post {path} was answered {answer.status} {answer.body[:300]!r}")
        if said.get("duplicate") and tries == 1 and path not in self._repeated:
            self.broken.append(f"the post {path} was sent once and is called a duplicate")

    def _post(self, key: str, body: bytes) -> Answer | None:
        """None if no answer came. Nobody may know then whether it was received."""
        server = self._find()
        source = f"{key.partition('/')[0].removesuffix('s')}_lines"
        try:
            if server is not None:
                return server.call(f"/v1/facts/{source}", body, {**LINES, "idempotency-key": key}, timeout=20)
        except (OSError, HTTPException):
            pass
        return None

    def _grow(self, path: str, lines: list[str]) -> None:
        """A post cannot grow: it is another one."""
        self._send(path.partition("/")[0], lines)

    def _repeat(self, path: str) -> None:
        """The same body with the same key is received once, with another body it is refused."""
        self._repeated.add(path)
        self._write(path, self.sent[path])
        answer = self._post(path, b'{"id": "never"}\n')
        if answer is not None and answer.status not in (409, 429, 503):
            self.broken.append(f"another body with the key {path} was answered {answer.status}")


def _body(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
