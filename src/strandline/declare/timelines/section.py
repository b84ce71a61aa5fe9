"""The section `timelines`."""

from collections.abc import Collection, Mapping
from typing import Any

from strandline.declare.loading import Loading
from strandline.declare.section import Section
from strandline.declare.yaml_lines import DataPath
from strandline.model.hashing import digest

from .history import HistoryDraft, find_field_types, load_fold, make_fields
from .row_names import check_row_names
from .spec import TimelineSpec
from .valuation import ValuationDraft, make_due_at

KEY = "timelines"


def load(timelines: Mapping[str, TimelineSpec], loading: Loading) -> None:
    for name, spec in timelines.items():
        _load(name, spec, loading)


def _load(name: str, spec: TimelineSpec, loading: Loading) -> None:
    path: DataPath = (KEY, name)
    document, report, mistakes = loading.document, loading.report_of(*path), len(loading.report)
    valuation = spec.valuation
    place = document.place(*path)
    if valuation is not None or spec.output_dataset != name:
        loading.registry.claim(name, "timeline", place)
    history = _claim(spec.output_dataset, (*path, "output_dataset"), loading)
    check_row_names(name, spec, path, document, report)
    fields = make_fields(name, spec, path, document, report)
    loading.drafts[history] = HistoryDraft(
        name=name,
        spec=spec,
        path=path,
        place=place,
        output=history,
        fold=load_fold(name, spec, path, loading.folder, document, report),
        fields=fields,
        facts=spec.facts,
    )
    outputs = [history]
    if valuation is not None:
        inner = (*path, "valuation")
        output = _claim(valuation.output_dataset, (*inner, "output_dataset"), loading)
        outputs.append(output)
        loading.drafts[output] = ValuationDraft(
            timeline=name,
            field_types=find_field_types(spec, fields),
            spec=valuation,
            path=inner,
            place=document.place(*inner),
            history=history,
            output=output,
            due_at=make_due_at(name, valuation, inner, document, report),
        )
    loading.names |= {output: (output,) for output in outputs}
    loading.names[name] = tuple(outputs)
    if len(loading.report) > mistakes:
        loading.mark_broken(*outputs)


def _claim(output: str, path: DataPath, loading: Loading) -> str:
    """The key of an output's draft: its name, or one by which nothing can read it if the name is taken."""
    if not loading.registry.claim(output, "timeline's output", loading.document.place(*path)):
        loading.mark_broken(output)
        return ".".join(map(str, path))
    loading.tables[output] = output
    return output


def _names(name: str, entry: object) -> Collection[str]:
    """Also the datasets beside it, which are named after the timeline."""
    valuation = entry.get("valuation") if isinstance(entry, dict) else None
    outputs = (part.get("output_dataset") for part in (entry, valuation) if isinstance(part, dict))
    return name, f"{name}_state", f"{name}_epochs", *map(str, outputs)


def _stand_in(entry: Mapping[str, Any], place: DataPath) -> object | None:
    """Values for missing keys, so that the rest of the entry is checked. No one can name such an output."""
    key: object = entry.get("key")
    match place:
        case ("facts",) | ("date",) | ("fold",):
            return ""
        case ("output_dataset",) | ("valuation", "output_dataset"):
            return f"unnamed_{digest([entry, place])}"
        case ("order_by",) if isinstance(key, list):
            return key
        case ("fields",):
            return {}
        case ("valuation", "calendar"):
            return "weekdays"
        case _:
            return None


TIMELINES = Section(
    key=KEY,
    spec=TimelineSpec,
    load=load,
    counted_as="timeline",
    names=_names,
    stand_in=_stand_in,
    follow_ups={
        "fields": ("unknown-column", "reference-on"),
        "valuation": ("unknown-column", "reference-on"),
    },
)
