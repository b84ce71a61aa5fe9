"""An invalidation that was recorded."""

from strandline.app.invalidate import Invalidated
from strandline.model.invalidations import to_columns


def invalidate_document(done: Invalidated) -> dict[str, object]:
    columns = to_columns(done.invalidation.scope)
    recorded = {
        "id": done.invalidation.id,
        "scope": columns["scope"],
        "reason": done.invalidation.reason,
        "row_filter": columns["row_filter"],
        **({"partition_key": columns["partition_key"]} if columns["partition_key"] else {}),
        "dataset": done.dataset,
        "table_version": done.table_version,
        "jobs": list(done.jobs),
    }
    return {"invalidations": [recorded]}
