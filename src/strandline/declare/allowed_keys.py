"""Which keys are allowed where in the project file, according to its JSON Schema."""

from typing import Any

from .yaml_lines import DataPath

JsonObject = dict[str, Any]


def known_keys(schema: JsonObject, path: DataPath) -> frozenset[str]:
    """The keys that are allowed in the mapping at a path of the project file."""
    return frozenset(key for node in _find_nodes(schema, path) for key in node.get("properties", {}))


def _find_nodes(schema: JsonObject, path: DataPath) -> list[JsonObject]:
    """What the mapping at a path may be."""
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
    return _alternatives(schema, nodes)


def keys_beside(schema: JsonObject, path: DataPath, key: str) -> frozenset[str]:
    """The keys that are allowed beside a key, if the mapping at a path may be one of several."""
    of_each = [frozenset(node.get("properties", {})) for node in _find_nodes(schema, path)]
    return frozenset(other for keys in of_each if key in keys for other in keys) - {key}


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
