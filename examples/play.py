"""Play the story of an example: `python examples/play.py [NAME]`, or `make demo EXAMPLE=NAME`.

The story is the example's README. Each section with commands is printed and its commands are run, in one
process and one Spark session, on a copy of the project in a temporary folder. So users read, play and test
the same commands.
"""

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator, Sequence
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent
MADE_BY_RUNNING = shutil.ignore_patterns(
    "data", ".strandline", "received", "served", "subscribed", "__pycache__"
)
SHOWS_CODE = ' || echo "exit code $?"'
"""The end of a command that may fail. The story goes on, as it does in a shell."""
IN_BACKGROUND = " &"
"""The end of a command that goes on beside the story. There is one at a time: `kill %1` ends it."""
_ENDS_WITHIN = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prose:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A line that begins with `$ ` in a console block, and the output that the block shows below it.

    In that output `...` stands for anything.
    """

    text: str
    shown: tuple[str, ...] = ()

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text.removesuffix(SHOWS_CODE).removesuffix(IN_BACKGROUND))

    @property
    def may_fail(self) -> bool:
        return self.text.endswith(SHOWS_CODE)


Part = Heading | Prose | Command


def read_story(readme: Path) -> tuple[Part, ...]:
    """The title with its introduction, and each section that has commands."""
    sections = re.split(r"^(?=#+ )", readme.read_text(encoding="utf-8"), flags=re.MULTILINE)
    stories = [tuple(_read_section(section)) for section in sections if section.strip()]
    return tuple(
        part
        for number, story in enumerate(stories)
        if number == 0 or any(isinstance(part, Command) for part in story)
        for part in story
    )


def _read_section(section: str) -> Iterator[Part]:
    heading, _, body = section.partition("\n")
    yield Heading(text=heading.lstrip("# "))
    for number, piece in enumerate(
        re.split(r"^```console\n(.*?)^```\n", body, flags=re.MULTILINE | re.DOTALL)
    ):
        if number % 2:
            yield from _read_commands(piece)
        else:
            yield from (
                Prose(text=paragraph.strip())
                for paragraph in re.split(r"\n\s*\n", piece)
                if paragraph.strip()
            )


def _read_commands(block: str) -> Iterator[Command]:
    for typed in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, *shown = typed.rstrip("\n").splitlines()
        yield Command(text=command, shown=tuple(shown))


def run_command(command: Command) -> int:
    """Run a command in the working directory.

    `strandline` runs in this process, so that one Spark session serves all commands, and `export` sets a
    variable of it. Other programs run in their own process, and so does what runs in the background. A
    command that may fail shows its exit code and ends well.
    """
    if command.text.endswith(IN_BACKGROUND):
        _start(command.words)
        return 0
    code = _run_program(command.words)
    if code and command.may_fail:
        print(f"exit code {code}")
        return 0
    return code


def _run_program(words: list[str]) -> int:
    program, *arguments = words
    if program == "export":
        name, _, value = arguments[0].partition("=")
        os.environ[name] = value
        return 0
    if program == "kill":
        _background[-1].terminate()
        return 0
    if program == "wait":
        return _background.pop().wait(_ENDS_WITHIN)
    if program == "strandline":
        # Imported here, because a story can be read without the engine.
        from strandline.cli import main as strandline

        return strandline(arguments)
    ended = subprocess.run(
        [sys.executable if program == "python" else program, *arguments],
        check=False,
        stdout=subprocess.PIPE,
        text=True,
    )
    print(ended.stdout, end="")
    return ended.returncode


_background: list[subprocess.Popen[bytes]] = []


def _start(words: list[str]) -> None:
    """Start a program in the background. `2> FILE` at its end is where it says what it does."""
    *words, _, log = words
    with Path(log).open("ab") as said:
        program = [sys.executable, "-m", "strandline.cli"] if words[0] == "strandline" else words[:1]
        _background.append(
            subprocess.Popen([*program, *words[1:]], stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        )


def end_background() -> None:
    """End what a story that stopped has left."""
    while _background:
        process = _background.pop()
        process.kill()
        process.wait()


def run_and_show(command: Command) -> int:
    """Run a command and show what it prints.

    The output of a run is shown without the table of the plan, because the story shows the plan once with
    `plan`.
    """
    printed = io.StringIO()
    with redirect_stdout(printed):
        code = run_command(command)
    blocks = printed.getvalue().split("\n\n")
    if command.words[:2] == ["strandline", "run"] and len(blocks) > 2:
        blocks[0] = "(the plan, as `strandline plan` prints it)"
    print("\n\n".join(blocks), end="", flush=True)
    return code


def tell(part: Part) -> None:
    match part:
        case Heading(text=text):
            print("\n" + _bold(f"{text}\n{'=' * len(text)}"))
        case Prose(text=text) if text.startswith(("|", "- ", "```")):
            print("\n" + text)
        case Prose(text=text):
            print("\n" + textwrap.fill(" ".join(text.split()), width=_width()))
        case Command(text=text):
            print("\n" + _bold(f"$ {text}"))
    sys.stdout.flush()


def _bold(text: str) -> str:
    return f"\033[1m{text}\033[0m" if sys.stdout.isatty() else text


def _width() -> int:
    return min(shutil.get_terminal_size((110, 24)).columns, 110)


def play(example: Path) -> int:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="strandline-demo-", ignore_cleanup_errors=True) as folder:
        project = Path(shutil.copytree(example, Path(folder) / example.name, ignore=MADE_BY_RUNNING))
        with chdir(project):
            try:
                for part in read_story(project / "README.md"):
                    tell(part)
                    if isinstance(part, Command) and (code := run_and_show(part)) != 0:
                        print(f"\nThe story stops here: this command ended with {code}.", file=sys.stderr)
                        return code
            finally:
                end_background()
    print(
        f"\nThat took {time.monotonic() - began:.0f} seconds. "
        f"Play it yourself in {os.path.relpath(example)}: the commands are the same."
    )
    return 0


def main(arguments: Sequence[str]) -> int:
    name = arguments[0] if arguments else "property_tax"
    names = sorted(path.parent.name for path in EXAMPLES.glob("*/README.md"))
    if name not in names:
        print(f"There is no example `{name}`; there is: {', '.join(names)}.", file=sys.stderr)
        return 2
    return play(EXAMPLES / name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
