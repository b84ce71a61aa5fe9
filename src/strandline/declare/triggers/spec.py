"""The shape of an entry under `triggers`."""

from typing import Literal

from pydantic import Field

from strandline.declare.conditions import ConditionSpec
from strandline.declare.spec_types import NameOrNames, Strict
from strandline.model.publishing import MAX_EVENTS


class TriggerGuardSpec(Strict):
    max_events: int = Field(
        default=MAX_EVENTS, ge=1, description="More events in one task are neither recorded nor sent."
    )


class TriggerSpec(Strict):
    """A condition on the changes of a dataset or a view."""

    from_: str = Field(alias="from", description="A dataset with a row key, or a view.")
    fire: ConditionSpec = Field(description="A key is on once this is true.")
    clear: ConditionSpec | None = Field(
        default=None,
        description="A key is off once this is true and `fire` is not. By default as soon as `fire` is not.",
    )
    endpoint: NameOrNames | None = Field(default=None, description="Who is told: one endpoint or several.")
    existing: Literal["quiet", "deliver"] = Field(
        default="quiet", description="`deliver`: rows that were there before the trigger are told as well."
    )
    guard: TriggerGuardSpec = TriggerGuardSpec()
