"""The nodes of a fact dataset, and their traits."""

from strandline.model.node import By, Input, NewRows, Node
from strandline.model.project import Calendar, FactDataset, Quarantine, Snapshot
from strandline.model.traits import Facts, Recount, Traits, Writing

from .config import facts_config, quarantine_config


def dataset_nodes(dataset: FactDataset, calendar: Calendar) -> tuple[Node, ...]:
    """The facts, the quarantine and, for a record set, the snapshot."""
    columns = () if dataset.takes_other_columns else tuple(column.name for column in dataset.columns)
    received = Input(name=dataset.source, dataset=dataset.source, relation=NewRows())
    facts = Node(
        name=f"{dataset.name}_facts",
        inputs=(received,),
        definition=dataset,
        config=facts_config(dataset, calendar),
        traits=_facts_traits(dataset),
        columns=columns,
    )
    quarantine = Node(
        name=f"{dataset.name}_quarantine",
        inputs=(received,),
        definition=Quarantine(facts=dataset),
        config=quarantine_config(dataset, calendar),
        traits=_quarantine_traits(dataset),
    )
    if dataset.record_set is None:
        return facts, quarantine
    snapshot = Node(
        name=dataset.name,
        inputs=(
            Input(name=facts.name, dataset=facts.name, relation=By(columns=dataset.record_set.scope_key)),
        ),
        definition=Snapshot(facts=dataset),
        config=facts.config,
        traits=_snapshot_traits(dataset),
        columns=columns,
    )
    return facts, quarantine, snapshot


def _facts(dataset: FactDataset) -> Facts:
    record_set = dataset.record_set
    return Facts(
        name=dataset.name,
        key=record_set.key if record_set else dataset.identity,
        order_by=record_set.order_by if record_set else (),
        table=f"{dataset.name}_facts",
        quarantine=f"{dataset.name}_quarantine",
        snapshot=dataset.name if record_set else "",
    )


def _facts_traits(dataset: FactDataset) -> Traits:
    return Traits(
        how="What the source received is decoded once. Rows that pass are appended.",
        drawn_under="facts",
        drawn_from=1,
        key=dataset.record_set.scope_key if dataset.record_set else dataset.identity,
        writing=Writing.APPENDS,
        answers_invalidations=False,
        runs_code=False,
        recount=Recount.ON_OVERWRITE,
        counts_offers=True,
        facts=_facts(dataset),
        time_unit=dataset.time_unit,
        declares_columns=True,
    )


def _quarantine_traits(dataset: FactDataset) -> Traits:
    return Traits(
        how="What the source received is decoded once. Rows that fail are appended, with the reason.",
        drawn_under="quarantines",
        drawn_from=1,
        writing=Writing.APPENDS,
        answers_invalidations=False,
        runs_code=False,
        may_lack_table=True,
        recount=Recount.ON_OVERWRITE,
        facts=_facts(dataset),
        holds_refused=True,
        beside=f"{dataset.name}_facts",
    )


def _snapshot_traits(dataset: FactDataset) -> Traits:
    assert dataset.record_set is not None
    key = dataset.record_set.scope_key
    return Traits(
        how=f"The newest fact of each key ({', '.join(key)}): "
        "new facts are compared with the row of their key, and rows that differ are replaced.",
        drawn_under="snapshots",
        drawn_from=2,
        key=key,
        key_is_named_by="each fact names its key",
        answers_invalidations=False,
        runs_code=False,
        keeps_deleted=True,
        facts=_facts(dataset),
        time_unit=dataset.time_unit,
        declares_columns=True,
    )
