"""What was refused, by reason."""

from strandline.app.quarantine import QuarantineContent, Refused


def quarantine_document(content: QuarantineContent) -> dict[str, object]:
    return {
        "rows": [_row(r) for r in content.rows],
        "counts": dict(content.counts),
        "examples": {slug: [_row(r) for r in rows] for slug, rows in content.examples.items()},
        "total": content.total,
    }


def _row(refused: Refused) -> dict[str, object]:
    return {
        "source_position": list(refused.source_position),
        "reason": refused.reason,
        "slug": refused.slug,
        "payload": refused.payload,
        "ingested_at": refused.ingested_at,
    }
