"""The entry: find the verb, load its module, call it, and turn the outcome into an exit code."""

import argparse
import gc
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import NoReturn

from strandline.model.errors import CallError, StrandlineError

from . import interrupts
from .verbs import VERBS, Verb

INTERRUPTED = tuple(interrupts.exit_code(number) for number in (signal.SIGINT, signal.SIGTERM))
OUTPUTS = ("table", "json", "csv")
"""What every verb can print. A verb that can print more has its own OUTPUTS."""
_TAKING_A_VALUE = ("--project", "--output")


def main(argv: list[str] | None = None) -> int:
    """Do what the words say, and return the exit code.

    Without `argv` this process is the command line, and a signal ends it.
    """
    if argv is not None:
        return _answer(argv)
    interrupts.install()
    code = _answer(sys.argv[1:])
    if code in INTERRUPTED:
        interrupts.leave(code)
    return code


def _answer(words: Sequence[str]) -> int:
    try:
        code = _call(words)
        sys.stdout.flush()
        return code
    except SystemExit as ended:  # argparse, after --help
        return ended.code if isinstance(ended.code, int) else 2
    except StrandlineError as error:
        _complain(str(error))
        return error.exit_code
    except KeyboardInterrupt as stopped:
        _complain(interrupts.sentence())
        return interrupts.exit_code(
            signal.SIGTERM if isinstance(stopped, interrupts.Terminated) else signal.SIGINT
        )
    except BrokenPipeError:
        # The reader has enough. Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except Exception as error:  # noqa: BLE001 the last resort: one clear line instead of a trace
        if os.environ.get("STRANDLINE_DEBUG") == "1":
            traceback.print_exc()
        _complain(_unexpected(error))
        return 3


def _call(words: Sequence[str]) -> int:
    place = find_verb(words)
    if place is None:
        return _without_verb(words)
    verb = get_verb(words[place])
    module = _load(verb)
    parser = Parser(
        prog=f"strandline {verb.name}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.add_arguments(parser)
    common = parser.add_argument_group("everywhere")
    common.add_argument(
        "--project",
        metavar="DIR",
        default=".",
        help="the project's folder, or one inside it; by default the working directory",
    )
    outputs = getattr(module, "OUTPUTS", OUTPUTS)
    common.add_argument(
        "--output", choices=outputs, default="table", help="how results are printed; by default `table`"
    )
    call = parser.parse_args([*words[:place], *words[place + 1 :]])
    return int(module.run(call))


def _load(verb: Verb) -> ModuleType:
    """Import without garbage collection.

    Importing creates much and leaves no garbage, and looking for it would take a fifth of the start.
    """
    gc.disable()
    try:
        return import_module(verb.module)
    finally:
        gc.enable()


class Parser(argparse.ArgumentParser):
    """Argparse with our own errors, so that all errors look the same and end with the same code."""

    def __init__(self, **options: object) -> None:
        super().__init__(allow_abbrev=False, **options)  # type: ignore[arg-type]

    def error(self, message: str) -> NoReturn:
        raise CallError(
            f"{self.prog}: {message}.", remedy=f"`{self.prog} --help` shows how it is called.", slug="call"
        )


def find_verb(words: Sequence[str]) -> int | None:
    """The position of the verb: the first word that is neither an option nor an option's value."""
    skip = False
    for place, word in enumerate(words):
        if skip:
            skip = False
        elif word in _TAKING_A_VALUE:
            skip = True
        elif not word.startswith("-"):
            return place
    return None


def get_verb(word: str) -> Verb:
    for verb in VERBS:
        if verb.name == word:
            return verb
    from difflib import get_close_matches

    close = get_close_matches(word, [v.name for v in VERBS], 1, 0.5)
    remedy = f"Did you mean `{close[0]}`?" if close else f"Verbs: {', '.join(v.name for v in VERBS)}."
    raise CallError(f"There is no verb `{word}`.", remedy=remedy, slug="unknown-verb")


def _without_verb(words: Sequence[str]) -> int:
    if "--version" in words:
        from importlib.metadata import version

        print(f"strandline {version('strandline')}")
        return 0
    help_asked = "--help" in words or "-h" in words
    if not help_asked and words:
        raise CallError(
            f"`{words[0]}` comes without a verb.",
            remedy=f"Verbs: {', '.join(v.name for v in VERBS)}.",
            slug="no-verb",
        )
    print(overview())
    return 0 if help_asked else 2


def overview() -> str:
    """What `strandline --help` prints."""
    width = max(len(f"{v.name} {v.usage}") for v in VERBS)
    lines = [f"  {f'{v.name} {v.usage}'.strip():{width}}  {v.summary}" for v in VERBS]
    return "\n".join(
        [
            "usage: strandline [--project DIR] VERB ...",
            "",
            "Incremental data pipelines on Spark and Delta Lake for a past that keeps changing.",
            "",
            *lines,
            "",
            "Everywhere: --project DIR, --output table|json|csv (`status`: html, prometheus too)."
            " `strandline VERB --help` says more.",
            "Exit codes: 0 done; 1 some work failed; 2 the project or the call is wrong;"
            " 3 something outside failed;",
            "4 verification found a difference. Ctrl-C ends a call within seconds (130, SIGTERM 143);"
            " what was committed is kept.",
        ]
    )


def _complain(text: str) -> None:
    print(text, file=sys.stderr)


def _unexpected(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    first = lines[0] if lines else "no more is known"
    return f"{type(error).__name__}: {first}\n  Set STRANDLINE_DEBUG=1 to see where.  [unexpected]"
