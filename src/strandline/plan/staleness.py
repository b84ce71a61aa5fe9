"""Configuration: what is stale (waits for a backfill) and what is frozen (not written until one)."""

from strandline.model.catalog_records import NodeRecord
from strandline.model.definitions import find_definitions
from strandline.model.hashing import compare_configs, with_lookups
from strandline.model.node import Lookup, Node, NodeConfig
from strandline.model.plan import Held

from .request import Observed


def current_config(node: Node, observed: Observed) -> NodeConfig:
    """The node's configuration now, with the version of each lookup's last row-changing commit."""
    versions: dict[str, int] = {}
    for input_ in node.inputs:
        table = observed.tables.get(input_.dataset)
        if isinstance(input_.relation, Lookup) and table is not None:
            versions[input_.name] = last_change(observed, input_.dataset)
    return with_lookups(node.config, versions)


def last_change(observed: Observed, dataset: str) -> int:
    """The version of a table's last observed commit that changed rows, else the oldest observed version."""
    table = observed.tables[dataset]
    changing = [c.version for c in table.commits if c.changes_rows]
    return changing[-1] if changing else 0


def find_frozen(node: Node, record: NodeRecord, config: NodeConfig) -> Held | None:
    if not record.configs:
        return None
    changed, freezes = compare_configs(record.configs[-1].parts, config)
    if not freezes:
        return None
    return Held(
        node=node.name,
        reason=f"{_list(changed)} changed; `strandline backfill {node.name} --all` rewrites it",
        changed=changed,
    )


def find_stale(node: Node, record: NodeRecord, config: NodeConfig) -> Held | None:
    if node.traits.origins:
        written = record.configs[-1].parts if record.configs else None
        return tell_stale(node, find_definitions(node, written, config, ()).changed)
    older = [c for c in record.configs if c.hash != config.hash]
    partitions: tuple[str, ...] = ()
    if node.traits.partitioning is not None:
        partitions = tuple(
            p.partition_key for p in record.partitions.values() if p.config_hash != config.hash
        )
        older = [c for c in older if any(record.partitions[p].config_hash == c.hash for p in partitions)]
    if not older and not partitions:
        return None
    changed = tuple(sorted({name for c in older for name in compare_configs(c.parts, config)[0]}))
    what = (
        "some rows were"
        if not partitions
        else "1 partition was"
        if len(partitions) == 1
        else f"{len(partitions)} partitions were"
    )
    reason = (
        f"{_list(changed)} changed since {what} written;"
        f" `strandline backfill {node.name} --stale` rewrites those"
    )
    return Held(node=node.name, reason=reason, changed=changed, partitions=partitions)


def tell_stale(node: Node, changed: tuple[str, ...], lacking: tuple[str, ...] = ()) -> Held | None:
    """Columns that have another definition, and that a person has to fill. They hold no other column up.

    `lacking` are those of them that nothing can be computed of yet: an input was never received.
    """
    if not changed:
        return None
    was, them = ("it was", "it") if len(changed) == 1 else ("they were", "them")
    reason = (
        f"{_list(changed)} changed since {was} filled; `strandline backfill {node.name} --stale` fills"
        f" {them} anew"
    )
    if lacking:
        which = "" if lacking == changed else f" {_list(lacking)}"
        reason += f",{which} once what {'it reads' if len(lacking) == 1 else 'they read'} was received"
    return Held(node=node.name, reason=reason, changed=changed)


def _list(parts: tuple[str, ...]) -> str:
    return ", ".join(f"`{p}`" for p in parts) or "the configuration"
