"""The shape of an entry under `sources`."""

from typing import Literal

from pydantic import Field

from strandline.declare.spec_types import Scalar, Strict


class SourceSpec(Strict):
    """Where facts come from."""

    files: str = Field(description="A glob, relative to the project's folder.")
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
