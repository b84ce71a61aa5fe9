"""The shape of an entry under `chains`."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Discriminator, Field, Tag, field_validator

from strandline.declare.spec_types import Names, Strict, wrong_entry
from strandline.model.report import listed


class MostSpec(Strict):
    most: str


class MostSummedSpec(Strict):
    most_summed: str


class LastSpec(Strict):
    last: str


def _head(value: Any) -> str:
    if isinstance(value, BaseModel):
        value = value.model_dump()
    if isinstance(value, dict):
        return "<summed>" if "most_summed" in value else "<last>" if "last" in value else "<most>"
    return "<text>"


HEAD_RULES = ("most", "most_summed", "last")


HeadSpec = Annotated[
    Annotated[Literal["longest"], Tag("<text>")]
    | Annotated[MostSpec, Tag("<most>")]
    | Annotated[MostSummedSpec, Tag("<summed>")]
    | Annotated[LastSpec, Tag("<last>")],
    Discriminator(_head),
]


class ChainSpec(Strict):
    """The canonical blocks among all announced blocks."""

    from_: str = Field(alias="from", description="An event stream of all announced blocks.")
    number: str
    hash: str
    parent: str = Field(description="The hash of the previous block.")
    head: HeadSpec = Field(
        description="`longest`, {most: column}, {most_summed: column} along the branch, or {last: column}."
    )
    order_by: Names | None = Field(
        default=None, description="The source's own order: among equal heads the lower one was seen first."
    )
    group_by: Names | None = Field(default=None, description="One chain per value.")
    anchor: int | None = Field(
        default=None,
        description="The first number. By default the lowest one seen. Every block with it is a root.",
    )
    follow: dict[str, str] = Field(
        default_factory=dict,
        description="By new dataset: the dataset from which it takes the rows of canonical blocks.",
    )

    @field_validator("head", mode="before")
    @classmethod
    def check_one_rule(cls, head: Any) -> Any:
        rules = [rule for rule in HEAD_RULES if isinstance(head, dict) and rule in head]
        if len(rules) > 1 or head == {}:
            ways = ", ".join(f"`{{{rule}: <column>}}`" for rule in HEAD_RULES)
            raise wrong_entry(
                slug="head-rule",
                what="exactly one rule chooses the head of a chain, "
                f"and {{entry}} has {listed(rules) or 'none'}.",
                remedy=f"Write one of `longest`, {ways}.",
            )
        return head
