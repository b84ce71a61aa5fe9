"""A function in a Python file, with every file of the project that it imports."""

from dataclasses import dataclass
from pathlib import Path

from strandline.declare.text_files import load_text
from strandline.model.errors import Place
from strandline.model.project import Module
from strandline.model.report import Report

from .checks import JOB, Calling, check_python, find_function, mentions_as_of
from .modules import follow_imports


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What an entry names with `file.py:function`."""

    word: str
    """The key of the entry."""
    example: str
    """A file that a remedy may name."""
    name: str
    """A function that a remedy may name."""
    calling: Calling = JOB


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonCode:
    """A function of the user's, checked and never run."""

    file: str
    function: str
    text: str
    modules: tuple[Module, ...]
    """The files of the project that it imports."""
    uses_as_of: bool


def load_python(spec: str, wanted: Wanted, place: Place, folder: Path, report: Report) -> PythonCode | None:
    """The function that `file.py:function` names. None, with a mistake, if it cannot be loaded."""
    file, colon, function = spec.rpartition(":")
    if not colon or not file.endswith(".py") or not function.isidentifier():
        named = next((text for text in (spec, file) if text.endswith(".py")), wanted.example)
        report.add(
            "bad-python",
            f"`{wanted.word}: {spec}` does not name a function in a file.",
            f"Write, for example, `{named}:{wanted.name}`.",
            place,
        )
        return None
    loaded = load_text(file, folder, place, report)
    if loaded is None:
        return None
    file, text = loaded
    module = find_function(text, function, file, place, report, wanted.calling)
    if module is None:
        return None
    check_python(module, file, report, wanted.calling)
    imported = follow_imports(module, file, folder, report)
    for helper in imported:
        check_python(helper.tree, helper.file, report, wanted.calling)
    return PythonCode(
        file=file,
        function=function,
        text=text,
        modules=tuple(Module(name=m.name, file=m.file, code=m.text) for m in imported),
        uses_as_of=any(mentions_as_of(tree) for tree in (module, *(m.tree for m in imported))),
    )
