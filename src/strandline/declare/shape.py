"""From plain data to the models of `schema`, entry by entry, so that one bad entry hides no mistake of another."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from .known_keys import known_keys
from .not_yet import SECTIONS, set_aside
from .report import Report, find_nearest, listed, suggest
from .schema import HEAD_RULES, ChainSpec, DatasetSpec, FactDatasetSpec, JobSpec, OutputSpec, ProjectFile, SourceSpec
from .yaml_lines import DataPath, Document

T = TypeVar("T")

_HEAD: TypeAdapter[ProjectFile] = TypeAdapter(ProjectFile)
_SOURCE: TypeAdapter[SourceSpec] = TypeAdapter(SourceSpec)
_DATASET: TypeAdapter[FactDatasetSpec | OutputSpec] = TypeAdapter(DatasetSpec)
_CHAIN: TypeAdapter[ChainSpec] = TypeAdapter(ChainSpec)
_JOB: TypeAdapter[JobSpec] = TypeAdapter(JobSpec)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The entries whose keys and types are right."""

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


def check_shape(document: Document, report: Report) -> Shape:
    """Every wrong key and type of the file goes to the report; what is right comes back."""
    data = document.data if document.data is not None else {}
    if not isinstance(data, dict):
        what = f"the file holds {_kind(data)}, not a mapping of keys."
        report.add("wrong-type", what, "Start with `project: <name>`.", document.place())
        return Shape(head=None, sources={}, datasets={}, chains={}, jobs={}, source_names=frozenset(), broken=frozenset())
    aside, words = set_aside(document, report)
    broken = set(words)
    head_data = {k: v for k, v in data.items() if v is not None and k not in {"sources", "datasets", "chains", "jobs", *SECTIONS}}
    head = _validate(_HEAD, head_data, (), document, report) or _validate_parts(head_data)

    def entries(section: str, kind: type) -> Iterator[tuple[Any, object]]:
        value = data.get(section)
        if value is None:
            return
        if not isinstance(value, kind):
            wanted = "a list, each entry starting with `- name:`" if kind is list else "a mapping of names"
            report.add("wrong-type", f"`{section}` is {_kind(value)}, not {wanted}.", f"Write {wanted}.", document.place(section))
            return
        for step, entry in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
            if (section, step) not in aside:
                yield step, entry

    sources, datasets, chains, jobs = {}, {}, {}, {}
    for name, entry in entries("sources", dict):
        if (source := _validate(_SOURCE, entry, ("sources", name), document, report)) is not None:
            sources[name] = source
        else:
            broken.add(name)
    for name, entry in entries("datasets", dict):
        if (dataset := _validate(_DATASET, entry, ("datasets", name), document, report)) is not None:
            datasets[name] = dataset
        else:
            broken |= {name, f"{name}_facts", f"{name}_quarantine"}
    for name, entry in entries("chains", dict):
        if (chain := _validate(_CHAIN, entry, ("chains", name), document, report)) is not None:
            chains[name] = chain
        else:
            followed = entry.get("follow") if isinstance(entry, dict) else None
            broken |= {name, *(map(str, followed) if isinstance(followed, dict) else ())}
    for place, entry in entries("jobs", list):
        if (job := _validate(_JOB, entry, ("jobs", place), document, report)) is not None:
            jobs[place] = job
        elif isinstance(entry, dict):
            broken |= {str(entry.get("name")), str(entry.get("output_dataset"))}
    names = frozenset(data["sources"]) if isinstance(data.get("sources"), dict) else frozenset()
    return Shape(head=head, sources=sources, datasets=datasets, chains=chains, jobs=jobs, source_names=names, broken=frozenset(broken))


def _validate(adapter: TypeAdapter[T], value: object, path: DataPath, document: Document, report: Report) -> T | None:
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        details = error.errors(include_url=False)
        misspelt = {
            (_locate(d, value)[:-1], find_nearest(str(d["loc"][-1]), known_keys((*path, *_locate(d, value)[:-1]))))
            for d in details
            if d["type"] == "extra_forbidden"
        }
        for loc, wanted, detail in _join_alternatives(details, value):
            # `file` in place of `files` is one mistake, not also a missing `files`.
            if detail["type"] != "missing" or (loc[:-1], loc[-1]) not in misspelt:
                _add(detail, wanted, (*path, *loc), document, report)
        return None


def _join_alternatives(details: list[ErrorDetails], value: object) -> Iterator[tuple[DataPath, str, ErrorDetails]]:
    """Each mistake once, with where it is and what was wanted: a value that fits no type of several has an error of each."""
    wanted_by_place: dict[tuple[DataPath, str], list[str]] = {}
    detail_by_place: dict[tuple[DataPath, str], ErrorDetails] = {}
    for detail in details:
        place = (_locate(detail, value), "type" if detail["type"] in _WANTED else detail["type"])
        wanted_by_place.setdefault(place, []).append(_wanted(detail))
        detail_by_place.setdefault(place, detail)
    for place, detail in detail_by_place.items():
        wanted = wanted_by_place[place]
        yield place[0], " or ".join(w for w in dict.fromkeys(wanted) if w != "a whole number" or "a number" not in wanted), detail


def _validate_parts(data: dict[str, object]) -> ProjectFile:
    """The head without the parts that are wrong, so that the others are checked too. The mistakes were reported."""
    right: dict[str, object] = {"project": "unnamed"}
    for key, value in data.items():
        try:
            _HEAD.validate_python({"project": "unnamed", key: value})
        except ValidationError:
            continue
        right[key] = value
    return _HEAD.validate_python(right)


def _add(detail: ErrorDetails, wanted: str, full: DataPath, document: Document, report: Report) -> None:
    place, name = document.place(*full), full[-1] if full else ""
    offending = detail["input"]
    match detail["type"]:
        case "extra_forbidden":
            report.add("unknown-key", f"unknown key `{name}`{_where(full[:-1])}.", suggest(str(name), known_keys(full[:-1]), "keys"), place)
        case "missing":
            report.add("missing-key", f"{_whole(full[:-1])} lacks `{name}`.", f"Add `{name}:`.", place)
        case "literal_error":
            words = [word.strip("'") for word in str(detail["ctx"]["expected"]).replace(" or ", ", ").split(", ")]
            what = f"`{name}` is {_show(offending)}{_where(full[:-1])}, which it cannot be."
            report.add("unknown-value", what, suggest(str(offending), words, "values"), place)
        case "too_short":
            report.add("wrong-type", f"`{name}` is empty{_where(full[:-1])}.", f"Name at least one: `{name}: [<name>]`.", place)
        case "greater_than_equal":
            report.add("wrong-type", f"`{name}` is {_show(offending)}{_where(full[:-1])}.", f"{detail['msg']}.", place)
        case "one_rule":
            given = listed(detail["ctx"]["given"]) or "none"
            what = f"exactly one rule chooses the head of a chain, and {_whole(full)} gives {given}."
            ways = ", ".join(f"`{{{rule}: <column>}}`" for rule in HEAD_RULES)
            report.add("head-rule", what, f"Write one of `longest`, {ways}.", place)
        case _:
            what = f"{_whole(full)} is {_show(offending)}, not {wanted}."
            remedy = f"Write `[{offending}]`." if "list" in wanted and isinstance(offending, str) else _quote_hint(wanted, offending)
            report.add("wrong-type", what, remedy, place)


def _locate(detail: ErrorDetails, value: object) -> DataPath:
    """Where in the data it is: without the tags of unions, the types that were tried, and pydantic's mark of a mapping's key."""
    path: list[str | int] = []
    for step in detail["loc"]:
        if isinstance(step, str) and step[:1] in ("<", "["):
            continue
        if detail["type"] in _WANTED and value is detail["input"]:
            break  # what follows is the type it is not: `int` or `str`
        path.append(step)
        value = value.get(step) if isinstance(value, dict) else value[step] if isinstance(value, list) and isinstance(step, int) else None
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
        return " or ".join(words for tag, words in (("<text>", "text"), ("<list>", "a list"), ("<mapping>", "a mapping")) if tag in tags)
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
