"""Bodies and parameters of calls. Text becomes checked values here."""

import json
import re
from collections.abc import Callable, MutableMapping, Sequence
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails
from starlette.datastructures import Headers
from starlette.types import Message, Receive

from strandline.model.json_values import read_json

from .declared import Call, Route
from .refused import RefusedError

DEEPEST = 64
"""Lists and objects inside each other."""
LONGEST_WAIT = 300.0
_NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)

Body = TypeVar("Body", bound="StrictBody")


class StrictBody(BaseModel):
    """Unknown keys are errors, and no value is converted silently."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def check_content_type(route: Route, headers: Headers) -> None:
    """Refuse a body of another type than the route takes. A call without a body needs no type."""
    if not _has_body(headers):
        return
    stated = headers.get("content-type", "").split(";")[0].strip().lower()
    if stated not in route.content_types or headers.get("content-encoding", "identity") != "identity":
        raise RefusedError(
            "The body has no content type that this route takes.",
            remedy=f"Send `Content-Type: {route.content_types[0]}`, and no `Content-Encoding`.",
            slug="wrong-content-type",
            status=415,
        )


def _has_body(headers: Headers) -> bool:
    return headers.get("content-length", "0").strip() != "0" or "transfer-encoding" in headers


def count_body(route: Route, headers: Headers, receive: Receive) -> Receive:
    """`receive` with a limit. A body that says that it is too large is refused before any of it is read."""
    stated = headers.get("content-length", "")
    if stated.isdecimal() and int(stated) > route.most_bytes:
        _refuse_size(route.most_bytes)
    left = route.most_bytes

    async def counted() -> Message:
        nonlocal left
        message: MutableMapping[str, Any] = await receive()
        left -= len(message.get("body", b""))
        if left < 0:
            _refuse_size(route.most_bytes)
        return message

    return counted


def _refuse_size(most: int) -> NoReturn:
    raise RefusedError(
        f"The body is larger than {most:,} bytes.",
        remedy="Send it in several calls.",
        slug="body-too-large",
        status=413,
        headers={"connection": "close"},
    )


async def read_body(call: Call, shape: type[Body]) -> Body:
    """The body as a value. An empty body is an empty object."""
    raw = await call.request.body()
    document = parse_json(raw) if raw.strip() else {}
    try:
        return shape.model_validate(document)
    except ValidationError as error:
        raise _describe(error.errors(include_url=False), shape) from None


def parse_json(raw: bytes) -> Any:
    """JSON that is not deeper than 64. Raises RefusedError for anything else."""
    check_depth(raw)
    try:
        return read_json(raw.decode(), parse_constant=_refuse_constant)
    except ValueError as error:
        place = f": {error.msg} in line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise RefusedError(
            f"The body is not JSON{place}.",
            remedy="Send one JSON document in UTF-8.",
            slug="not-json",
            status=400,
        ) from None


def check_depth(raw: bytes) -> None:
    """Refuse JSON that is nested too deeply, before it is parsed."""
    depth = 0
    for token in _BRACKETS.finditer(raw):
        first = raw[token.start()]
        if first in b"[{":
            depth += 1
            if depth > DEEPEST:
                raise RefusedError(
                    f"The body is nested more than {DEEPEST} deep.",
                    remedy="Send it with fewer levels.",
                    slug="body-too-deep",
                    status=400,
                )
        elif first in b"]}":
            depth -= 1


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _describe(details: Sequence[ErrorDetails], shape: type[BaseModel]) -> RefusedError:
    """The first key that is wrong, and what it may be. The value itself is not shown."""
    detail = details[0]
    where = str(detail["loc"][0]) if detail["loc"] else "the body"
    problems = dict.fromkeys(
        each["msg"].removeprefix("Value error, ") for each in details if each["loc"][:1] == detail["loc"][:1]
    )
    known = ", ".join(f"`{field.alias or name}`" for name, field in shape.model_fields.items())
    if detail["type"] == "extra_forbidden":
        what = f"`{where}` is not a key of this body."
    elif detail["type"] == "missing":
        what = f"`{where}` is missing."
    else:
        what = f"`{where}` is not valid: {'; or: '.join(problems)}."
    remedy = f"The keys are {known}." if known else "Send no body, or `{}`."
    return RefusedError(what, remedy=remedy, slug="bad-body", status=400)


def read_wait(call: Call) -> float:
    """The seconds that the caller waits for the end of the work. 0: not at all."""
    longest = f"0 to {LONGEST_WAIT:.0f}"
    return read_number(call, "wait", 0.0, float, lambda n: 0 <= n <= LONGEST_WAIT, longest)


Number = TypeVar("Number", int, float)


def read_number(
    call: Call,
    name: str,
    default: Number,
    parse: Callable[[str], Number],
    fits: Callable[[Number], bool],
    span: str,
) -> Number:
    """A parameter. `span` says which numbers fit."""
    text = call.request.query_params.get(name)
    if text is None:
        return default
    try:
        if _NUMBER.fullmatch(text) and fits(number := parse(text)):
            return number
    except ValueError:
        pass
    raise bad_parameter(name, f"is not a number from {span}", f"Write, for example, `{name}={default:g}`.")


def bad_parameter(name: str, problem: str, remedy: str) -> RefusedError:
    return RefusedError(f"The parameter `{name}` {problem}.", remedy=remedy, slug="bad-parameter", status=400)


def check_parameters(call: Call, *known: str) -> None:
    """Refuse a parameter that the route does not have, or has twice: it would silently do nothing."""
    given = [name for name, _ in call.request.query_params.multi_items()]
    for name in given:
        if name not in known:
            remedy = f"It has {', '.join(f'`{one}`' for one in known)}." if known else "Leave it out."
            raise bad_parameter(name, "is not one of this route", remedy)
        if given.count(name) > 1:
            raise bad_parameter(name, "is there more than once", "Write it once.")
