"""The facts about one key of a record set."""

from strandline.app.history import Fact, History


def history_document(history: History) -> dict[str, object]:
    return {"facts": [_fact(fact) for fact in history.facts]}


def _fact(fact: Fact) -> dict[str, object]:
    return {
        "source_at": fact.source_at,
        "source_ts": fact.source_ts,
        "ingested_at": fact.ingested_at,
        "source_position": list(fact.source_position),
        "table_version": fact.table_version,
        "deleted": fact.deleted,
        "won": fact.won,
        "row": dict(fact.row),
    }
