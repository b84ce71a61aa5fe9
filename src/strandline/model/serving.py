"""What a server needs to know: who may do what, what it is called, and how often it looks for work."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from enum import StrEnum

from .errors import CallError
from .references import fill

SHORTEST_KEY = 32
"""In characters."""


class Role(StrEnum):
    """What an access key allows."""

    READ = "read"
    INGEST = "ingest"
    OPERATE = "operate"
    """Includes `read` and `ingest`."""

    def includes(self, other: "Role") -> bool:
        return self is other or self is Role.OPERATE


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessKey:
    """An access key as it is declared. Only `serve` reads the key itself, and keeps no more than its hash."""

    name: str
    role: Role
    key: str = field(default="", repr=False)
    """As written, with `${NAME}` where the environment has it. Empty if only the hash is declared."""
    sha256: str = ""
    """In hexadecimal digits. Empty if the key is declared."""
    sources: tuple[str, ...] | None = None
    """The sources that facts may be posted to. None: all."""
    expires_on: date | None = None
    """The first day (UTC) on which the key is not accepted any more."""


def hash_key(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def find_key_problem(key: str) -> str:
    """Why a text cannot be an access key. Empty if it can. The text itself is never shown."""
    if not (key.isascii() and key.isprintable()) or " " in key:
        return "contains a blank or a character that no header may have"
    return "" if len(key) >= SHORTEST_KEY else f"has fewer than {SHORTEST_KEY} characters"


def read_key_hash(access: AccessKey, environ: Mapping[str, str]) -> str:
    """The hash of a key, which may be in the environment. Raises CallError, which never shows the key."""
    if not access.key:
        return access.sha256
    key = fill(access.key, f"access key `{access.name}`", environ)
    if problem := find_key_problem(key):
        raise CallError(
            f"The access key `{access.name}` {problem}.",
            remedy=f"Make one with `strandline key {access.name} --role {access.role}`.",
            slug="bad-access-key",
        )
    return hash_key(key)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    keys: Mapping[str, AccessKey] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()
    """What the `Host` header may say besides names of the loopback interface."""
    origins: tuple[str, ...] = ()
    """Pages of other servers that may call this one from a browser."""
    clock: timedelta = timedelta(hours=1)
    """The `as_of` of a served run is the newest whole multiple of this."""
    poll: timedelta = timedelta(seconds=5)
    """How often files are looked for."""


UNSERVED = ServeSettings()
"""Of a project that says nothing about serving."""
