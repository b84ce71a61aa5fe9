"""The shape of an entry under `jobs`."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Discriminator, Field, Tag

from strandline.declare.spec_types import Names, NamesOrMapping, Strict


class ByKey(Strict):
    """The input contains the key."""

    by: NamesOrMapping


class ViaInput(Strict):
    """The key is looked up in another input."""

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
        default=None, description="`update_strategy: append`: rows whose unique key is new are inserted."
    )
    inputs: dict[str, RelationSpec] = Field(
        default_factory=dict, description="How each input relates to the key."
    )


class PartitionSpec(Strict):
    """Which rows are replaced together."""

    column: str
    size: int | None = Field(
        default=None,
        ge=1,
        description="The numbers in a range: `1000000-1010000` contains 1000000 to 1009999.",
    )
    unit: Literal["hour", "day", "month"] | None = Field(
        default=None, description="In the project's time zone."
    )
    final_after: int | str | None = Field(
        default=None, description="Built once its end is this far behind the newest: 100, or `2 days`."
    )
    by: Names | None = Field(
        default=None, description="Each value has its own partitions and its own newest value."
    )


class JobSpec(Strict):
    """A node that users write."""

    name: str
    input_datasets: list[str] = Field(default_factory=list)
    lookup_datasets: list[str] = Field(
        default_factory=list, description="Read whole. A change in one makes published rows stale."
    )
    output_dataset: str
    incremental: IncrementalSpec | None = None
    partition: PartitionSpec | None = Field(default=None, description="Mode `partition`.")
    update_strategy: Literal["replace", "append"] = "replace"
    strict_incremental: bool = Field(default=False, description="Refuse to widen a task to everything.")
    sql: str | None = Field(default=None, description="SQL text, or a file that ends in `.sql`.")
    python: str | None = Field(default=None, description="file.py:function")
    config: dict[str, Any] = Field(
        default_factory=dict, description="Hashed. `:name` in SQL, context.config in Python."
    )
