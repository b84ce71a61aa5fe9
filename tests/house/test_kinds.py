"""Only its own modules and the table of workers name a kind of node.

A section is named in its own modules and in the tuple of sections. All others ask a node for its traits and
loop over the sections, so adding a kind changes nothing else.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from strandline.declare.sections import SECTIONS
from strandline.dispatch.workers import WORKERS
from tests.faults.kinds import KINDS

SOURCE = Path(__file__).parents[2] / "src" / "strandline"
TABLES = ("dispatch/workers.py", "declare/sections.py")
DEFINITIONS = ("model/project.py", "model/timeline.py", "model/entity.py", "model/publishing.py")
OWN_MODULES = {
    "FileSource": ("declare/sources/", "ingest/"),
    "HttpSource": ("declare/sources/", "ingest/"),
    "FactDataset": ("declare/datasets/", "compute/facts/", "compute/snapshot/"),
    "Quarantine": ("declare/datasets/", "compute/facts/"),
    "Snapshot": ("declare/datasets/", "compute/snapshot/"),
    "Chain": ("declare/chains/", "compute/chain/"),
    "Job": ("declare/jobs/", "compute/job/"),
    "Timeline": ("declare/timelines/", "compute/timeline/", "compute/valuation/"),
    "Valuation": ("declare/timelines/", "compute/valuation/"),
    "Entity": ("declare/entities/", "compute/entity/"),
    "View": ("declare/views/", "compute/view/"),
    "ChangeLog": ("declare/publish/", "publish/change_log/"),
    "Trigger": ("declare/triggers/", "publish/trigger/"),
}


@cache
def parse_source() -> dict[str, ast.Module]:
    """By path: every module of the source."""
    return {
        path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text())
        for path in sorted(SOURCE.rglob("*.py"))
    }


@cache
def find_kinds() -> dict[str, str]:
    """Each definition class, with the word for its kind."""
    kinds = {}
    for module in parse_source().values():
        for made in (node for node in module.body if isinstance(node, ast.ClassDef)):
            for line in made.body:
                if isinstance(line, ast.AnnAssign) and ast.unparse(line).startswith(
                    "kind: ClassVar[NodeKind] = "
                ):
                    kinds[made.name] = ast.literal_eval(line.value.args[0])  # type: ignore[union-attr]
    return kinds


def find_named(module: ast.Module) -> Iterator[str]:
    """The definition classes that a module names, whether it uses them or only imports them."""
    classes = find_kinds()
    for node in ast.walk(module):
        match node:
            case ast.Name(id=name) | ast.alias(name=name) | ast.Attribute(attr=name) if name in classes:
                yield name


def find_words(module: ast.Module) -> Iterator[str]:
    """The words for kinds that a module makes a kind of, or compares one with."""
    words = set(find_kinds().values())
    for node in ast.walk(module):
        asks: list[ast.AST] = []
        match node:
            case ast.Compare(left=left, comparators=right) if any(map(is_kind, (left, *right))):
                asks = [left, *right]
            case ast.Match(subject=subject, cases=cases) if is_kind(subject):
                asks = [case.pattern for case in cases]
            case ast.Subscript(slice=key, value=table) if is_kind(key):
                asks = [table]
            case ast.Call(func=ast.Name(id="NodeKind"), args=args):
                asks = [*args]
        for ask in asks:
            yield from (n.value for n in ast.walk(ask) if isinstance(n, ast.Constant) and n.value in words)


def is_kind(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute | ast.Name) and ast.unparse(node).split(".")[-1] == "kind"


def test_a_kind_is_named_in_its_own_modules_and_the_table_of_workers_alone() -> None:
    strangers = {
        file: named
        for file, module in parse_source().items()
        if file not in (*TABLES, *DEFINITIONS)
        and (named := {name for name in find_named(module) if not file.startswith(OWN_MODULES[name])})
    }

    assert strangers == {}


def test_the_word_for_a_kind_is_compared_with_nowhere() -> None:
    asking = {
        file: words
        for file, module in parse_source().items()
        if file not in DEFINITIONS and (words := set(find_words(module)))
    }

    assert asking == {}


def test_every_definition_class_is_watched() -> None:
    assert find_kinds().keys() == OWN_MODULES.keys()


def find_sections(module: ast.Module) -> Iterator[str]:
    """The keys of sections that stand in a module, except as a word of a message."""
    keys = {section.key for section in SECTIONS}
    calls = [n for n in ast.walk(module) if isinstance(n, ast.Call) and ast.unparse(n.func) == "suggest"]
    spoken = {id(argument) for call in calls for argument in call.args}
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and node.value in keys and id(node) not in spoken:
            yield node.value


def test_a_section_is_named_in_its_own_modules_alone() -> None:
    strangers = {
        file: named
        for file, module in parse_source().items()
        if file.startswith("declare/")
        and (named := {key for key in find_sections(module) if not file.startswith(f"declare/{key}/")})
    }

    assert strangers == {}


@pytest.mark.parametrize(
    ("code", "named", "words"),
    [
        ("isinstance(node.definition, Job)", {"Job"}, set()),
        ("from strandline.model.project import Chain", {"Chain"}, set()),
        ("if node.kind == 'chain': pass", set(), {"chain"}),
        ("x = node.kind in ('job', 'facts')", set(), {"job", "facts"}),
        ("match task.kind:\n  case 'source': pass", set(), {"source"}),
        ("x = {'snapshot': 2}[status.kind]", set(), {"snapshot"}),
        ("NodeKind('job')", set(), {"job"}),
        ("x = {'source': 1}; y = scope.text == 'job'; z = node.kind == other.kind", set(), set()),
    ],
)
def test_the_watch_sees_a_kind_that_is_named(code: str, named: set[str], words: set[str]) -> None:
    module = ast.parse(code)

    assert (set(find_named(module)), set(find_words(module))) == (named, words)


def test_the_watch_sees_a_section_that_is_named() -> None:
    module = ast.parse("document.place('jobs', 1); entries['chains']; suggest(name, known, 'datasets')")

    assert set(find_sections(module)) == {"jobs", "chains"}


def test_the_fault_suite_knows_every_kind() -> None:
    """Kills, schedules and laws loop over `KINDS`, so what is missing there is never tried."""
    assert {kind.name for kind in KINDS} == {str(kind) for kind in WORKERS}
