"""Configuration hashes: digests over an explicit, versioned list of parts."""

import hashlib
import json
from collections.abc import Mapping

from .node import NodeConfig

VERSION = 1


def digest(value: object) -> str:
    """A short digest of a declared value. Mappings are sorted, so the order of their keys does not matter."""
    return hashlib.sha256(
        json.dumps(value, sort_keys=True, default=str, separators=(",", ":")).encode()
    ).hexdigest()[:16]


def make_config(parts: Mapping[str, object], freezing: frozenset[str] = frozenset()) -> NodeConfig:
    """Hash a node's parts. A part that is None, empty or False is a default and is left out."""
    digests = {
        name: digest(value)
        for name, value in sorted(parts.items())
        if value not in (None, "", (), [], {}, False)
    }
    return NodeConfig(version=VERSION, parts=digests, freezing=freezing, hash=digest([VERSION, digests]))


def with_lookups(config: NodeConfig, versions: Mapping[str, int]) -> NodeConfig:
    """The configuration with the version of the last commit that changed rows, for each lookup."""
    if not versions:
        return config
    parts = {**config.parts, **{f"lookup {name}": str(version) for name, version in sorted(versions.items())}}
    return NodeConfig(
        version=config.version, parts=parts, freezing=config.freezing, hash=digest([config.version, parts])
    )


def compare_configs(written_parts: Mapping[str, str], current: NodeConfig) -> tuple[tuple[str, ...], bool]:
    """The parts that differ from those with which rows were written, and whether that freezes the node.

    A name in `freezing` freezes the node if that part differs. `type *` means every part with that prefix,
    and freezes the node if one is changed or removed: an added column only extends the table. `cast **` also
    freezes the node if one is added.
    """
    names = sorted({*written_parts, *current.parts})
    changed = tuple(name for name in names if written_parts.get(name) != current.parts.get(name))
    return changed, any(
        _freezes(name, added=name not in written_parts, freezing=current.freezing) for name in changed
    )


def _freezes(name: str, *, added: bool, freezing: frozenset[str]) -> bool:
    prefix = name.split(" ", 1)[0]
    return name in freezing or f"{prefix} **" in freezing or (f"{prefix} *" in freezing and not added)
