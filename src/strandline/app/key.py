"""`key`: make an access key of the server. Nothing keeps it; the project file has its hash."""

import secrets
from dataclasses import dataclass, field

from strandline.declare.names import check_name
from strandline.model.report import Report
from strandline.model.serving import Role, hash_key

_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    name: str
    role: Role
    key: str = field(repr=False)

    @property
    def sha256(self) -> str:
        return hash_key(self.key)

    @property
    def line(self) -> str:
        """The line for `settings.serve.keys` of the project file."""
        return f'{self.name}: {{role: {self.role}, sha256: "{self.sha256}"}}'


def make_key(name: str, role: Role) -> NewKey:
    """A new key of 256 random bits: the one thing here that must not be derived from anything."""
    report = Report()
    check_name(name, "key", None, report)
    report.raise_if_any()
    return NewKey(name=name, role=role, key=secrets.token_urlsafe(_BYTES))
