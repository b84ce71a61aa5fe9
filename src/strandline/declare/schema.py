"""The shape of `strandline.yaml`: which keys there are and what type each takes. What the values mean is checked elsewhere.

The same models give the JSON Schema that editors complete from. Tags of unions are written `<...>` so that no key can be mistaken for one.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, field_validator
from pydantic_core import PydanticCustomError

_TYPES = "string (default), int, bigint, double, decimal(p,s), boolean, date, timestamp, timestamp_ms, timestamp_us or json"

Scalar = str | int | float | bool
Names = Annotated[list[str], Field(min_length=1)]


class Strict(BaseModel):
    """Unknown keys are errors, and no value is converted on the quiet."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def _shape(value: Any) -> str:
    return (
        "<mapping>"
        if isinstance(value, (dict, BaseModel))
        else "<list>"
        if isinstance(value, list)
        else "<text>"
    )


NamesOrMapping = Annotated[
    Annotated[Names, Tag("<list>")] | Annotated[dict[str, str], Tag("<mapping>")], Discriminator(_shape)
]
NameOrNames = Annotated[
    Annotated[str, Tag("<text>")] | Annotated[Names, Tag("<list>")], Discriminator(_shape)
]


class SparkSpec(Strict):
    master: str | None = Field(default=None, description="`local[*]`, spark://..., yarn, k8s://...")
    conf: dict[str, Scalar] = Field(
        default_factory=dict, description="Spark settings, as spark-submit takes them."
    )


class SettingsSpec(Strict):
    """Where things are; never hashed."""

    lake: str | None = Field(default=None, description="A folder, or any URI that Spark can write.")
    catalog: str | None = Field(default=None, description="sqlite:///path or postgresql+psycopg://...")
    spark: SparkSpec | None = None
    workers: int | None = Field(default=None, ge=1, description="How many tasks may run at once.")
    lease_seconds: int | None = Field(default=None, ge=5)
    keep: str | None = Field(
        default=None,
        description="How far back `maintain` leaves everything readable: `30 days`, the default.",
    )
    fail_on: Literal["nothing", "held"] | None = Field(
        default=None,
        description="`held`: a run ends with 1 while something is stale or frozen and facts wait for it.",
    )


class SourceSpec(Strict):
    """Where facts come from."""

    files: str = Field(description="A glob, relative to the project's folder.")
    format: Literal["jsonl", "json", "csv", "parquet"] | None = Field(
        default=None, description="By default told from the ending."
    )
    options: dict[str, Scalar] = Field(default_factory=dict, description="Options of Spark's reader.")
    complete: bool = Field(
        default=False, description="Each file is the whole set: a key it lacks gets a deleting fact."
    )
    on_rewrite: Literal["offer_again"] | None = Field(
        default=None, description="A file whose earlier part changed is its next revision."
    )


class ColumnSpec(Strict):
    """A column in its long form."""

    path: str | None = Field(default=None, description="Where the value is in the payload.")
    type: str | None = Field(default=None, description=_TYPES)
    default: Any = Field(default=None, description="Stands for an absent or null value.")
    sql: str | None = Field(default=None, description="An expression over the payload and the columns above.")


class RecordSetSpec(Strict):
    """Facts about one key override each other."""

    model_config = ConfigDict(json_schema_extra={"required": ["key", "order_by"]})

    key: Names
    order_by: Names | None = Field(
        default=None, description="Columns ranking the facts of one key; may end with `_source_position`."
    )
    deleted: str | None = Field(
        default=None, description="A SQL condition: this fact says the record is gone."
    )
    children: Literal["upsert", "replace"] = "upsert"
    latest_non_null: list[str] = Field(default_factory=list)


class EventStreamSpec(Strict):
    """Facts stand alone."""

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
        default="50%", description="A share of the live records, as `50%`."
    )
    at_least: int = Field(default=100, ge=0)


Columns = dict[
    str,
    Annotated[Annotated[str, Tag("<text>")] | Annotated[ColumnSpec, Tag("<mapping>")], Discriminator(_shape)],
]


SourceTimeOrName = Annotated[
    Annotated[str, Tag("<text>")] | Annotated[SourceTimeSpec, Tag("<mapping>")], Discriminator(_shape)
]
GuardOrOff = Annotated[
    Annotated[Literal[False, "off"], Tag("<text>")] | Annotated[GuardSpec, Tag("<mapping>")],
    Discriminator(_shape),
]


class FactDatasetSpec(Strict):
    """A dataset decoded from a source."""

    from_: str = Field(alias="from", description="The source.")
    where: str | None = Field(
        default=None, description="A SQL condition over the payload; the rest is passed over and counted."
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
    """A job's output, described."""

    key: Names


class ByKey(Strict):
    """The input has the key."""

    by: NamesOrMapping


class ViaInput(Strict):
    """The key is found through another input."""

    via: str
    on: NamesOrMapping


def _relation(value: Any) -> str:
    if isinstance(value, BaseModel):
        return "<via>" if isinstance(value, ViaInput) else "<by>"
    if isinstance(value, dict):
        return "<via>" if "via" in value or "on" in value else "<by>"
    return "<text>"


RelationSpec = Annotated[
    Annotated[Literal["whole"], Tag("<text>")]
    | Annotated[ByKey, Tag("<by>")]
    | Annotated[ViaInput, Tag("<via>")],
    Discriminator(_relation),
]


class IncrementalSpec(Strict):
    """What a change in an input touches."""

    mode: Literal["full", "keyed", "cursor", "partition"]
    key: Names | None = Field(default=None, description="Mode `keyed`: the output's key.")
    cursor_column: str | None = Field(
        default=None, description="Mode `cursor`: the column whose changed values are computed again."
    )
    unique_key: Names | None = Field(
        default=None, description="`update_strategy: append`: rows with a new one are inserted."
    )
    inputs: dict[str, RelationSpec] = Field(
        default_factory=dict, description="How each input relates to the key."
    )


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
    """The canonical blocks among all that were announced."""

    from_: str = Field(alias="from", description="An event stream of every block ever announced.")
    number: str
    hash: str
    parent: str = Field(description="The hash of the block with the number before.")
    head: HeadSpec = Field(
        description="`longest`, {most: column}, {most_summed: column} along the branch, or {last: column}."
    )
    order_by: Names | None = Field(
        default=None, description="The source's own order: of equal heads the lower was seen first."
    )
    group_by: Names | None = Field(default=None, description="One chain per value.")
    anchor: int | None = Field(
        default=None, description="The first number; by default the lowest seen. Every block there is a root."
    )
    follow: dict[str, str] = Field(
        default_factory=dict, description="New dataset: the dataset whose rows of canonical blocks it has."
    )

    @field_validator("head", mode="before")
    @classmethod
    def check_one_rule(cls, head: Any) -> Any:
        given = [rule for rule in HEAD_RULES if isinstance(head, dict) and rule in head]
        if len(given) > 1 or head == {}:
            raise PydanticCustomError("one_rule", "exactly one rule", {"given": given})
        return head


class PartitionSpec(Strict):
    """Which rows stand and fall together."""

    column: str
    size: int | None = Field(
        default=None,
        ge=1,
        description="Ranges of so many numbers: `1000000-1010000` holds 1000000 to 1009999.",
    )
    unit: Literal["hour", "day", "month"] | None = Field(
        default=None, description="Of the project's time zone."
    )
    final_after: int | str | None = Field(
        default=None, description="Built once its end lies so far behind the newest: 100, or `2 days`."
    )
    by: Names | None = Field(default=None, description="One tip, and partitions of its own, per value.")


class JobSpec(Strict):
    """A node that users write."""

    name: str
    input_datasets: list[str] = Field(default_factory=list)
    lookup_datasets: list[str] = Field(
        default_factory=list, description="Read whole; a change in one makes what is written stale."
    )
    output_dataset: str
    incremental: IncrementalSpec | None = None
    partition: PartitionSpec | None = Field(default=None, description="Mode `partition`.")
    update_strategy: Literal["replace", "append"] = "replace"
    strict_incremental: bool = Field(default=False, description="Refuse to widen a task to everything.")
    sql: str | None = Field(default=None, description="SQL text, or a file ending in `.sql`.")
    python: str | None = Field(default=None, description="file.py:function")
    config: dict[str, Any] = Field(
        default_factory=dict, description="Hashed; `:name` in SQL, context.config in Python."
    )


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


class ProjectFile(Strict):
    """strandline.yaml"""

    project: str
    timezone: str = Field(default="UTC", description="For calendar rules; everything stored is UTC.")
    financial_year_starts: str = Field(default="01-01", description="MM-DD")
    settings: SettingsSpec = SettingsSpec()
    sources: dict[str, SourceSpec] = Field(default_factory=dict)
    datasets: dict[str, DatasetSpec] = Field(default_factory=dict)
    chains: dict[str, ChainSpec] = Field(default_factory=dict)
    jobs: list[JobSpec] = Field(default_factory=list)
