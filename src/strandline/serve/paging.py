"""Parts of lists: `limit`, and `after` with what the answer before called `next`."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from .bodies import bad_parameter, read_number
from .declared import Call
from .refused import RefusedError

MOST_LISTED, USUALLY_LISTED = 1_000, 100

Item = TypeVar("Item")


def read_limit(call: Call) -> int:
    return read_number(
        call, "limit", USUALLY_LISTED, int, lambda n: 1 <= n <= MOST_LISTED, f"1 to {MOST_LISTED:,}"
    )


def refuse_place() -> RefusedError:
    """`after` names no item. To answer an empty part would tell the caller that the list has ended."""
    return bad_parameter("after", "is in no list", "Use what the answer before calls `next`.")


def page(call: Call, items: Sequence[Item], name: Callable[[Item], str]) -> tuple[Sequence[Item], str | None]:
    """The part of a list that is asked for, and `next`: the name of its last item, None at the end."""
    limit, after = read_limit(call), call.request.query_params.get("after")
    begin = 0
    if after is not None:
        places = [place for place, item in enumerate(items) if name(item) == after]
        if not places:
            raise refuse_place()
        begin = places[0] + 1
    part = items[begin : begin + limit]
    return part, name(part[-1]) if begin + limit < len(items) else None
