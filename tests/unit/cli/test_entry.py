"""The entry: verbs, exit codes, and what is imported for them."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from strandline.cli import entry, main
from strandline.cli.verbs import VERBS
from strandline.model.errors import OutsideError, WorkError
from tests.unit.cli.builders import make_shop, printed


def test_help_lists_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["--help"])

    output = capsys.readouterr().out
    assert code == 0
    assert all(f"  {verb.name} " in output for verb in VERBS)


@pytest.mark.parametrize("verb", [v.name for v in VERBS])
def test_every_verb_has_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main([verb, "--help"])

    assert code == 0
    assert "--output" in capsys.readouterr().out
    assert import_module(entry.get_verb(verb).module).__doc__


def test_an_unknown_verb_shows_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["statsu"])

    output = capsys.readouterr()
    assert (code, output.out) == (2, "")
    assert "Did you mean `status`?" in output.err
    assert "[unknown-verb]" in output.err


@pytest.mark.parametrize(
    "words",
    [
        ["query"],
        ["plan", "--nope"],
        ["backfill", "x"],
        ["run", "--output", "xml"],
        ["--output", "json"],
        ["history", "a"],
    ],
)
def test_a_wrong_call_ends_with_2_and_says_so_on_stderr(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(words)

    output = capsys.readouterr()
    assert (code, output.out) == (2, "")
    assert output.err


@pytest.mark.parametrize("placed", ["before", "after"])
def test_project_and_output_stand_before_or_after_the_verb(
    placed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_shop(tmp_path)
    options = ["--project", str(tmp_path / "jobs"), "--output", "json"]

    code = main([*options, "check"] if placed == "before" else ["check", *options])

    assert code == 0
    assert printed(capsys)["schema"] == "strandline/check/v1"


def test_no_project_is_a_wrong_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["plan", "--project", str(tmp_path)])

    assert code == 2
    assert "[project-not-found]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "expected"),
    [
        (
            WorkError("It failed.", remedy="Do this.", slug="it-failed"),
            1,
            "It failed.\n  Do this.  [it-failed]\n",
        ),
        (OutsideError("No disk."), 3, "No disk.  [outside]\n"),
        (KeyboardInterrupt(), 130, "Interrupted."),
        (ZeroDivisionError("by zero\nand more"), 3, "ZeroDivisionError: by zero\n"),
    ],
)
def test_an_error_ends_with_its_code_and_its_text(
    error: BaseException,
    code: int,
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(words: object) -> int:
        raise error

    monkeypatch.setattr(entry, "_call", fail)

    assert main(["run"]) == code
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith(expected)
    assert "Traceback" not in output.err


def test_a_trace_is_shown_only_when_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(words: object) -> int:
        raise ValueError("odd")

    monkeypatch.setattr(entry, "_call", fail)
    monkeypatch.setenv("STRANDLINE_DEBUG", "1")

    assert main(["run"]) == 3
    output = capsys.readouterr().err
    assert "Traceback" in output
    assert "[unexpected]" in output


def test_help_loads_nothing_heavy_and_reading_verbs_load_no_spark(tmp_path: Path) -> None:
    make_shop(tmp_path)
    code = f"""
import sys
from strandline.cli import main
assert main(["--help"]) == 0
heavy = {{"pyspark", "sqlalchemy", "pyarrow", "sqlglot", "pydantic", "rich", "yaml"}} & set(sys.modules)
assert not heavy, heavy
for words in (["query", "select 1"], ["quarantine", "orders"]):
    assert main([*words, "--project", {str(tmp_path)!r}]) == 0
assert "sqlalchemy" not in sys.modules
for words in (["check"], ["plan"], ["status"], ["explain", "orders"]):
    assert main([*words, "--project", {str(tmp_path)!r}]) == 0
loaded = {{"pyspark", "py4j", "delta"}} & set(sys.modules)
assert not loaded, loaded
"""

    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert ended.returncode == 0, ended.stderr


def test_a_reader_that_has_enough_is_no_error(tmp_path: Path) -> None:
    make_shop(tmp_path)
    query = (
        f"{sys.executable} -m strandline.cli query "
        f"'select * from generate_series(1, 200000)' --project {tmp_path}"
    )

    ended = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {query} | head -1"], capture_output=True, text=True
    )

    assert "Traceback" not in ended.stderr
    assert "BrokenPipe" not in ended.stderr
    assert ended.returncode == 0
