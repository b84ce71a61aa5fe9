"""The shape of an entry under `entities`."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Discriminator, Field, Tag

from strandline.declare.spec_types import (
    NameOrNames,
    Names,
    NamesOrMapping,
    Scalar,
    Strict,
    value_shape,
)


class ViaDataset(Strict):
    """The entities of a row are named by the rows of another dataset that it finds."""

    via: str
    on: NamesOrMapping = Field(description="Columns of the same name, or {column here: column there}.")


def _owner_shape(value: Any) -> str:
    if isinstance(value, ViaDataset) or (isinstance(value, dict) and "via" in value):
        return "<via>"
    return value_shape(value)


OwnerSpec = Annotated[
    Annotated[str, Tag("<text>")]
    | Annotated[Names, Tag("<list>")]
    | Annotated[ViaDataset, Tag("<via>")]
    | Annotated[dict[str, str], Tag("<mapping>")],
    Discriminator(_owner_shape),
]
"""The id's columns in an input: one, a list in the order of the id, {id: column}, or {via, on}."""

IdSpec = Annotated[
    Annotated[str, Tag("<text>")]
    | Annotated[Names, Tag("<list>")]
    | Annotated[dict[str, str], Tag("<mapping>")],
    Discriminator(value_shape),
]


class WindowSpec(Strict):
    """The rows of the last days: `[as_of - length, as_of)`."""

    column: str = Field(description="A timestamp or date column of the input.")
    last: NameOrNames = Field(description="A length, as `7 days`, or several: one variable for each.")


class SelectSpec(Strict):
    """A variable of a group."""

    select: str
    where: str | None = Field(default=None, description="It is added to that of the group by AND.")
    default: Scalar | None = None
    merge: str | None = None


class GroupSpec(Strict):
    """What several variables share."""

    from_: str = Field(alias="from")
    by: OwnerSpec | None = None
    where: str | None = None
    window: WindowSpec | None = None
    variables: dict[
        str,
        Annotated[
            Annotated[str, Tag("<text>")] | Annotated[SelectSpec, Tag("<mapping>")],
            Discriminator(value_shape),
        ],
    ]


class ExprSpec(Strict):
    """A variable that is computed from others."""

    expr: str = Field(description="Spark SQL over variables of this entity.")
    default: Scalar | None = None


class AggregateSpec(Strict):
    """A variable that is computed from the rows of a dataset."""

    from_: str = Field(alias="from", description="Any dataset.")
    select: str = Field(description="An expression of aggregates over its columns.")
    by: OwnerSpec | None = Field(default=None, description="The id's columns for this variable alone.")
    where: str | None = Field(default=None, description="Only rows for which it is true count.")
    window: WindowSpec | None = None
    default: Scalar | None = Field(default=None, description="What replaces NULL.")
    merge: str | None = Field(
        default=None, description="Not needed. Accepted on event streams if it is what the aggregate needs."
    )


def _variable(value: Any) -> str:
    has_expr = "expr" in value if isinstance(value, dict) else isinstance(value, ExprSpec)
    return "<expr>" if has_expr and not _selects(value) else "<select>"


def _selects(value: Any) -> bool:
    return isinstance(value, BaseModel) or "select" in value or "from" in value


VariableSpec = Annotated[
    Annotated[ExprSpec, Tag("<expr>")] | Annotated[AggregateSpec, Tag("<select>")], Discriminator(_variable)
]


class EntitySpec(Strict):
    """A thing with an id, and variables that are computed for each id."""

    id: IdSpec = Field(description="One column, several, or {column: type}.")
    by: dict[str, OwnerSpec] = Field(
        default_factory=dict, description="By dataset: the id's columns there, where they have other names."
    )
    every: Literal["hour", "day", "week", "month"] | None = Field(
        default=None, description="The clock stands still between these, in the project's time zone."
    )
    variables: dict[str, VariableSpec] = Field(default_factory=dict)
    groups: list[GroupSpec] = Field(default_factory=list)
