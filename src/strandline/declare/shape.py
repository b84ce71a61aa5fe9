"""From plain data to the models of `schema`, entry by entry, so that one bad entry hides no mistake of another."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from .known_keys import known_keys
from .not_yet import SECTIONS, set_aside
from .report import Report, find_nearest, suggest
from .schema import ChainSpec, DatasetSpec, FactDatasetSpec, JobSpec, OutputSpec, ProjectFile, SourceSpec
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
            (_strip(d["loc"])[:-1], find_nearest(str(d["loc"][-1]), known_keys((*path, *_strip(d["loc"][:-1])))))
            for d in details
            if d["type"] == "extra_forbidden"
        }
        for detail in details:
            # `file` in place of `files` is one mistake, not also a missing `files`.
            if detail["type"] != "missing" or (_strip(detail["loc"])[:-1], detail["loc"][-1]) not in misspelt:
                _add(detail, path, value, document, report)
        return None


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


def _add(detail: ErrorDetails, path: DataPath, value: object, document: Document, report: Report) -> None:
    loc = _strip(detail["loc"])
    full: DataPath = (*path, *loc)
    place, name = document.place(*full), full[-1] if full else ""
    offending = detail["input"]
    match detail["type"]:
        case "extra_forbidden":
            known = known_keys((*path, *_strip(detail["loc"][:-1])))
            report.add("unknown-key", f"unknown key `{name}`{_where(full[:-1])}.", suggest(str(name), known, "keys"), place)
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
        case kind:
            wanted = _wanted(kind, detail)
            what = f"{_whole(full)} is {_show(offending)}, not {wanted}."
            remedy = f"Write `[{offending}]`." if "list" in wanted and isinstance(offending, str) else _quote_hint(wanted, offending)
            report.add("wrong-type", what, remedy, place)


def _strip(loc: tuple[str | int, ...]) -> DataPath:
    """Without the tags of unions and pydantic's mark of a mapping's key."""
    return tuple(step for step in loc if not (isinstance(step, str) and step[:1] in ("<", "[")))


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


def _wanted(kind: str, detail: ErrorDetails) -> str:
    if kind == "union_tag_invalid":
        tags = str(detail["ctx"]["expected_tags"])
        return " or ".join(words for tag, words in (("<text>", "text"), ("<list>", "a list"), ("<mapping>", "a mapping")) if tag in tags)
    return _WANTED.get(kind, "what it should be")


def _quote_hint(wanted: str, offending: object) -> str:
    if wanted.startswith("text") and isinstance(offending, (int, float, bool)):
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
