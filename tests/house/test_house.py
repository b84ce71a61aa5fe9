"""The house rules hold, and the result of `make setup` can be trusted."""

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from strandline.model.errors import OutsideError
from strandline.spark import jars

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


@pytest.mark.parametrize(
    "command",
    [("ruff", "check"), ("ruff", "format", "--check"), ("mypy",), ("lint-imports", "--no-logo")],
    ids=["lint", "format", "types", "imports"],
)
def test_the_house_rules_hold(command: tuple[str, ...]) -> None:
    checked = subprocess.run([BIN / command[0], *command[1:]], cwd=ROOT, capture_output=True, text=True)

    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_setup_can_load_the_list_of_jars_without_any_package() -> None:
    code = f"import runpy; runpy.run_path({jars.__file__!r})"

    loaded = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True)

    assert loaded.returncode == 0, loaded.stderr


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache that needs two small jars, with a resolver that provides `<name>` for each."""
    small = tuple(
        jars.Jar(
            group="org.example", artifact=name, version="1", sha256=hashlib.sha256(name.encode()).hexdigest()
        )
        for name in ("left", "right")
    )

    def resolve(wanted: tuple[jars.Jar, ...], scratch: Path) -> list[Path]:
        for jar in wanted:
            (scratch / jar.file_name).write_text(jar.artifact)
        return [scratch / jar.file_name for jar in wanted]

    monkeypatch.setenv("STRANDLINE_JARS", str(tmp_path / "jars"))
    monkeypatch.setattr(jars, "JARS", small)
    monkeypatch.setattr(jars, "_resolve", resolve)
    return tmp_path / "jars"


def test_jars_are_found_once_they_are_resolved_and_the_scratch_is_gone(folder: Path) -> None:
    assert jars.find_jars() is None

    resolved = jars.resolve_jars()

    assert resolved == jars.find_jars() == (folder / "left-1.jar", folder / "right-1.jar")
    assert sorted(path.name for path in folder.iterdir()) == ["left-1.jar", "right-1.jar", "verified.json"]


@pytest.mark.usefixtures("folder")
def test_right_jars_are_kept_without_asking_the_resolver(monkeypatch: pytest.MonkeyPatch) -> None:
    resolved = jars.resolve_jars()
    monkeypatch.setattr(jars, "_resolve", lambda wanted, scratch: pytest.fail("asked"))

    assert jars.resolve_jars() == resolved


def test_a_jar_cut_short_is_not_found(folder: Path) -> None:
    jars.resolve_jars()

    (folder / "left-1.jar").write_text("le")

    assert jars.find_jars() is None


def test_a_jar_that_rotted_at_the_same_size_is_brought_again(folder: Path) -> None:
    jars.resolve_jars()
    (folder / "left-1.jar").write_text("lost")

    jars.resolve_jars()

    assert (folder / "left-1.jar").read_text() == "left"


def test_a_jar_with_another_checksum_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve_wrongly(wanted: tuple[jars.Jar, ...], scratch: Path) -> list[Path]:
        (scratch / "wrong.jar").write_text("wrong")
        return [scratch / "wrong.jar" for _ in wanted]

    monkeypatch.setattr(jars, "_resolve", resolve_wrongly)

    with pytest.raises(OutsideError) as refused:
        jars.resolve_jars()

    assert refused.value.slug == "jar-with-wrong-checksum"
    assert jars.find_jars() is None
    assert list(folder.iterdir()) == []


def test_unit_tests_mirror_the_packages() -> None:
    """Each folder of `tests/unit` is a package of the source, and contains all unit tests."""
    unit = ROOT / "tests" / "unit"
    folders = {path.parent.relative_to(unit) for path in unit.rglob("test_*.py")}

    astray = [
        str(folder)
        for folder in sorted(folders)
        if folder == Path() or not (ROOT / "src" / "strandline" / folder / "__init__.py").exists()
    ]

    assert astray == []
