"""The shape of an entry under `sources`."""

from typing import Literal, Self

from pydantic import Field, model_validator

from strandline.declare.spec_types import Scalar, Strict, wrong_entry


class HttpSpec(Strict):
    """Facts are posted to `/v1/facts/<source>`."""


class SourceSpec(Strict):
    """Where facts come from: `files` or `http`."""

    files: str | None = Field(default=None, description="A glob, relative to the project's folder.")
    http: HttpSpec | None = Field(
        default=None, description="`{}`: facts are posted to `/v1/facts/<source>` of the server."
    )
    format: Literal["jsonl", "json", "csv", "parquet"] | None = Field(
        default=None, description="By default determined by the ending."
    )
    options: dict[str, Scalar] = Field(default_factory=dict, description="Options of Spark's reader.")
    complete: bool = Field(
        default=False, description="Each file is the whole set: a key it lacks gets a deleting fact."
    )
    on_rewrite: Literal["offer_again"] | None = Field(
        default=None, description="A file whose earlier part changed is its next revision."
    )

    @model_validator(mode="after")
    def _come_from_somewhere(self) -> Self:
        if self.files is None and self.http is None:
            raise wrong_entry(
                slug="missing-key",
                what="{entry} lacks `files`.",
                remedy="Add `files:` with the files to read, or `http: {}` to have facts posted.",
            )
        return self
