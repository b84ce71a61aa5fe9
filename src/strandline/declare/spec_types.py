"""The types that the specs of all sections use.

Tags of unions are written `<...>`, so that a key cannot be mistaken for one.
"""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

Scalar = str | int | float | bool


Names = Annotated[list[str], Field(min_length=1)]


class Strict(BaseModel):
    """Unknown keys are errors, and no value is converted silently."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def value_shape(value: Any) -> str:
    return (
        "<mapping>"
        if isinstance(value, (dict, BaseModel))
        else "<list>"
        if isinstance(value, list)
        else "<text>"
    )


NamesOrMapping = Annotated[
    Annotated[Names, Tag("<list>")] | Annotated[dict[str, str], Field(min_length=1), Tag("<mapping>")],
    Discriminator(value_shape),
]


NameOrNames = Annotated[
    Annotated[str, Tag("<text>")] | Annotated[Names, Tag("<list>")], Discriminator(value_shape)
]


def wrong_entry(*, slug: str, what: str, remedy: str) -> PydanticCustomError:
    """A mistake that a validator finds. `{entry}` in `what` becomes the path of the value."""
    return PydanticCustomError("wrong_entry", "wrong entry", {"slug": slug, "what": what, "remedy": remedy})
