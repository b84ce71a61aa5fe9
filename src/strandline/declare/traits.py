"""The traits of each kind of node that can be declared."""

from strandline.model.project import Chain, FactDataset, FileSource, Job, Language, Mode
from strandline.model.traits import Facts, OnClock, Recount, Traits, Writing


def source_traits(source: FileSource) -> Traits:
    return Traits(
        how=f"Files matching {source.files} are read once and every row is appended as it came.",
        counted_as="source",
        drawn_under="sources",
        drawn_from=0,
        writing=Writing.RECEIVES,
        answers_invalidations=False,
        runs_code=False,
        pattern=source.files,
        starts_empty=source.format.holds_messages,
        complete=source.complete,
    )


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


def facts_traits(dataset: FactDataset) -> Traits:
    return Traits(
        how="What the source received is decoded once; what passes is appended.",
        counted_as="fact dataset",
        drawn_under="facts",
        drawn_from=1,
        key=dataset.record_set.scope_key if dataset.record_set else dataset.identity,
        writing=Writing.APPENDS,
        answers_invalidations=False,
        runs_code=False,
        recount=Recount.ON_OVERWRITE,
        counts_offers=True,
        facts=_facts(dataset),
        declares_columns=True,
    )


def quarantine_traits(dataset: FactDataset) -> Traits:
    return Traits(
        how="What the source received is decoded once; what fails is appended, with the reason.",
        counted_as="",
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


def snapshot_traits(dataset: FactDataset) -> Traits:
    assert dataset.record_set is not None
    key = dataset.record_set.scope_key
    return Traits(
        how=f"The newest fact of each key ({', '.join(key)}): "
        "new facts are compared with the row of their key, and what differs is replaced.",
        counted_as="",
        drawn_under="snapshots",
        drawn_from=2,
        key=key,
        key_is_named_by="each fact names its key",
        answers_invalidations=False,
        runs_code=False,
        keeps_deleted=True,
        facts=_facts(dataset),
        declares_columns=True,
    )


def chain_traits(chain: Chain) -> Traits:
    rule = f"{chain.head.kind} {chain.head.column}".replace("_", " ").strip()
    return Traits(
        how=f"The branch of the best head ({rule}) among the blocks of `{chain.blocks}`: only numbers whose block differs are replaced.",
        counted_as="chain",
        drawn_under="chains",
        drawn_from=2,
        key=chain.key,
        key_is_named_by="each announced block names its number",
        answers_invalidations=False,
        runs_code=False,
        recount=Recount.WHEN_WHOLE,
        range_column=chain.number,
    )


def job_traits(job: Job, *, counted_as: str = "job") -> Traits:
    return Traits(
        how=_how(job),
        counted_as=counted_as,
        key=job.key,
        writing=Writing.INSERTS if job.unique_key else Writing.REPLACES,
        clock=OnClock.EVERYTHING if job.uses_as_of else OnClock.NOTHING,
        whole=job.mode is Mode.FULL,
        refuses_widening=job.strict_incremental,
        partitioning=job.partition,
        range_column=job.key[-1] if job.mode in (Mode.CURSOR, Mode.PARTITION) else "",
        scopes_are="partitions"
        if job.partition
        else f"values of {job.key[0]}"
        if job.mode is Mode.CURSOR
        else "keys",
        quiet_parts=("final_after", "lookup"),
    )


def _how(job: Job) -> str:
    if job.mode is Mode.FULL:
        return "Mode `full`: computed anew as a whole whenever an input changes."
    return _how_incremental(job) + (
        " It uses :as_of, so it is computed anew as a whole when that moves." if job.uses_as_of else ""
    )


def _how_incremental(job: Job) -> str:
    code, key = "SQL" if job.language is Language.SQL else "Python", ", ".join(job.key)
    if job.partition is not None:
        final = (
            f", once it lies {job.partition.final_after} behind the newest"
            if job.partition.final_after is not None
            else ""
        )
        return f"Mode `partition`: the {code} is run for the partitions of {key} that a change touches, and each is replaced whole{final}."
    if job.unique_key:
        new = f"rows whose ({', '.join(job.unique_key)}) is new are inserted; nothing leaves"
        return f"Mode `cursor`, appending: the {code} is run for the values of {key} that a change touches, and {new}."
    what = f"values of {key}" if job.mode is Mode.CURSOR else f"keys ({key})"
    return f"Mode `{job.mode}`: the {code} is run for the {what} that a change touches, and only those are replaced."
