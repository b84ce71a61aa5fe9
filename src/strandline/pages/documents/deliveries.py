"""Deliveries, how many there are of each status, and what a call did about them."""

from strandline.app.deliveries import DeliveriesOutcome
from strandline.model.deliveries import DeliveryRecord, EndpointState


def deliveries_document(outcome: DeliveriesOutcome) -> dict[str, object]:
    extra: dict[str, object] = {
        "cancelled": outcome.cancelled or None,
        "enabled": outcome.enabled,
        "replayed": outcome.replayed,
        "sent": count_sent(outcome) if outcome.sent else None,
        "endpoints": [_troubled(state) for state in outcome.troubled] or None,
        "notes": list(outcome.filled.lines) or None,
    }
    return {
        "counts": {str(status): count for status, count in outcome.counts.items()},
        "deliveries": [delivery_document(record) for record in outcome.deliveries],
        **{name: value for name, value in extra.items() if value is not None},
    }


def _troubled(state: EndpointState) -> dict[str, object]:
    return {
        "endpoint": state.endpoint,
        "state": "disabled" if state.disabled else "failing",
        "reason": state.disabled or None,
        "failing_since": state.failing_since,
    }


def delivery_document(record: DeliveryRecord) -> dict[str, object]:
    return {
        "id": record.id,
        "event_id": record.event_id,
        "event_type": record.event_type,
        "trigger": record.trigger,
        "endpoint": record.endpoint,
        "key": record.key,
        "source_timestamp": record.source_timestamp,
        "status": str(record.status),
        "attempts": record.attempts,
        "next_at": record.next_at,
        "created_at": record.created_at,
        "ended_at": record.ended_at,
        "status_code": record.status_code,
        "error": record.error or None,
    }


def count_sent(outcome: DeliveriesOutcome) -> dict[str, dict[str, int]]:
    """By endpoint and by what came of an attempt."""
    counts: dict[str, dict[str, int]] = {}
    for (endpoint, word), count in sorted(outcome.sent.counts.items() if outcome.sent else ()):
        counts.setdefault(endpoint, {})[word] = count
    return counts
