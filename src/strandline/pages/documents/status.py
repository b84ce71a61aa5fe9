"""The state of each dataset."""

from strandline.model.key_states import KeysStatus
from strandline.model.statuses import DatasetStatus, Overview, PartitionStatus

from .held import held_document


def status_document(overview: Overview, *, with_partitions: bool) -> dict[str, object]:
    datasets = [dataset_document(s, with_partitions=with_partitions) for s in overview.statuses]
    return {"datasets": datasets, **held_document(overview.held)}


def dataset_document(status: DatasetStatus, *, with_partitions: bool) -> dict[str, object]:
    return {
        "dataset": status.dataset,
        "kind": status.kind,
        "state": status.state,
        "since": status.since,
        "table_version": status.table_version,
        "rows": status.rows,
        "counts": dict(status.counts),
        "reason": status.reason,
        "held_by": list(status.held_by),
        **(_keys(status.keys) if status.keys else {}),
        **(
            {"partitions": [_partition(p) for p in status.partitions]}
            if with_partitions and status.partitioned_by
            else {}
        ),
    }


def _keys(keys: KeysStatus) -> dict[str, object]:
    by_status = {"current": keys.current, "reprocessing": keys.reprocessing, "failed": keys.failed}
    return {"keys": by_status, "watermark_on": keys.watermark_on}


def _partition(partition: PartitionStatus) -> dict[str, object]:
    return {
        "partition_key": partition.partition_key,
        "state": partition.state,
        "rows": partition.rows,
        "bytes": partition.bytes,
        "version": partition.version,
        "table_version": partition.table_version,
    }
