"""From plain data to the models of `schema`, entry by entry, so that one bad entry hides no mistake of another."""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from strandline.model.report import Report, find_nearest, listed, suggest

from .allowed_keys import known_keys
from .mending import Mending, follow_ups
from .not_yet import SECTIONS, set_aside
from .schema import (
    HEAD_RULES,
    ChainSpec,
    DatasetSpec,
    FactDatasetSpec,
    JobSpec,
    OutputSpec,
    ProjectFile,
    SourceSpec,
)
from .yaml_lines import DataPath, Document

T = TypeVar("T")

_HEAD: TypeAdapter[ProjectFile] = TypeAdapter(ProjectFile)
_SOURCE: TypeAdapter[SourceSpec] = TypeAdapter(SourceSpec)
_DATASET: TypeAdapter[FactDatasetSpec | OutputSpec] = TypeAdapter(DatasetSpec)
_CHAIN: TypeAdapter[ChainSpec] = TypeAdapter(ChainSpec)
_JOB: TypeAdapter[JobSpec] = TypeAdapter(JobSpec)
_SECTIONS: Mapping[str, type] = {"sources": dict, "datasets": dict, "chains": dict, "jobs": list}
_ROUNDS = 20
"""Times that an entry is mended: each mends all that is wrong at one depth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The entries of the file, mended where a key or value was wrong; those that could not be are left out."""

    document: Document
    """With the lines of misspelt keys under the keys that they were read as."""
    head: ProjectFile | None
    """The project file without its sources, datasets and jobs."""
    sources: Mapping[str, SourceSpec]
    datasets: Mapping[str, FactDatasetSpec | OutputSpec]
    chains: Mapping[str, ChainSpec]
    jobs: Mapping[int, JobSpec]
    source_names: frozenset[str]
    """Of all sources, also of those that are wrong."""
    broken: frozenset[str]
    """Names of entries that were reported and set aside: others may lean on them without a second mistake."""
    follow_ups: Mapping[DataPath, frozenset[str]]
    """By entry: slugs of mistakes that would only follow from a value that was reported and left out."""


def check_shape(document: Document, report: Report) -> Shape:
    """Every wrong key and type of the file goes to the report; what can be understood comes back."""
    return _Shaping(document, report).check()


class _Shaping:
    def __init__(self, document: Document, report: Report) -> None:
        self.document = document
        self.report = report
        self.aliases: dict[DataPath, DataPath] = {}
        self.follow_ups: dict[DataPath, frozenset[str]] = {}
        self.broken: set[str] = set()

    def check(self) -> Shape:
        data = self.document.data if self.document.data is not None else {}
        if not isinstance(data, dict):
            what = f"the file holds {_kind(data)}, not a mapping of keys."
            self.report.add("wrong-type", what, "Start with `project: <name>`.", self.document.place())
            return self.shape(None, {}, {}, {}, {}, ())
        data = self.rename_sections(data)
        aside, words = set_aside(self.document, self.report)
        self.broken |= set(words)
        head_data = {k: v for k, v in data.items() if v is not None and k not in {*_SECTIONS, *SECTIONS}}
        head = self.validate(_HEAD, head_data, ())
        entries = {
            name: list(self.entries(name, data.get(name), kind, aside)) for name, kind in _SECTIONS.items()
        }
        sources, datasets, chains, jobs = {}, {}, {}, {}
        for name, entry in entries["sources"]:
            if (source := self.validate(_SOURCE, entry, ("sources", name))) is not None:
                sources[name] = source
            else:
                self.broken.add(name)
        for name, entry in entries["datasets"]:
            if (dataset := self.validate(_DATASET, entry, ("datasets", name))) is not None:
                datasets[name] = dataset
            else:
                self.broken |= {name, f"{name}_facts", f"{name}_quarantine"}
        for name, entry in entries["chains"]:
            if (chain := self.validate(_CHAIN, entry, ("chains", name))) is not None:
                chains[name] = chain
            else:
                followed = entry.get("follow") if isinstance(entry, dict) else None
                self.broken |= {name, *(map(str, followed) if isinstance(followed, dict) else ())}
        for place, entry in entries["jobs"]:
            if (job := self.validate(_JOB, entry, ("jobs", place))) is not None:
                jobs[place] = job
            elif isinstance(entry, dict):
                self.broken |= {str(entry.get("name")), str(entry.get("output_dataset"))}
        names = data.get("sources")
        return self.shape(head, sources, datasets, chains, jobs, names if isinstance(names, dict) else ())

    def shape(
        self,
        head: ProjectFile | None,
        sources: Mapping[str, SourceSpec],
        datasets: Mapping[str, FactDatasetSpec | OutputSpec],
        chains: Mapping[str, ChainSpec],
        jobs: Mapping[int, JobSpec],
        source_names: Iterable[str],
    ) -> Shape:
        return Shape(
            document=self.document.with_aliases(self.aliases),
            head=head,
            sources=sources,
            datasets=datasets,
            chains=chains,
            jobs=jobs,
            source_names=frozenset(source_names),
            broken=frozenset(self.broken),
            follow_ups=self.follow_ups,
        )

    def rename_sections(self, data: dict[str, object]) -> dict[str, object]:
        """Read a section with a misspelt name as the one meant, so that its entries are checked too."""
        known = {*known_keys(()), *SECTIONS}
        for key in [key for key in data if key not in known]:
            section = find_nearest(key, known)
            if section is not None and section in _SECTIONS and section not in data:
                what = f"unknown key `{key}`."
                self.report.add("unknown-key", what, suggest(key, known, "keys"), self.document.place(key))
                data = {section if name == key else name: value for name, value in data.items()}
                self.document = replace(self.document.with_aliases({(section,): (key,)}), data=data)
        return data

    def entries(
        self, section: str, value: object, kind: type, aside: Container[DataPath]
    ) -> Iterator[tuple[Any, object]]:
        if value is None:
            return
        if not isinstance(value, kind):
            wanted = "a list, each entry starting with `- name:`" if kind is list else "a mapping of names"
            what = f"`{section}` is {_kind(value)}, not {wanted}."
            self.report.add("wrong-type", what, f"Write {wanted}.", self.document.place(section))
            return
        for step, entry in (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        ):
            if (section, step) not in aside:
                yield step, entry

    def validate(self, adapter: TypeAdapter[T], value: object, path: DataPath) -> T | None:
        """The entry, mended until it is valid. None when it cannot be."""
        mending: Mending | None = None
        for _ in range(_ROUNDS):
            try:
                valid = adapter.validate_python(mending.value if mending else value)
            except ValidationError as error:
                if mending is None:
                    mending = Mending.of(
                        path, value
                    )  # validated again: errors point into the value that is mended
                    continue
                self.mend(mending, error.errors(include_url=False))
                if mending.beyond:
                    break
            else:
                if mending and (slugs := follow_ups(str(path[0]) if path else "", mending.lost)):
                    self.follow_ups[path] = slugs
                return valid
        return None

    def mend(self, mending: Mending, details: list[ErrorDetails]) -> None:
        """Keys first: what is read under another name may be right, and `file` in place of `files` is not also a missing `files`."""
        document = self.document.with_aliases(mending.aliases)
        found = list(_join_alternatives(details, mending.value))
        unknown = [
            (place, wanted, detail) for place, wanted, detail in found if detail["type"] == "extra_forbidden"
        ]
        for place, wanted, detail in unknown or found:
            if not (detail["type"] == "missing" and mending.is_known_to_lack(place)):
                _add(detail, wanted, (*mending.path, *place), document, self.report)
        if unknown:
            mending.rename_keys(place for place, _, _ in unknown)
            self.aliases |= mending.aliases
            return
        # The last elements of lists first: what is left out moves those after it.
        for place, _, detail in sorted(
            found, key=lambda each: [str(step).zfill(6) for step in each[0]], reverse=True
        ):
            if not mending.beyond:
                mending.mend(place, detail, _allowed(detail))


def _join_alternatives(
    details: list[ErrorDetails], value: object
) -> Iterator[tuple[DataPath, str, ErrorDetails]]:
    """Each mistake once, with where it is and what was wanted: a value that fits no type of several has an error of each."""
    wanted_by_place: dict[tuple[DataPath, str], list[str]] = {}
    detail_by_place: dict[tuple[DataPath, str], ErrorDetails] = {}
    for detail in details:
        place = (_locate(detail, value), "type" if detail["type"] in _WANTED else detail["type"])
        wanted_by_place.setdefault(place, []).append(_wanted(detail))
        detail_by_place.setdefault(place, detail)
    for place, detail in detail_by_place.items():
        wanted = wanted_by_place[place]
        yield (
            place[0],
            " or ".join(
                w for w in dict.fromkeys(wanted) if w != "a whole number" or "a number" not in wanted
            ),
            detail,
        )


def _add(detail: ErrorDetails, wanted: str, full: DataPath, document: Document, report: Report) -> None:
    place, name = document.place(*full), full[-1] if full else ""
    offending = detail["input"]
    match detail["type"]:
        case "extra_forbidden":
            report.add(
                "unknown-key",
                f"unknown key `{name}`{_where(full[:-1])}.",
                suggest(str(name), known_keys(full[:-1]), "keys"),
                place,
            )
        case "missing":
            report.add("missing-key", f"{_whole(full[:-1])} lacks `{name}`.", f"Add `{name}:`.", place)
        case "literal_error":
            what = f"`{name}` is {_show(offending)}{_where(full[:-1])}, which it cannot be."
            report.add("unknown-value", what, suggest(str(offending), _allowed(detail), "values"), place)
        case "too_short":
            report.add(
                "wrong-type",
                f"`{name}` is empty{_where(full[:-1])}.",
                f"Name at least one: `{name}: [<name>]`.",
                place,
            )
        case "greater_than_equal":
            report.add(
                "wrong-type",
                f"`{name}` is {_show(offending)}{_where(full[:-1])}.",
                f"{detail['msg']}.",
                place,
            )
        case "one_rule":
            given = listed(detail["ctx"]["given"]) or "none"
            what = f"exactly one rule chooses the head of a chain, and {_whole(full)} gives {given}."
            ways = ", ".join(f"`{{{rule}: <column>}}`" for rule in HEAD_RULES)
            report.add("head-rule", what, f"Write one of `longest`, {ways}.", place)
        case _:
            what = f"{_whole(full)} is {_show(offending)}, not {wanted}."
            remedy = (
                f"Write `[{offending}]`."
                if "list" in wanted and isinstance(offending, str)
                else _quote_hint(wanted, offending)
            )
            report.add("wrong-type", what, remedy, place)


def _allowed(detail: ErrorDetails) -> list[str]:
    """The words that a value may be, where it may only be one of some."""
    if detail["type"] != "literal_error":
        return []
    return [word.strip("'") for word in str(detail["ctx"]["expected"]).replace(" or ", ", ").split(", ")]


def _locate(detail: ErrorDetails, value: object) -> DataPath:
    """Where in the data it is: without the tags of unions, the types that were tried, and pydantic's mark of a mapping's key."""
    path: list[str | int] = []
    for step in detail["loc"]:
        if isinstance(step, str) and step[:1] in ("<", "["):
            continue
        if detail["type"] in _WANTED and value is detail["input"]:
            break  # what follows is the type it is not: `int` or `str`
        path.append(step)
        value = (
            value.get(step)
            if isinstance(value, dict)
            else value[step]
            if isinstance(value, list) and isinstance(step, int)
            else None
        )
    return tuple(path)


_WANTED = {
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


def _wanted(detail: ErrorDetails) -> str:
    if detail["type"] == "union_tag_invalid":
        tags = str(detail["ctx"]["expected_tags"])
        return " or ".join(
            words
            for tag, words in (("<text>", "text"), ("<list>", "a list"), ("<mapping>", "a mapping"))
            if tag in tags
        )
    return _WANTED.get(detail["type"], "what it should be")


def _quote_hint(wanted: str, offending: object) -> str:
    if wanted.startswith("text") and "number" not in wanted and isinstance(offending, (int, float, bool)):
        return f'Put it in quotes: "{_plain(offending)}".'
    return f"Write {wanted}."


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
