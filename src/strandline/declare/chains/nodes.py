"""The node of a chain, its traits, and the nodes of the datasets that follow it."""

from strandline.declare.jobs.node import make_generated_node
from strandline.model.columns import TimeUnit, quote
from strandline.model.hashing import make_config
from strandline.model.node import By, Input, Node, NodeConfig
from strandline.model.project import Calendar, Chain
from strandline.model.traits import Recount, Traits


def chain_node(chain: Chain, columns: tuple[str, ...], time_unit: TimeUnit) -> Node:
    facts = f"{chain.blocks}_facts"
    blocks = Input(name=facts, dataset=facts, relation=By(columns=chain.key))
    return Node(
        name=chain.name,
        inputs=(blocks,),
        definition=chain,
        config=_config(chain),
        traits=_traits(chain, time_unit),
        columns=columns,
    )


def _config(chain: Chain) -> NodeConfig:
    """Every part freezes: a change may affect any block, and each block of the branch depends on others."""
    parts: dict[str, object] = {
        "from": chain.blocks,
        "number": chain.number,
        "hash": chain.hash,
        "parent": chain.parent,
        "head": [str(chain.head.kind), chain.head.column],
        "order_by": chain.order_by,
        "group_by": chain.group_by,
        "anchor": None if chain.anchor is None else str(chain.anchor),
    }
    return make_config(parts, frozenset(parts))


def _traits(chain: Chain, time_unit: TimeUnit) -> Traits:
    rule = f"{chain.head.kind} {chain.head.column}".replace("_", " ").strip()
    return Traits(
        how=f"The branch of the best head ({rule}) among the blocks of `{chain.blocks}`: "
        "only numbers whose block differs are replaced.",
        drawn_under="chains",
        drawn_from=2,
        key=chain.key,
        key_is_named_by="each announced block names its number",
        answers_invalidations=False,
        runs_code=False,
        recount=Recount.WHEN_WHOLE,
        range_column=chain.number,
        time_unit=time_unit,
    )


def follow_node(
    name: str, dataset: str, table: str, chain: Chain, calendar: Calendar, columns: tuple[str, ...]
) -> Node:
    """The rows of a dataset whose block is canonical. It is an ordinary job, keyed by the block's hash."""
    key = (*chain.group_by, chain.hash)
    same = " AND ".join(f"t.{quote(c)} <=> b.{quote(c)}" for c in key)
    return make_generated_node(
        name=name,
        place=chain.place,
        key=key,
        sql=f"SELECT t.* FROM {quote(dataset)} AS t LEFT SEMI JOIN {quote(chain.name)} AS b ON {same}",
        inputs=(
            Input(name=dataset, dataset=table, relation=By(columns=key)),
            Input(name=chain.name, dataset=chain.name, relation=By(columns=key)),
        ),
        calendar=calendar,
        columns=columns,
    )
