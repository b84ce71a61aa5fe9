"""The shape of an entry under `endpoints`."""

from typing import Literal

from pydantic import Field

from strandline.declare.spec_types import NameOrNames, Names, Strict


class EndpointSpec(Strict):
    """Where webhooks are sent."""

    url: str
    secret: NameOrNames = Field(
        description="`${NAME}`: whsec_ and the base64 of 24 to 64 bytes. Several sign each message."
    )
    ordering: Literal["per_key", "parallel"] = "per_key"
    timeout: str = Field(default="15 s", description="Of one attempt, at most 60 s.")
    rate: float | None = Field(default=None, gt=0, description="Attempts a second. No limit by default.")
    in_flight: int = Field(default=16, ge=1, description="At most this many attempts at once.")
    max_body: str | int = Field(default="256 KiB", description="A larger message is dead at once.")
    retry: Names | None = Field(
        default=None, description="The pauses between attempts: 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 10 h."
    )
    headers: dict[str, str] = Field(default_factory=dict, description="Further headers of each attempt.")
    allow: list[str] = Field(
        default_factory=list, description="Networks that are not public and may be reached: 10.1.0.0/16."
    )
