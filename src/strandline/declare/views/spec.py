"""The shape of an entry under `views`."""

from pydantic import Field

from strandline.declare.conditions import ConditionSpec
from strandline.declare.spec_types import Strict


class ViewSpec(Strict):
    """The rows of a dataset for which a condition is true, with calculated columns."""

    from_: str = Field(alias="from", description="A dataset with a row key, no view.")
    where: ConditionSpec = Field(default_factory=dict, description="A condition: {column: {_gte: 1}}.")
    calculated: dict[str, str] = Field(
        default_factory=dict, description="By column: Spark SQL over the columns of the same row."
    )
