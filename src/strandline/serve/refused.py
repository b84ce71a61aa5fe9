"""A call that the server refuses, with the HTTP status of the answer."""

from collections.abc import Mapping

from strandline.model.errors import CallError


class RefusedError(CallError):
    """The caller must act: another key, another name, another body, or later."""

    def __init__(
        self, what: str, *, remedy: str, slug: str, status: int, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(what, remedy=remedy, slug=slug)
        self.status = status
        self.headers = headers or {}
