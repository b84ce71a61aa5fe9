"""What a rebuilt catalog contains."""

from dataclasses import asdict

from strandline.app.rebuild_catalog import Rebuilt


def rebuilt_document(done: Rebuilt) -> dict[str, object]:
    return {
        "catalog": done.catalog,
        "damaged": str(done.damaged) if done.damaged else None,
        "tables": [asdict(table) for table in done.tables],
        **({"notes": list(done.notes)} if done.notes else {}),
    }
