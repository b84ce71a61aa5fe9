"""The facts and epochs of one key of a timeline."""

from strandline.app.timeline_history import Epoch, TimelineHistory


def timeline_history_document(history: TimelineHistory) -> dict[str, object]:
    state = history.state
    return {
        "timeline": history.timeline,
        "dataset": history.dataset,
        "key": dict(history.key),
        "state": state
        and {
            "epoch": state.epoch,
            "watermark_on": state.watermark_on,
            "status": state.status,
            "reason": state.reason,
            "updated_at": state.updated_at,
        },
        "facts": [
            {
                "date": fact.date,
                "row": None if fact.row is None else dict(fact.row),
                "fields": None if fact.fields is None else dict(fact.fields),
            }
            for fact in history.facts
        ],
        "unplaced": history.unplaced,
        "epochs": [_epoch(epoch) for epoch in history.epochs],
    }


def _epoch(epoch: Epoch) -> dict[str, object]:
    return {
        "epoch": epoch.epoch,
        "at": epoch.at,
        "committed_at": epoch.committed_at,
        "table_version": epoch.table_version,
        "cause": epoch.cause or None,
        "inputs": {name: {"after": after, "upto": upto} for name, (after, upto) in epoch.inputs.items()},
        "from": epoch.first_on,
        "to": epoch.last_on,
        "rows": epoch.rows,
        "rows_now": epoch.rows_now,
    }
