"""Which keys are allowed where in the project file, according to its JSON Schema."""

from typing import Any

from .yaml_lines import DataPath

JsonObject = dict[str, Any]


def known_keys(schema: JsonObject, path: DataPath) -> frozenset[str]:
    """The keys that are allowed in the mapping at a path of the project file."""
    nodes: list[JsonObject] = [schema]
    for step in path:
        children = []
        for node in _alternatives(schema, nodes):
            child = (
                node.get("items")
                if isinstance(step, int)
                else node.get("properties", {}).get(step) or node.get("additionalProperties")
            )
            if isinstance(child, dict):
                children.append(child)
        nodes = children
    return frozenset(key for node in _alternatives(schema, nodes) for key in node.get("properties", {}))


def _alternatives(schema: JsonObject, nodes: list[JsonObject]) -> list[JsonObject]:
    """The nodes, with references followed and unions split."""
    flat: list[JsonObject] = []
    for node in nodes:
        if "$ref" in node:
            flat += _alternatives(schema, [schema["$defs"][node["$ref"].rsplit("/", 1)[-1]]])
        elif "anyOf" in node or "oneOf" in node:
            flat += _alternatives(schema, node.get("anyOf") or node["oneOf"])
        else:
            flat.append(node)
    return flat
