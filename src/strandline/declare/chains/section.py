"""The section `chains`: chains, and the datasets that follow them."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from strandline.declare.jobs.section import find_outputs
from strandline.declare.loading import Loading
from strandline.declare.section import Section
from strandline.model.project import Chain
from strandline.model.report import find_nearest, suggest
from strandline.sql.known_columns import NOTHING

from .chain import make_chain
from .nodes import chain_node, follow_node
from .spec import ChainSpec

KEY = "chains"


def load(chains: Mapping[str, ChainSpec], loading: Loading) -> None:
    for name, spec in chains.items():
        claimed = loading.registry.claim(name, "chain", loading.document.place(KEY, name))
        blocks = _find_stream(name, spec, loading)
        known = loading.known.get(blocks, NOTHING) if blocks else NOTHING
        chain, sound = make_chain(name, spec, known, loading.document, loading.report)
        if not claimed or not sound or not blocks or blocks in loading.registry.broken:
            loading.mark_broken(name)
        if claimed:
            if loading.right:
                unit = loading.get_time_unit(chain.blocks)
                loading.nodes.append(chain_node(chain, known.order, unit))
            loading.names[name] = (name,)
            loading.add_table(
                name, name, replace(known, unique=(chain.key,), row_key=(*chain.group_by, chain.hash))
            )
        for output, dataset in spec.follow.items():
            _load_follow(output, dataset, chain, (*chain.group_by, chain.hash) if sound else (), loading)


def _find_stream(name: str, spec: ChainSpec, loading: Loading) -> str | None:
    """The event stream from which a chain is made. If it does not exist, the one with the nearest name."""
    if loading.tables.get(spec.from_) == f"{spec.from_}_facts" or spec.from_ in loading.registry.broken:
        return spec.from_
    what = f"the chain `{name}` is made from `{spec.from_}`, which is not an event stream."
    streams = [n for n, table in loading.tables.items() if table == f"{n}_facts"]
    place = loading.document.place(KEY, name, "from")
    loading.report.add("chain-needs-stream", what, suggest(spec.from_, streams, "event streams"), place)
    return None if spec.from_ in loading.tables else find_nearest(spec.from_, streams)


def _load_follow(name: str, dataset: str, chain: Chain, key: tuple[str, ...], loading: Loading) -> None:
    """`key` contains the columns of the chain that the dataset must have, as far as they are known."""
    place = loading.document.place(KEY, chain.name, "follow", name)
    claimed = loading.registry.claim(name, "dataset that follows a chain", place)
    if dataset not in loading.tables and dataset not in loading.registry.broken:
        _refuse_follow(name, dataset, chain, loading)
        dataset = find_nearest(dataset, loading.tables) or dataset
    known = loading.known.get(dataset, NOTHING)
    if missing := [column for column in key if not known.may_have(column)]:
        what = (
            f"`{dataset}` has no column `{missing[0]}`, "
            f"by which `{name}` would follow the chain `{chain.name}`."
        )
        loading.report.add("unknown-column", what, suggest(missing[0], known.names or (), "columns"), place)
    if not claimed or dataset not in loading.tables or dataset in loading.registry.broken:
        loading.mark_broken(name)
    if claimed:
        if loading.right:
            table = loading.tables[dataset]
            loading.nodes.append(follow_node(name, dataset, table, chain, loading.calendar, known.order))
        loading.names[name] = (name,)
        loading.add_table(name, name, known)


def _refuse_follow(name: str, dataset: str, chain: Chain, loading: Loading) -> None:
    place = loading.document.place(KEY, chain.name, "follow", name)
    follows = f"`{name}` follows the chain `{chain.name}` with `{dataset}`"
    output_by_name = find_outputs(loading)
    if dataset in output_by_name:
        what = f"{follows}, which is a job's output, not an event stream or record set."
        join = f"LEFT SEMI JOIN {chain.name} USING ({', '.join((*chain.group_by, chain.hash))})"
        remedy = (
            "Follow a dataset that the job reads, or write a job with "
            f"`SELECT * FROM {output_by_name[dataset]} {join}`."
        )
        loading.report.add("follow-needs-dataset", what, remedy, place)
    else:
        what = f"{follows}, which is not a dataset."
        loading.report.add("unknown-dataset", what, suggest(dataset, loading.tables, "datasets"), place)


def _names(name: str, entry: object) -> Collection[str]:
    followed = entry.get("follow") if isinstance(entry, dict) else None
    return name, *(map(str, followed) if isinstance(followed, dict) else ())


CHAINS = Section(key=KEY, spec=ChainSpec, load=load, counted_as="chain", names=_names)
