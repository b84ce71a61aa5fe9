"""A request to the server, with what came of it."""

from strandline.app.invalidate import Invalidated
from strandline.app.maintain import MaintainOutcome
from strandline.app.query import QueryResult
from strandline.app.run import RunOutcome
from strandline.app.work import from_wire
from strandline.model.requests import RequestRecord
from strandline.model.verified import VerifyOutcome

from .invalidation import invalidate_document
from .maintain import maintain_document
from .query import query_document
from .run import run_document
from .verify import verify_document

_ERROR = ("slug", "message", "remedy")


def request_document(record: RequestRecord) -> dict[str, object]:
    """Who asked for what, and when. Once it is done, the fields that its verb prints follow."""
    outcome = {} if record.result is None else outcome_document(from_wire(record.result))
    return {
        "request": record.request,
        "verb": record.verb,
        "actor": record.actor,
        "status": record.status,
        "created_at": record.created_at,
        "started_at": record.started_at,
        "ended_at": record.ended_at,
        "error": {name: record.error.get(name, "") for name in _ERROR} if record.error else None,
        **outcome,
    }


def outcome_document(outcome: object) -> dict[str, object]:
    """What the verb prints as JSON."""
    match outcome:
        case RunOutcome():
            return run_document(outcome)
        case VerifyOutcome():
            return verify_document(outcome)
        case Invalidated():
            return invalidate_document(outcome)
        case QueryResult():
            return query_document(outcome)
        case MaintainOutcome():
            return maintain_document(outcome)
        case _:
            raise TypeError(f"a request cannot end with {type(outcome).__name__}")
