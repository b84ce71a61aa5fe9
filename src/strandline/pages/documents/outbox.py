"""Endpoints, triggers, and one delivery with its attempts. Nothing here is a secret."""

from strandline.app.outbox import DeliveryDetail, EndpointStatus, Page, TriggerStatus
from strandline.model.deliveries import Outcome

from .deliveries import delivery_document


def page_document(page: Page) -> dict[str, object]:
    return {
        "counts": {str(status): count for status, count in page.counts.items()},
        "deliveries": [delivery_document(record) for record in page.deliveries],
        "next": None if page.next is None else str(page.next),
    }


def delivery_detail_document(detail: DeliveryDetail) -> dict[str, object]:
    """`attempts` is their number, `attempted` what came of each."""
    attempted = [dict(attempt) for attempt in detail.attempts]
    return {**delivery_document(detail.record), "attempted": attempted}


def endpoint_document(endpoint: EndpointStatus) -> dict[str, object]:
    state = endpoint.state
    word = "disabled" if state.disabled else "failing" if state.is_paused else "enabled"
    return {
        "endpoint": endpoint.name,
        "host": endpoint.host,
        "ordering": endpoint.ordering,
        "state": word,
        "reason": state.disabled or None,
        "failing_since": state.failing_since,
        "deliveries": dict(endpoint.counts),
    }


def trigger_document(trigger: TriggerStatus) -> dict[str, object]:
    return {
        "trigger": trigger.name,
        "inputs": list(trigger.inputs),
        "endpoints": list(trigger.endpoints),
        "deliveries": {str(status): count for status, count in trigger.counts.items()},
    }


def attempt_document(endpoint: str, outcome: Outcome) -> dict[str, object]:
    return {
        "endpoint": endpoint,
        "delivered": outcome.delivered,
        "status_code": outcome.status_code,
        "error": outcome.error or None,
        "seconds": round(outcome.seconds, 3),
    }
