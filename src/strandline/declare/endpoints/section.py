"""The section `endpoints`. Secrets are not read here: only what sends a webhook needs them."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from strandline.declare.amounts import find_duration, find_size
from strandline.declare.loading import Loading
from strandline.declare.names import check_name
from strandline.declare.section import Section
from strandline.declare.yaml_lines import DataPath
from strandline.model.endpoints import DEFAULT_RETRY, Endpoint, Ordering
from strandline.model.references import REFERENCE
from strandline.model.webhook_signatures import parse_secret

from .spec import EndpointSpec
from .url import check_url, find_networks

KEY = "endpoints"
_LONGEST_TIMEOUT = timedelta(seconds=60)
_OURS = ("host", "connection", "transfer-encoding", "expect", "upgrade", "te")
_OUR_FAMILIES = ("webhook-", "content-")
"""Headers that the message or the connection sets, by their name or by how it begins."""


def load(endpoints: Mapping[str, EndpointSpec], loading: Loading) -> None:
    for name, spec in endpoints.items():
        mistakes = len(loading.report)
        endpoint = _make(name, spec, (KEY, name), loading)
        loading.endpoints[name] = endpoint
        if len(loading.report) > mistakes:
            loading.mark_broken(name)


def _make(name: str, spec: EndpointSpec, path: DataPath, loading: Loading) -> Endpoint:
    document, report = loading.document, loading.report_of(*path)
    place = document.place(*path)
    check_name(name, "endpoint", place, report)
    allow = find_networks(name, spec.allow, document.place(*path, "allow"), report)
    check_url(name, spec.url, allow, document.place(*path, "url"), report)
    for header in spec.headers:
        _check_header(name, header, spec.headers[header], path, loading)
    return Endpoint(
        name=name,
        place=place,
        url=spec.url,
        secrets=_check_secrets(name, spec, path, loading),
        ordering=Ordering(spec.ordering),
        timeout=_duration(spec.timeout, (*path, "timeout"), loading, most=_LONGEST_TIMEOUT),
        rate=spec.rate,
        in_flight=spec.in_flight,
        max_body=_size(spec.max_body, (*path, "max_body"), loading),
        retry=tuple(
            _duration(text, (*path, "retry", number), loading) for number, text in enumerate(spec.retry)
        )
        if spec.retry
        else DEFAULT_RETRY,
        headers=spec.headers,
        allow=allow,
    )


def _check_secrets(name: str, spec: EndpointSpec, path: DataPath, loading: Loading) -> tuple[str, ...]:
    secrets = (spec.secret,) if isinstance(spec.secret, str) else tuple(spec.secret)
    for text in secrets:
        if REFERENCE.fullmatch(text):
            continue  # it is read and checked when something is sent
        try:
            parse_secret(text)
        except ValueError as error:
            what = f"the secret of the endpoint `{name}` is not valid: {error}."
            remedy = "Write `${NAME}`, and set it to `whsec_` and the base64 of 24 to 64 random bytes."
            loading.report.add("bad-secret", what, remedy, loading.document.place(*path, "secret"))
    return secrets


def _check_header(name: str, header: str, value: str, path: DataPath, loading: Loading) -> None:
    place = loading.document.place(*path, "headers", header)
    token = header.replace("-", "").replace("_", "")
    is_ours = header.lower() in _OURS or header.lower().startswith(_OUR_FAMILIES)
    if is_ours or not token.isascii() or not token.isalnum():
        what = f"the endpoint `{name}` sets the header `{header}`, which is reserved or not a header's name."
        remedy = "Choose another name, such as `x-team`."
        loading.report.add("bad-header", what, remedy, place)
    elif not value.isprintable():
        what = f"the header `{header}` of the endpoint `{name}` contains a character that no header may have."
        loading.report.add("bad-header", what, "Write it in one line of text.", place)


def _duration(text: str, path: DataPath, loading: Loading, most: timedelta | None = None) -> timedelta:
    duration = find_duration(text)
    if duration is None or not duration or (most is not None and duration > most):
        limit = f" of at most {most.total_seconds():.0f} s" if most else ""
        what = f"`{path[2]}` of the endpoint `{path[1]}` is `{text}`, not a duration{limit}."
        loading.report.add("wrong-type", what, "Write, for example, `15 s`.", loading.document.place(*path))
        return timedelta(seconds=15)
    return duration


def _size(text: str | int, path: DataPath, loading: Loading) -> int:
    size = find_size(text)
    if size is None or size < 1:
        what = f"`{path[2]}` of the endpoint `{path[1]}` is `{text}`, not a size."
        loading.report.add(
            "wrong-type", what, "Write, for example, `256 KiB`.", loading.document.place(*path)
        )
        return 1
    return size


def _stand_in(_: Mapping[str, Any], place: DataPath) -> object | None:
    """The URL and the secret of an entry that lacks them. Neither is reported a second time."""
    match place:
        case ("url",):
            return "https://missing.invalid"
        case ("secret",):
            return "${MISSING}"
        case _:
            return None


ENDPOINTS = Section(key=KEY, spec=EndpointSpec, load=load, counted_as="endpoint", stand_in=_stand_in)
