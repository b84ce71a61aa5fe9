"""A kind of node is named in its own modules and in the table of workers, nowhere else: everyone else asks a node for its traits."""

import ast
from pathlib import Path

from strandline.dispatch.workers import WORKERS
from tests.faults.kinds import KINDS

SOURCE = Path(__file__).parents[2] / "src" / "strandline"
TABLES = ("dispatch/workers.py",)
OWN_MODULES = {
    "FileSource": ("ingest/",),
    "FactDataset": ("compute/facts/", "compute/snapshot/"),
    "Quarantine": ("compute/facts/",),
    "Snapshot": ("compute/snapshot/",),
    "Chain": ("compute/chain/",),
    "Job": ("compute/job/",),
}


def find_names(tree: ast.AST) -> set[str]:
    """The definition classes that a module names."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names |= {
        node.cls.id
        for node in ast.walk(tree)
        if isinstance(node, ast.MatchClass) and isinstance(node.cls, ast.Name)
    }
    return names & OWN_MODULES.keys()


def test_a_kind_is_named_in_its_own_modules_and_the_table_of_workers_alone() -> None:
    strangers = {}
    for path in sorted(SOURCE.rglob("*.py")):
        file = path.relative_to(SOURCE).as_posix()
        if file in TABLES or file.startswith(("declare/", "model/project.py")):
            continue
        named = {
            n
            for n in find_names(ast.parse(path.read_text()))
            if not file.startswith(OWN_MODULES.get(n, ("-",)))
        }
        if named:
            strangers[file] = named

    assert strangers == {}


def test_the_fault_suite_knows_every_kind() -> None:
    """Kills, schedules and laws loop over `KINDS`, so what is missing there is never tried."""
    assert {kind.name for kind in KINDS} == {str(kind) for kind in WORKERS}
