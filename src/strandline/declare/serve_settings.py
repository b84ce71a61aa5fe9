"""`settings.serve`: access keys, hosts, origins and intervals. Only `serve` reads the keys themselves."""

import re
from collections.abc import Collection, Mapping
from datetime import date, timedelta
from urllib.parse import urlsplit

from strandline.model.references import REFERENCE
from strandline.model.report import Report, suggest
from strandline.model.serving import AccessKey, Role, ServeSettings, find_key_problem, hash_key

from .amounts import find_duration
from .head import AccessKeySpec, ServeSpec
from .names import check_name
from .yaml_lines import DataPath, Document

_PATH: DataPath = ("settings", "serve")
_HASH = re.compile(r"[0-9a-f]{64}")
_HOST = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*|\[[0-9a-f:]+\]")
_SHORTEST, _LONGEST = timedelta(seconds=1), timedelta(days=1)


def make_serve_settings(spec: ServeSpec, document: Document, report: Report) -> ServeSettings:
    keys = {name: _make_key(name, key, document, report) for name, key in spec.keys.items()}
    _check_same(keys, document, report)
    for number, host in enumerate(spec.hosts):
        _check_host(host, (*_PATH, "hosts", number), document, report)
    for number, origin in enumerate(spec.origins):
        _check_origin(origin, (*_PATH, "origins", number), document, report)
    return ServeSettings(
        keys=keys,
        hosts=tuple(host.lower().strip("[]") for host in spec.hosts),
        origins=tuple(origin.lower() for origin in spec.origins),
        clock=_duration("clock", spec.clock, document, report),
        poll=_duration("poll", spec.poll, document, report),
    )


def check_key_sources(
    settings: ServeSettings, sources: Collection[str], document: Document, report: Report
) -> None:
    """Report sources of access keys that do not exist. Called when all sources are known."""
    for key in settings.keys.values():
        for source in key.sources or ():
            if source not in sources:
                what = f"the access key `{key.name}` names `{source}`, which is not a source."
                place = document.place(*_PATH, "keys", key.name)
                report.add("unknown-source", what, suggest(source, sources, "sources"), place)


def _make_key(name: str, spec: AccessKeySpec, document: Document, report: Report) -> AccessKey:
    path = (*_PATH, "keys", name)
    check_name(name, "key", document.place(*path), report)
    role = Role(spec.role)
    if spec.sources is not None and role is not Role.INGEST:
        what = f"the access key `{name}` has sources and the role `{role}`, which they do not limit."
        remedy = "Remove `sources`, or write `role: ingest`."
        report.add("key-with-sources", what, remedy, document.place(*path))
    return AccessKey(
        name=name,
        role=role,
        key=_check_key(name, spec, path, document, report),
        sha256=_check_hash(name, spec, path, document, report),
        sources=None if spec.sources is None else tuple(spec.sources),
        expires_on=_check_expiry(name, spec, path, document, report),
    )


def _check_key(name: str, spec: AccessKeySpec, path: DataPath, document: Document, report: Report) -> str:
    """The key as written. What is wrong with it is reported without showing it."""
    remedy = f"Write the line that `strandline key {name} --role {spec.role}` prints."
    if (spec.key is None) == (spec.sha256 is None):
        number = "neither" if spec.key is None else "both"
        what = f"the access key `{name}` has {number} of `key` and `sha256`; it needs one of them."
        report.add("bad-access-key", what, remedy, document.place(*path))
        return ""
    if spec.key is None:
        return ""
    if not isinstance(spec.key, str):
        what = f"`key` of the access key `{name}` is not text."
        report.add("bad-access-key", what, "Put it in quotes.", document.place(*path, "key"))
        return ""
    problem = "" if REFERENCE.search(spec.key) else find_key_problem(spec.key)
    if problem:
        what = f"`key` of the access key `{name}` {problem}."
        report.add("bad-access-key", what, remedy, document.place(*path, "key"))
    return spec.key


def _check_hash(name: str, spec: AccessKeySpec, path: DataPath, document: Document, report: Report) -> str:
    digits = (spec.sha256 or "").lower()
    if spec.sha256 is not None and not _HASH.fullmatch(digits):
        what = f"`sha256` of the access key `{name}` is not a hash of 64 hexadecimal digits."
        remedy = f"Write the line that `strandline key {name} --role {spec.role}` prints."
        report.add("bad-access-key", what, remedy, document.place(*path, "sha256"))
    return digits


def _check_expiry(
    name: str, spec: AccessKeySpec, path: DataPath, document: Document, report: Report
) -> date | None:
    if spec.expires is None:
        return None
    try:
        return date.fromisoformat(spec.expires)
    except ValueError:
        what = f"`expires` of the access key `{name}` is `{spec.expires}`, not a date."
        report.add("wrong-type", what, "Write, for example, `2027-01-01`.", document.place(*path, "expires"))
        return None


def _check_same(keys: Mapping[str, AccessKey], document: Document, report: Report) -> None:
    """Report a key that two names share: the audit log could not tell who called."""
    names: dict[str, str] = {}
    for name, key in keys.items():
        same = key.key if REFERENCE.search(key.key) else key.sha256 or (hash_key(key.key) if key.key else "")
        if same in names:
            what = f"`{name}` and `{names[same]}` are the same access key."
            remedy = f"Make another one with `strandline key {name} --role {key.role}`."
            report.add("same-access-key", what, remedy, document.place(*_PATH, "keys", name))
        elif same:
            names[same] = name


def _check_host(host: str, path: DataPath, document: Document, report: Report) -> None:
    if not _HOST.fullmatch(host.lower()):
        what = f"`settings.serve.hosts` contains `{host}`, which is not the name of a host."
        remedy = "Write the name alone, such as `pipe.example`, without scheme, port and path."
        report.add("bad-host", what, remedy, document.place(*path))


def _check_origin(origin: str, path: DataPath, document: Document, report: Report) -> None:
    try:
        parts = urlsplit(origin.lower())
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        bare = f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}"
        valid = parts.scheme in ("http", "https") and origin.lower() == bare
    except ValueError:
        valid = False
    if not valid:
        what = f"`settings.serve.origins` contains `{origin}`, which is not an origin."
        remedy = "Write scheme and host, and the port if there is one: `https://dashboards.example`."
        report.add("bad-origin", what, remedy, document.place(*path))


def _duration(key: str, text: str, document: Document, report: Report) -> timedelta:
    duration = find_duration(text)
    if duration is None or not _SHORTEST <= duration <= _LONGEST:
        what = f"`settings.serve.{key}` is `{text}`, not a duration of 1 second to 1 day."
        report.add("wrong-type", what, "Write, for example, `5 s` or `1 hour`.", document.place(*_PATH, key))
        return _SHORTEST
    return duration
