"""YAML as plain data with the line of each value.

PyYAML's own constructors follow YAML 1.1, where the key `on` is the boolean true and `04-01` may be a date.
Here keys stay as written, and plain values follow the YAML 1.2 core schema: null, booleans, integers, floats,
and text for everything else.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import yaml
from yaml.composer import Composer
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.resolver import BaseResolver
from yaml.scanner import Scanner

from strandline.model.errors import Place
from strandline.model.report import Report

DataPath = tuple[str | int, ...]

_MOST_VALUES = 50_000
"""Aliases can make a small file expand without end."""

_NULL = {"", "~", "null", "Null", "NULL"}
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?[0-9]+|0x[0-9a-fA-F]+|0o[0-7]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_TAGS = {f"tag:yaml.org,2002:{word}" for word in ("str", "int", "float", "bool", "null", "seq", "map")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A YAML file as plain data: mappings with text keys, lists, text, numbers, booleans and None."""

    file: str
    data: object
    lines: Mapping[DataPath, int]
    """For a mapping's entry the line of its key, for a list's element the line where it starts."""
    text_lines: Mapping[DataPath, int]
    """For a literal block (`|`): the line of its first line of text, to compute places inside it."""

    def place(self, *path: str | int) -> Place:
        """The line of a path, or of the nearest enclosing path that exists."""
        while path and path not in self.lines:
            path = path[:-1]
        return Place(file=self.file, line=self.lines.get(path, 1))

    def with_aliases(self, paths: Mapping[DataPath, DataPath]) -> "Document":
        """The same lines, also under other paths: a misspelt key is read as the one that was meant.

        `paths` maps each new path to the written one.
        """
        lines, text_lines = dict(self.lines), dict(self.text_lines)
        for new, old in paths.items():
            for known in (lines, text_lines):
                known |= {
                    (*new, *path[len(old) :]): line for path, line in known.items() if path[: len(old)] == old
                }
        return replace(self, lines=lines, text_lines=text_lines)

    def place_in_text(self, path: DataPath, line: int) -> Place:
        """The place of the n-th line of a text value."""
        if path in self.text_lines:
            return Place(file=self.file, line=self.text_lines[path] + line - 1)
        return self.place(*path)


class _Loader(Reader, Scanner, Parser, Composer, BaseResolver):
    """Composes nodes and resolves nothing: every plain scalar stays text."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)
        Composer.__init__(self)
        BaseResolver.__init__(self)


def load_yaml(raw: bytes, file: str, report: Report) -> Document | None:
    """The document of a file. None if it cannot be read, which is then reported."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        what = f"the file is not UTF-8: byte 0x{raw[error.start]:02x} cannot be read."
        report.add("yaml-syntax", what, "Save it as UTF-8.", Place(file=file, line=line))
        return None
    try:
        root = _Loader(text).get_single_node()
    except yaml.reader.ReaderError as error:
        place = Place(file=file, line=text[: error.position].count("\n") + 1)
        what = f"the file contains the character U+{ord(text[error.position]):04X}, which YAML forbids."
        report.add("yaml-syntax", what, "Remove it.", place)
        return None
    except yaml.MarkedYAMLError as error:
        report.add("yaml-syntax", _describe(error), _remedy(text, error), Place(file=file, line=_line(error)))
        return None
    except RecursionError:
        report.add(
            "yaml-syntax",
            "the file is nested too deeply to be read.",
            "Write it with fewer levels.",
            Place(file=file, line=1),
        )
        return None
    reading = _Reading(file, report)
    try:
        data = reading.convert(root, ()) if root is not None else None
    except (_TooMuchError, RecursionError):
        what = "the file's aliases expand without end."
        report.add("yaml-syntax", what, "Remove the alias that repeats itself.", Place(file=file, line=1))
        return None
    return Document(file=file, data=data, lines=reading.lines, text_lines=reading.text_lines)


class _TooMuchError(Exception):
    """Aliases expanded past the limit."""


class _Reading:
    """One conversion of nodes to data, which records their lines."""

    def __init__(self, file: str, report: Report) -> None:
        self.file = file
        self.report = report
        self.lines: dict[DataPath, int] = {}
        self.text_lines: dict[DataPath, int] = {}
        self.reported: set[tuple[int, int]] = set()

    def convert(self, node: Node, path: DataPath) -> object:
        self.lines.setdefault(path, node.start_mark.line + 1)
        if len(self.lines) > _MOST_VALUES:
            raise _TooMuchError
        if node.tag not in _TAGS:
            self.add(
                node, "yaml-syntax", f"the YAML tag `{node.tag}` has no meaning here.", "Remove the tag."
            )
        match node:
            case ScalarNode():
                if node.style == "|":
                    self.text_lines[path] = node.start_mark.line + 2
                return _resolve(node.value) if node.style is None else node.value
            case SequenceNode():
                return [self.convert(element, (*path, place)) for place, element in enumerate(node.value)]
            case MappingNode():
                return self.convert_mapping(node, path)
            case _:
                return None

    def convert_mapping(self, node: MappingNode, path: DataPath) -> dict[str, object]:
        data: dict[str, object] = {}
        key_lines: dict[str, int] = {}
        merged: dict[str, object] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                self.add(
                    key_node,
                    "yaml-syntax",
                    "a key must be a word, not a list or a mapping.",
                    "Write a plain word before the colon.",
                )
                continue
            key, line = key_node.value, key_node.start_mark.line + 1
            if key == "<<" and key_node.style is None:
                merged |= self.convert_merge(value_node, path)
            elif key in data:
                what = f"the key `{key}` is written twice, in lines {key_lines[key]} and {line}."
                self.add(key_node, "duplicate-key", what, "Keep one of them.")
            else:
                key_lines[key] = line
                self.lines[(*path, key)] = line
                data[key] = self.convert(value_node, (*path, key))
        return {**{key: value for key, value in merged.items() if key not in data}, **data}

    def convert_merge(self, node: Node, path: DataPath) -> dict[str, object]:
        """`<<: *anchor` and `<<: [*one, *two]`. In a list the earlier mapping wins."""
        if isinstance(node, MappingNode):
            return self.convert_mapping(node, path)
        if isinstance(node, SequenceNode) and all(isinstance(element, MappingNode) for element in node.value):
            merged: dict[str, object] = {}
            for element in node.value:
                merged = {**self.convert_mapping(element, path), **merged}
            return merged
        self.add(
            node,
            "yaml-syntax",
            "`<<` needs a mapping or a list of mappings.",
            "Name an anchored mapping after `<<:`.",
        )
        return {}

    def add(self, node: Node, slug: str, what: str, remedy: str) -> None:
        place = (node.start_mark.line, node.start_mark.column)
        if place not in self.reported:
            self.reported.add(place)
            self.report.add(slug, what, remedy, Place(file=self.file, line=node.start_mark.line + 1))


def _resolve(text: str) -> object:
    if text in _NULL:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if _INTEGER.fullmatch(text) and len(text) < 1000:
        return int(text, 16 if text[:2] == "0x" else 8 if text[:2] == "0o" else 10)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text


def _line(error: yaml.MarkedYAMLError) -> int:
    mark = error.problem_mark or error.context_mark
    return mark.line + 1 if mark else 1


def _describe(error: yaml.MarkedYAMLError) -> str:
    parts = [part for part in (error.context, error.problem) if part]
    return f"this is not YAML: {', '.join(parts)}."


def _remedy(text: str, error: yaml.MarkedYAMLError) -> str:
    lines = text.splitlines()
    line = lines[_line(error) - 1] if _line(error) <= len(lines) else ""
    if "\t" in line:
        return "Indent with spaces: YAML does not allow tabs."
    if "expected a single document" in str(error.context):
        return "Keep only one document in the file: remove the line `---`."
    return (
        f"Look at `{line.strip()}`; text with `: `, `#` or `{{` in it needs quotes."
        if line.strip()
        else "Look at the end of the file."
    )
