"""The shape of the project file around its sections: the project's name, its calendar and its settings."""

from typing import Literal

from pydantic import Field

from .spec_types import Scalar, Strict


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


class Head(Strict):
    """strandline.yaml"""

    project: str
    timezone: str = Field(default="UTC", description="For calendar rules; everything stored is UTC.")
    financial_year_starts: str = Field(default="01-01", description="MM-DD")
    settings: SettingsSpec = SettingsSpec()
