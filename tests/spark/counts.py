"""The counts of L10, read from the catalog and held against the tables."""

from strandline.app.workspace import open_workspace
from tests.harness import TestProject

PARTS = ("accepted", "duplicates", "quarantined", "passed_over")


def assert_conserved(project: TestProject, *datasets: str) -> dict[str, dict[str, int]]:
    """Check L10 and return the counts.

    Over all commits, offered = accepted + duplicates + quarantined + passed over, and the tables hold exactly
    these rows.
    """
    with open_workspace(project.folder) as workspace:
        observed = workspace.observe()
    counts_by_dataset = {}
    for name in datasets:
        counts = dict(observed.view.nodes[f"{name}_facts"].counts)
        assert counts["offered"] == sum(counts[part] for part in PARTS), counts
        assert count(project, f"{name}_facts") == counts["accepted"] + counts["derived"], counts
        refused = count(project, f"{name}_quarantine") if f"{name}_quarantine" in observed.tables else 0
        assert refused == counts["quarantined"], counts
        counts_by_dataset[name] = counts
    return counts_by_dataset


def count(project: TestProject, dataset: str) -> int:
    ((rows,),) = project.query(f"select count(*) from {dataset}")
    assert isinstance(rows, int)
    return rows
