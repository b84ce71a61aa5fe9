"""Which keys may stand where in the project file, read off its JSON Schema."""

from functools import cache
from typing import Any

from .schema import ProjectFile
from .yaml_lines import DataPath

JsonObject = dict[str, Any]


def known_keys(path: DataPath) -> frozenset[str]:
    """The keys that may stand in the mapping at a path of the project file."""
    nodes: list[JsonObject] = [_schema()]
    for step in path:
        found = []
        for node in _alternatives(nodes):
            child = (
                node.get("items")
                if isinstance(step, int)
                else node.get("properties", {}).get(step) or node.get("additionalProperties")
            )
            if isinstance(child, dict):
                found.append(child)
        nodes = found
    return frozenset(key for node in _alternatives(nodes) for key in node.get("properties", {}))


@cache
def _schema() -> JsonObject:
    return ProjectFile.model_json_schema()


def _alternatives(nodes: list[JsonObject]) -> list[JsonObject]:
    """The nodes with references followed and unions taken apart."""
    flat: list[JsonObject] = []
    for node in nodes:
        if "$ref" in node:
            flat += _alternatives([_schema()["$defs"][node["$ref"].rsplit("/", 1)[-1]]])
        elif "anyOf" in node or "oneOf" in node:
            flat += _alternatives(node.get("anyOf") or node["oneOf"])
        else:
            flat.append(node)
    return flat
