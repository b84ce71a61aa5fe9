"""What was compacted and removed, table by table."""

from dataclasses import asdict

from strandline.app.maintain import MaintainOutcome
from strandline.model.maintained import Maintained


def maintain_document(outcome: MaintainOutcome) -> dict[str, object]:
    return {"tables": [_table(t) for t in outcome.tables], **_forgotten(outcome)}


def _forgotten(outcome: MaintainOutcome) -> dict[str, object]:
    return {"deliveries": {"removed": outcome.forgotten}} if outcome.forgotten else {}


def _table(table: Maintained) -> dict[str, object]:
    return {**asdict(table), "notes": list(table.notes)}
