"""Everything that the documentation names exists: laws, tests, links, verbs, decisions."""

import ast
import re
from pathlib import Path

import pytest

from strandline.cli.verbs import VERBS
from strandline.declare import load_project

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CHANGELOG.md", *ROOT.glob("examples/*/README.md"), *DOCS.rglob("*.md")]
)
INVARIANTS = (DOCS / "architecture" / "invariants.md").read_text()
LAWS = {
    int(number): re.findall(r"^- `([\w/.]+)::(\w+)`$", body, re.MULTILINE)
    for number, body in re.findall(
        r"^## L(\d+) [^\n]*\n(.*?)(?=^## |\Z)", INVARIANTS, re.MULTILINE | re.DOTALL
    )
}


def test_every_law_is_listed_with_a_test_that_holds_it() -> None:
    assert list(LAWS) == list(range(1, 15))
    assert all(LAWS.values()), [number for number, tests in LAWS.items() if not tests]


@pytest.mark.parametrize(("file", "test"), sorted({test for tests in LAWS.values() for test in tests}))
def test_a_test_named_by_a_law_exists(file: str, test: str) -> None:
    functions = {
        node.name
        for node in ast.walk(ast.parse((ROOT / file).read_text()))
        if isinstance(node, ast.FunctionDef)
    }

    assert test in functions


def test_every_test_named_by_a_law_was_understood() -> None:
    named = INVARIANTS.count("::test_")

    assert named == sum(len(tests) for tests in LAWS.values())


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text())

    missing = [target for target in targets if "://" not in target and not (page.parent / target).exists()]

    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_files_and_folders_that_are_named_exist(page: Path) -> None:
    """A path in backticks is relative to the repository or to the package.

    Examples are `tests/house` and `compute/facts/worker.py`.
    """
    folders = (ROOT, ROOT / "src" / "strandline")
    first = {path.name for folder in folders for path in folder.iterdir() if path.is_dir()}
    named = re.findall(r"`(\w+/[\w/.]*\w)`", page.read_text())

    missing = [
        path
        for path in named
        if path.split("/")[0] in first and not any((folder / path).exists() for folder in folders)
    ]

    assert missing == []


@pytest.mark.parametrize("page", ["README.md", "docs/reference/command-line.md"])
def test_every_verb_is_told_and_no_other(page: str) -> None:
    listed = re.findall(r"^\| `([\w-]+)[^`]*` \|", (ROOT / page).read_text(), re.MULTILINE)

    assert {verb.name for verb in VERBS} == set(listed)


def test_decisions_are_numbered_without_a_gap() -> None:
    pages = sorted((DOCS / "architecture" / "adr").glob("*.md"))

    assert [page.read_text().split(".")[0] for page in pages] == [
        f"# {number}" for number in range(1, len(pages) + 1)
    ]
    assert [int(page.name[:4]) for page in pages] == list(range(1, len(pages) + 1))


def test_every_whole_project_that_is_shown_loads(tmp_path: Path) -> None:
    blocks = [
        b
        for page in PAGES
        for b in re.findall(r"^```yaml\n(project:.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    ]

    for block in blocks:
        (tmp_path / "strandline.yaml").write_text(block)
        load_project(tmp_path, {})

    assert blocks
