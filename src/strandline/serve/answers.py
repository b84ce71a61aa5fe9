"""Answers: JSON documents with their schema, and errors with slug, message and remedy."""

import json
from collections.abc import Mapping

from starlette.responses import Response

from strandline.model.errors import (
    CallError,
    ConflictError,
    OutsideError,
    ProjectError,
    StrandlineError,
)
from strandline.model.json_values import json_value

from .refused import RefusedError

JSON = "application/json"
_HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
_UNKNOWN = "unknown-"
"""Slugs of names that do not exist begin so."""
_CONFLICTS = frozenset(
    {
        "cursor-expired",
        "delivery-not-ended",
        "endpoint-gone",
        "frozen",
        "held",
        "never-built",
        "no-change-log",
        "not-built",
        "request-exists",
    }
)
"""The call is understood, and what it names is not in the state that it needs."""
_NAMELESS = frozenset({"unknown-value", "unknown-key", "unknown-column", "unknown-access-key"})


def answer(
    thing: str, document: Mapping[str, object], status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """A document, with the name of its schema first."""
    return Response(write(thing, document), status, headers={**_HEADERS, **(headers or {})}, media_type=JSON)


def write(thing: str, document: Mapping[str, object]) -> bytes:
    named = {"schema": f"strandline/{thing}/v1", **document}
    text = json.dumps(json_value(named), ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="backslashreplace")  # such as a file's name that is not UTF-8


def answer_error(error: StrandlineError) -> Response:
    headers = error.headers if isinstance(error, RefusedError) else {}
    return answer("error", {"error": describe_error(error)}, find_status(error), headers)


def describe_error(error: StrandlineError) -> dict[str, object]:
    return {"slug": error.slug, "message": error.what, "remedy": error.remedy}


def find_status(error: StrandlineError) -> int:
    """The HTTP status of an error."""
    match error:
        case RefusedError():
            return error.status
        case ConflictError():
            return 409
        case OutsideError():
            return 503
        case CallError() | ProjectError() if error.slug in _CONFLICTS:
            return 409
        case CallError() if error.slug.startswith(_UNKNOWN) and error.slug not in _NAMELESS:
            return 404
        case CallError() | ProjectError():
            return 400
        case _:
            return 500
