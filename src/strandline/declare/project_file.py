"""The shape of `strandline.yaml`: its keys and the type of each.

Each section checks what its values mean.
"""

from functools import cache
from typing import Any

from pydantic import Field, create_model

from .head import Head
from .section import Section


@cache
def make_json_schema(sections: tuple[Section, ...]) -> dict[str, Any]:
    """The JSON Schema of a project file with these sections."""
    fields: dict[str, Any] = {section.key: _field(section) for section in sections}
    return create_model("ProjectFile", __base__=Head, __doc__=Head.__doc__, **fields).model_json_schema()


def _field(section: Section) -> tuple[Any, Any]:
    if section.is_list:
        return list[section.spec], Field(default_factory=list)  # type: ignore[name-defined]
    return dict[str, section.spec], Field(default_factory=dict)  # type: ignore[name-defined]
