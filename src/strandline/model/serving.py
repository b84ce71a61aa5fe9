"""What a server needs to know: who may do what, what it is called, and how often it looks for work."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from enum import StrEnum


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
    key: str = ""
    """As written, with `${NAME}` where the environment has it. Empty if only the hash is declared."""
    sha256: str = ""
    """In hexadecimal digits. Empty if the key is declared."""
    sources: tuple[str, ...] | None = None
    """The sources that facts may be posted to. None: all."""
    expires_on: date | None = None
    """The first day (UTC) on which the key is not accepted any more."""


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
