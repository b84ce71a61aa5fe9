"""Plays the README of an example and queries what was published, for the tests of each."""

import io
import json
import re
import shutil
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from examples.play import EXAMPLES, MADE_BY_RUNNING, Command, read_story, run_command
from strandline.cli import main as strandline
from tests.harness import PATHS


@dataclass
class Played:
    """The exit code and the output of a command."""

    command: Command
    code: int
    printed: str


def commands_of(example: str) -> tuple[Command, ...]:
    return tuple(part for part in read_story(EXAMPLES / example / "README.md") if isinstance(part, Command))


def copy_project(example: str, folder: Path) -> Path:
    return Path(shutil.copytree(EXAMPLES / example, folder / example, ignore=MADE_BY_RUNNING))


def play(commands: Sequence[Command], after: Callable[[Command], None]) -> list[Played]:
    """Run commands in the working directory, one after the other. `after` sees the result of each.

    Each run uses another of the paths that depend on sizes, so each reads what another one wrote.
    """
    played = []
    paths = cycle(PATHS.values())
    for command in commands:
        printed = io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed):
            if command.words[:2] in (["strandline", "run"], ["strandline", "backfill"]):
                patch.setenv("STRANDLINE_THRESHOLDS", next(paths))
            code = run_command(command)
        played.append(Played(command=command, code=code, printed=printed.getvalue()))
        after(command)
    return played


def assert_shown(ended: Played) -> None:
    """A README shows what the command prints. In it `...` stands for anything."""
    shown = "\n".join(line.rstrip() for line in ended.command.shown)
    printed = "\n".join(line.rstrip() for line in ended.printed.rstrip("\n").splitlines())
    as_shown = re.escape(shown).replace(re.escape("..."), ".*")
    assert re.fullmatch(as_shown, printed, re.DOTALL), f"{ended.command.text} printed\n{printed}"


def ask(*arguments: str) -> Any:
    answer = io.StringIO()
    with redirect_stdout(answer):
        code = strandline([*arguments, "--output", "json"])
    assert code == 0, f"{arguments} ended with {code}"
    return json.loads(answer.getvalue())


def query(sql: str) -> list[dict[str, Any]]:
    return rows_of(ask("query", sql))


def rows_of(answer: Any) -> list[dict[str, Any]]:
    names = [column if isinstance(column, str) else column["name"] for column in answer["columns"]]
    return [dict(zip(names, row, strict=True)) for row in answer["rows"]]


def in_some_order(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)
