"""The shape of an entry under `datasets`: a fact dataset, or the description of a job's output."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from strandline.declare.spec_types import NameOrNames, Names, Strict, value_shape

_TYPES = (
    "string (default), int, bigint, double, decimal(p,s), boolean, date, timestamp, timestamp_ms,"
    " timestamp_us, timestamp_ns or json"
)


class ColumnSpec(Strict):
    """A column in its long form."""

    path: str | None = Field(default=None, description="Where the value is in the payload.")
    type: str | None = Field(default=None, description=_TYPES)
    default: Any = Field(default=None, description="Replaces an absent or null value.")
    sql: str | None = Field(default=None, description="An expression over the payload and earlier columns.")


class RecordSetSpec(Strict):
    """Facts about one key override each other."""

    model_config = ConfigDict(json_schema_extra={"required": ["key", "order_by"]})

    key: Names
    order_by: Names | None = Field(
        default=None,
        description="Columns that rank the facts of one key. May end with `_source_position`.",
    )
    deleted: str | None = Field(default=None, description="A SQL condition: this fact deletes the record.")
    children: Literal["upsert", "replace"] = "upsert"
    latest_non_null: list[str] = Field(default_factory=list)


class EventStreamSpec(Strict):
    """Facts do not override each other."""

    identity: list[str] = Field(default_factory=list, description="Facts with the same identity count once.")


class ContractSpec(Strict):
    """The seed's spelling of record sets and event streams."""

    is_append_only: bool | None = None
    is_event_stream: bool | None = None
    override_channel: NameOrNames | None = None
    override_ordering: NameOrNames | None = None


class SourceTimeSpec(Strict):
    path: str
    type: str | None = None


class GuardSpec(Strict):
    max_deleted: str | int | float = Field(
        default="50%", description="A percentage of the live records, such as `50%`."
    )
    at_least: int = Field(default=100, ge=0)


Columns = dict[
    str,
    Annotated[
        Annotated[str, Tag("<text>")] | Annotated[ColumnSpec, Tag("<mapping>")], Discriminator(value_shape)
    ],
]


SourceTimeOrName = Annotated[
    Annotated[str, Tag("<text>")] | Annotated[SourceTimeSpec, Tag("<mapping>")], Discriminator(value_shape)
]


GuardOrOff = Annotated[
    Annotated[Literal[False, "off"], Tag("<text>")] | Annotated[GuardSpec, Tag("<mapping>")],
    Discriminator(value_shape),
]


class FactDatasetSpec(Strict):
    """A dataset decoded from a source."""

    from_: str = Field(alias="from", description="The source.")
    where: str | None = Field(
        default=None, description="A SQL condition over the payload. The rest is counted as passed over."
    )
    explode: str | None = Field(default=None, description="The path of a list: one fact per element.")
    columns: Columns = Field(default_factory=dict)
    require: list[str] = Field(default_factory=list, description="Columns that may not be NULL.")
    record_set: RecordSetSpec | None = None
    event_stream: EventStreamSpec | None = None
    contract: ContractSpec | None = None
    source_at: SourceTimeOrName | None = None
    guard: GuardOrOff | None = None


class OutputSpec(Strict):
    """The description of a job's output."""

    key: Names


def _dataset(value: Any) -> str:
    if isinstance(value, BaseModel):
        return "<facts>" if isinstance(value, FactDatasetSpec) else "<output>"
    return (
        "<output>"
        if isinstance(value, dict) and "from" not in value and set(value) <= {"key", "mirror"}
        else "<facts>"
    )


DatasetSpec = Annotated[
    Annotated[FactDatasetSpec, Tag("<facts>")] | Annotated[OutputSpec, Tag("<output>")],
    Discriminator(_dataset),
]
