"""Turns plain data into the specs of the sections.

Each entry is checked separately, so that one wrong entry does not hide mistakes in another.
"""

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from strandline.model.report import Report, find_nearest, listed, suggest

from .allowed_keys import JsonObject, keys_beside, known_keys
from .head import Head
from .mending import Mending
from .not_yet import set_aside
from .project_file import make_json_schema
from .section import Section
from .yaml_lines import DataPath, Document

_HEAD: TypeAdapter[Head] = TypeAdapter(Head)
_ROUNDS = 20
"""How often an entry is mended at most. Each round mends everything that is wrong at one depth."""


@cache
def _adapter(section: Section) -> TypeAdapter[Any]:
    return TypeAdapter(section.spec)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The entries of the file.

    Wrong keys and values are mended; entries that cannot be mended are left out.
    """

    document: Document
    """Contains the lines of misspelt keys also under the keys as which they were read."""
    head: Head | None
    """The part of the file outside the sections."""
    entries: Mapping[str, Mapping[Any, Any]]
    """By section: its entries, by name or by place in the list."""
    written: Mapping[str, frozenset[str]]
    """By section: the names of all its entries, including invalid ones."""
    broken: frozenset[str]
    """Names of entries that were reported and set aside. A reference to one is not a second mistake."""
    follow_ups: Mapping[DataPath, frozenset[str]]
    """By entry: slugs of mistakes that would only follow from a value that was reported and left out."""


def check_shape(document: Document, sections: tuple[Section, ...], report: Report) -> Shape:
    """Report every wrong key and type of the file, and return what can be understood."""
    return _Shaping(document, sections, report).check()


class _Shaping:
    def __init__(self, document: Document, sections: tuple[Section, ...], report: Report) -> None:
        self.document = document
        self.sections = sections
        self.report = report
        self.schema = make_json_schema(sections)
        self.aliases: dict[DataPath, DataPath] = {}
        self.follow_ups: dict[DataPath, frozenset[str]] = {}
        self.broken: set[str] = set()

    def check(self) -> Shape:
        data = self.document.data if self.document.data is not None else {}
        if not isinstance(data, dict):
            what = f"the file contains {_kind(data)}, not a mapping of keys."
            self.report.add("wrong-type", what, "Start with `project: <name>`.", self.document.place())
            return self.shape(None, {}, {section.key: {} for section in self.sections})
        data = self.rename_sections(data)
        aside, words = set_aside(self.document, self.sections, self.report)
        self.broken |= set(words)
        keys = {section.key for section in self.sections}
        head_data = {k: v for k, v in data.items() if v is not None and k not in keys}
        head = self.validate(_HEAD, head_data, (), None)
        entries = {section.key: self.check_section(section, data, aside) for section in self.sections}
        return self.shape(head, data, entries)

    def check_section(
        self, section: Section, data: Mapping[str, object], aside: Container[DataPath]
    ) -> dict[Any, Any]:
        """The entries of a section that can be understood."""
        entries = {}
        for step, entry in self.entries(section, data.get(section.key), aside):
            valid = self.validate(_adapter(section), entry, (section.key, step), section)
            if valid is None:
                self.broken |= set(section.names(step, entry))
            else:
                entries[step] = valid
        return entries

    def shape(
        self, head: Head | None, data: Mapping[str, object], entries: Mapping[str, Mapping[Any, Any]]
    ) -> Shape:
        written = {
            section.key: value if isinstance(value := data.get(section.key), dict) else ()
            for section in self.sections
        }
        return Shape(
            document=self.document.with_aliases(self.aliases),
            head=head,
            entries=entries,
            written={key: frozenset(names) for key, names in written.items()},
            broken=frozenset(self.broken),
            follow_ups=self.follow_ups,
        )

    def rename_sections(self, data: dict[str, object]) -> dict[str, object]:
        """Read a section with a misspelt name as the one that was meant, so that its entries are checked."""
        known = known_keys(self.schema, ())
        keys = {section.key for section in self.sections}
        for key in [key for key in data if key not in known]:
            section = find_nearest(key, known)
            if section is not None and section in keys and section not in data:
                what = f"unknown key `{key}`."
                self.report.add("unknown-key", what, suggest(key, known, "keys"), self.document.place(key))
                data = {section if name == key else name: value for name, value in data.items()}
                self.document = replace(self.document.with_aliases({(section,): (key,)}), data=data)
        return data

    def entries(
        self, section: Section, value: object, aside: Container[DataPath]
    ) -> Iterator[tuple[Any, object]]:
        if value is None:
            return
        if not isinstance(value, list if section.is_list else dict):
            expected = (
                "a list, each entry starting with `- name:`" if section.is_list else "a mapping of names"
            )
            what = f"`{section.key}` is {_kind(value)}, not {expected}."
            self.report.add("wrong-type", what, f"Write {expected}.", self.document.place(section.key))
            return
        for step, entry in (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        ):
            if (section.key, step) not in aside:
                yield step, entry

    def validate(
        self, adapter: TypeAdapter[Any], value: object, path: DataPath, section: Section | None
    ) -> Any | None:
        """The entry, mended until it is valid. None if it cannot be mended."""
        mending: Mending | None = None
        for _ in range(_ROUNDS):
            try:
                valid = adapter.validate_python(mending.value if mending else value)
            except ValidationError as error:
                if mending is None:
                    # Validate again: errors must point into the value that is mended.
                    mending = Mending.of(path, value, self.schema, section)
                    continue
                self.mend(mending, error.errors(include_url=False))
                if mending.beyond:
                    break
            else:
                if mending and mending.follow_ups:
                    self.follow_ups[path] = mending.follow_ups
                return valid
        return None

    def mend(self, mending: Mending, details: list[ErrorDetails]) -> None:
        """Report and mend unknown keys first.

        A value may be valid under the right key, and `file` instead of `files` is not also a missing `files`.
        """
        document = self.document.with_aliases(mending.aliases)
        mistakes = list(_join_alternatives(details, mending.value))
        unknown = [mistake for mistake in mistakes if mistake[2]["type"] == "extra_forbidden"]
        for place, expected, detail in unknown or mistakes:
            if not (detail["type"] == "missing" and mending.is_known_to_lack(place)):
                _add(detail, expected, (*mending.path, *place), self.schema, document, self.report)
        if unknown:
            mending.rename_keys(place for place, _, _ in unknown)
            self.aliases |= mending.aliases
            return
        # The last elements of lists first: leaving out an element moves those after it.
        for place, _, detail in sorted(
            mistakes, key=lambda each: [str(step).zfill(6) for step in each[0]], reverse=True
        ):
            if not mending.beyond:
                mending.mend(place, detail, _allowed(detail))


def _join_alternatives(
    details: list[ErrorDetails], value: object
) -> Iterator[tuple[DataPath, str, ErrorDetails]]:
    """Each mistake once, with its place and what was expected there.

    A value that fits none of several types has one error for each type.
    """
    expected_by_place: dict[tuple[DataPath, str], list[str]] = {}
    detail_by_place: dict[tuple[DataPath, str], ErrorDetails] = {}
    for detail in details:
        place = (_locate(detail, value), "type" if detail["type"] in _EXPECTED else detail["type"])
        expected_by_place.setdefault(place, []).append(_expected(detail))
        detail_by_place.setdefault(place, detail)
    for place, detail in detail_by_place.items():
        expected = expected_by_place[place]
        yield (
            place[0],
            " or ".join(
                e for e in dict.fromkeys(expected) if e != "a whole number" or "a number" not in expected
            ),
            detail,
        )


def _add(
    detail: ErrorDetails,
    expected: str,
    full: DataPath,
    schema: JsonObject,
    document: Document,
    report: Report,
) -> None:
    place, name = document.place(*full), full[-1] if full else ""
    offending = detail["input"]
    match detail["type"]:
        case "extra_forbidden" if name in known_keys(schema, full[:-1]):
            others = keys_beside(schema, full[:-1], str(name))
            what = f"`{name}` does not go with the other keys{_where(full[:-1])}."
            remedy = f"Remove it. It goes with {listed(sorted(others))}." if others else "Remove it."
            report.add("unknown-key", what, remedy, place)
        case "extra_forbidden":
            report.add(
                "unknown-key",
                f"unknown key `{name}`{_where(full[:-1])}.",
                suggest(str(name), known_keys(schema, full[:-1]), "keys"),
                place,
            )
        case "missing":
            report.add("missing-key", f"{_whole(full[:-1])} lacks `{name}`.", f"Add `{name}:`.", place)
        case "literal_error":
            what = f"`{name}` is {_show(offending)}{_where(full[:-1])}, which is not a valid value."
            report.add("unknown-value", what, suggest(str(offending), _allowed(detail), "values"), place)
        case "too_short":
            report.add(
                "wrong-type",
                f"`{name}` is empty{_where(full[:-1])}.",
                f"Name at least one: `{name}: [<name>]`.",
                place,
            )
        case "greater_than" | "greater_than_equal":
            report.add(
                "wrong-type",
                f"`{name}` is {_show(offending)}{_where(full[:-1])}.",
                f"{detail['msg']}.",
                place,
            )
        case "wrong_entry":  # see `spec_types.wrong_entry`
            wrong = detail["ctx"]
            report.add(wrong["slug"], wrong["what"].replace("{entry}", _whole(full)), wrong["remedy"], place)
        case _:
            what = f"{_whole(full)} is {_show(offending)}, not {expected}."
            remedy = (
                f"Write `[{offending}]`."
                if "list" in expected and isinstance(offending, str)
                else _quote_hint(expected, offending)
            )
            report.add("wrong-type", what, remedy, place)


def _allowed(detail: ErrorDetails) -> list[str]:
    """The allowed words, if a value must be one of a list of words."""
    if detail["type"] != "literal_error":
        return []
    return [word.strip("'") for word in str(detail["ctx"]["expected"]).replace(" or ", ", ").split(", ")]


def _locate(detail: ErrorDetails, value: object) -> DataPath:
    """The path of an error in the data.

    The tags of unions, the types that were tried and pydantic's mark of a mapping's key are left out.
    """
    path: list[str | int] = []
    for step in detail["loc"]:
        if isinstance(step, str) and step[:1] in ("<", "["):
            continue
        if detail["type"] in _EXPECTED and value is detail["input"]:
            break  # the next step is the type that was tried: `int` or `str`
        path.append(step)
        value = (
            value.get(step)
            if isinstance(value, dict)
            else value[step]
            if isinstance(value, list) and isinstance(step, int)
            else None
        )
    return tuple(path)


_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}


def _expected(detail: ErrorDetails) -> str:
    if detail["type"] == "union_tag_invalid":
        tags = str(detail["ctx"]["expected_tags"])
        return " or ".join(
            words
            for tag, words in (("<text>", "text"), ("<list>", "a list"), ("<mapping>", "a mapping"))
            if tag in tags
        )
    return _EXPECTED.get(detail["type"], "what it should be")


def _quote_hint(expected: str, offending: object) -> str:
    is_text = expected.startswith("text") and "number" not in expected
    if is_text and isinstance(offending, (int, float, bool)):
        return f'Put it in quotes: "{_plain(offending)}".'
    return f"Write {expected}."


def _kind(value: object) -> str:
    match value:
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case None:
            return "empty"
        case _:
            return f"`{_plain(value)}`"


def _plain(value: object) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


def _show(value: object) -> str:
    shown = _kind(value)
    return shown if len(shown) <= 60 else f"{shown[:56]}...`"


def _whole(path: DataPath) -> str:
    return f"`{dotted(path)}`" if path else "the project file"


def _where(path: DataPath) -> str:
    return f" in `{dotted(path)}`" if path else ""


def dotted(path: DataPath) -> str:
    """`datasets.property.record_set.key[0]`"""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text
