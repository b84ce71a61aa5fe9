"""The shape of an entry under `timelines`."""

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from strandline.declare.spec_types import Names, NamesOrMapping, Strict, value_shape


class CalendarSpec(Strict):
    """The live rows of a dataset are the business dates."""

    dataset: str
    date: str = Field(description="A date column of it.")


BusinessDatesSpec = Annotated[
    Annotated[Literal["weekdays"], Tag("<text>")] | Annotated[CalendarSpec, Tag("<mapping>")],
    Discriminator(value_shape),
]


class ReferenceSpec(Strict):
    """A dataset in which something is looked up."""

    dataset: str
    on: NamesOrMapping = Field(
        description="Columns of the same name, or {column there: key column, field or reference.column}."
    )
    date: str | None = Field(
        default=None,
        description="A date column of it: the latest row on or before a date counts. "
        "Without it the live row counts, for every date.",
    )
    required: bool = Field(default=False, description="A date without a row in it gets no row.")


class ValuationSpec(Strict):
    """One row per key and business date."""

    output_dataset: str
    calendar: BusinessDatesSpec = Field(description="`weekdays`, or {dataset, date}.")
    due_at: str | None = Field(
        default=None, description="Local time from which on a date is valued: 00:00 by default."
    )
    references: dict[str, ReferenceSpec] = Field(
        default_factory=dict, description="Resolved top down. The name is the prefix of its columns."
    )
    columns: dict[str, str] = Field(
        default_factory=dict,
        description="Spark SQL over the key, `date`, fields, reference.column and the columns above.",
    )
    where: str | None = Field(default=None, description="A row for which it is not true is left out.")


class TimelineSpec(Strict):
    """The facts of each key, folded in the order of their dates."""

    key: Names
    facts: str = Field(description="A record set, an event stream or a job's output.")
    date: str = Field(description="A date column of the facts.")
    order_by: Names = Field(description="The order of the facts of one date.")
    fold: str = Field(description="file.py:function, which takes (state, facts) and returns the state.")
    fields: dict[str, str] = Field(description="By column: its type. The values are taken from the state.")
    output_dataset: str
    together: Names | None = Field(
        default=None, description="Columns of the key: their keys are always published in one commit."
    )
    valuation: ValuationSpec | None = None
