"""The shape of the project file around its sections: the project's name, its calendar and its settings."""

from typing import Literal

from pydantic import Field

from .spec_types import Names, Scalar, Strict


class SparkSpec(Strict):
    master: str | None = Field(default=None, description="`local[*]`, spark://..., yarn, k8s://...")
    conf: dict[str, Scalar] = Field(default_factory=dict, description="Spark settings, as for spark-submit.")


class AccessKeySpec(Strict):
    """Who may call the server. `strandline key` makes a key and prints its hash."""

    role: Literal["read", "ingest", "operate"] = Field(description="`operate` includes `read` and `ingest`.")
    key: Scalar | None = Field(default=None, description="`${NAME}`: only `serve` reads it.")
    sha256: str | None = Field(default=None, description="The hash of the key, in hexadecimal digits.")
    sources: Names | None = Field(default=None, description="With `ingest`: the sources it may post to.")
    expires: str | None = Field(default=None, description="The first day on which it is refused: 2027-01-01.")


class ServeSpec(Strict):
    """What `strandline serve` needs to know."""

    keys: dict[str, AccessKeySpec] = Field(default_factory=dict)
    hosts: list[str] = Field(
        default_factory=list, description="What `Host` may say besides names of the loopback interface."
    )
    origins: list[str] = Field(
        default_factory=list, description="Pages elsewhere that may call: https://dashboards.example."
    )
    clock: str = Field(default="1 hour", description="`as_of` of served runs is the newest whole one.")
    poll: str = Field(default="5 s", description="How often files are looked for.")


class SettingsSpec(Strict):
    """Where things are. Never hashed."""

    lake: str | None = Field(default=None, description="A folder, or any URI that Spark can write.")
    catalog: str | None = Field(default=None, description="sqlite:///path or postgresql+psycopg://...")
    spark: SparkSpec | None = None
    workers: int | None = Field(default=None, ge=1, description="At most this many tasks run at once.")
    lease_seconds: int | None = Field(default=None, ge=5)
    keep: str | None = Field(
        default=None,
        description="`maintain` keeps everything readable for this long: `30 days` by default.",
    )
    batch_rows: int | None = Field(
        default=None,
        ge=1,
        description="Work on more rows of a timeline is published in batches: 5,000,000 by default.",
    )
    fail_on: Literal["nothing", "held"] | None = Field(
        default=None,
        description="`held`: a run ends with 1 while something is stale or frozen and facts wait for it.",
    )
    serve: ServeSpec = ServeSpec()


class Head(Strict):
    """strandline.yaml"""

    project: str
    timezone: str = Field(default="UTC", description="For calendar rules. Everything is stored in UTC.")
    financial_year_starts: str = Field(default="01-01", description="MM-DD")
    settings: SettingsSpec = SettingsSpec()
