"""The section `datasets`: fact datasets, and descriptions of jobs' outputs."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from strandline.declare.loading import Loading, Offer, RowKey
from strandline.declare.names import lowered
from strandline.declare.section import Section
from strandline.declare.yaml_lines import DataPath
from strandline.model.columns import POSITION
from strandline.model.project import FactDataset, FileFormat
from strandline.model.report import Report, find_nearest, suggest
from strandline.sql.known_columns import NOTHING, Known

from .fact_dataset import make_fact_dataset
from .nodes import dataset_nodes
from .spec import DatasetSpec, FactDatasetSpec, OutputSpec

KEY = "datasets"


def load(datasets: Mapping[str, FactDatasetSpec | OutputSpec], loading: Loading) -> None:
    for name, spec in datasets.items():
        if isinstance(spec, OutputSpec):
            loading.row_keys[name] = RowKey(
                columns=lowered(spec.key),
                output_place=loading.document.place(KEY, name),
                place=loading.document.place(KEY, name, "key"),
            )
        else:
            _load_facts(name, spec, loading)


def _load_facts(name: str, spec: FactDatasetSpec, loading: Loading) -> None:
    claimed = loading.registry.claim(name, "dataset", loading.document.place(KEY, name))
    candidates = _find_sources(name, spec, loading)
    quiet = loading.follow_ups.get((KEY, name), frozenset())
    dataset, known = _make_dataset(name, spec, candidates, loading)
    if "unknown-column" in quiet:
        known = replace(known, complete=False, names=None)  # its columns were not understood
    if not claimed or quiet or len(candidates) > 1:
        loading.mark_broken(*_names(name, spec))
    if not claimed:
        return
    if loading.right:
        loading.nodes += dataset_nodes(dataset, loading.calendar)
    nodes = (f"{name}_facts", f"{name}_quarantine", *((name,) if dataset.record_set else ()))
    loading.names |= {node: (node,) for node in nodes}
    loading.names[name] = nodes
    row_key = dataset.record_set.key if dataset.record_set else dataset.identity
    refuses_null = dataset.record_set is not None  # a fact with a NULL in its key is quarantined (L3)
    with_key = replace(known, unique=_unique(dataset), row_key=row_key, always_named=refuses_null)
    loading.add_table(f"{name}_facts", f"{name}_facts", known if dataset.record_set else with_key)
    loading.add_table(f"{name}_quarantine", f"{name}_quarantine", NOTHING)
    loading.add_table(name, name if dataset.record_set else f"{name}_facts", with_key)


def _find_sources(name: str, spec: FactDatasetSpec, loading: Loading) -> tuple[Offer, ...]:
    """The source of a dataset.

    If it does not exist, the nearest one. If none is near, two sources that differ in everything on which a
    dataset may depend: only a mistake that occurs with both is a mistake of the dataset.
    """
    if spec.from_ in loading.offers:
        return (loading.offers[spec.from_],)
    if spec.from_ and spec.from_ not in loading.registry.broken:
        what = f"the dataset `{name}` is decoded from `{spec.from_}`, which is not a source."
        place = loading.document.place(KEY, name, "from")
        remedy = suggest(spec.from_, loading.source_names, "sources")
        loading.report.add("unknown-source", what, remedy, place)
        if (nearest := find_nearest(spec.from_, loading.offers)) is not None:
            return (loading.offers[nearest],)
    return tuple(Offer(name=spec.from_, format=format_) for format_ in (FileFormat.JSONL, FileFormat.PARQUET))


def _make_dataset(
    name: str, spec: FactDatasetSpec, candidates: tuple[Offer, ...], loading: Loading
) -> tuple[FactDataset, Known]:
    """The dataset. Reports the mistakes that it has with every one of these sources."""
    reports = [Report() for _ in candidates]
    made = []
    for source, own in zip(candidates, reports, strict=True):
        native = None if source.format.holds_messages else loading.known.get(source.name, NOTHING).names
        made.append(make_fact_dataset(name, spec, source, native, loading.document, own))
    loading.report_of(KEY, name).add_all(
        m for m in reports[0].mistakes if all(m in other.mistakes for other in reports[1:])
    )
    dataset, known = made[0]
    return dataset, known if len(candidates) == 1 else replace(known, complete=False, names=None)


def _unique(dataset: FactDataset) -> tuple[tuple[str, ...], ...]:
    """The columns that identify a row of a snapshot, or a fact of an event stream."""
    if dataset.record_set is not None:
        return (dataset.record_set.key,)
    # All elements of one message share its position.
    positions = () if dataset.explode else ((POSITION,),)
    return (*((dataset.identity,) if dataset.identity else ()), *positions)


def _names(name: str, _: object) -> Collection[str]:
    return name, f"{name}_facts", f"{name}_quarantine"


def _stand_in(entry: Mapping[str, Any], place: DataPath) -> object | None:
    match place:
        case ("from",):
            return ""
        case ("record_set", "key") if isinstance(entry.get("columns"), dict) and entry["columns"]:
            return [str(next(iter(entry["columns"])))]
        case _:
            return None


def _unreadable(place: DataPath) -> tuple[DataPath, object] | None:
    """A column whose declaration is not understood is still a column, of an unknown type."""
    return (place[:2], {"sql": "NULL"}) if place[:1] == ("columns",) and len(place) > 1 else None


_KINDS = ("record-set-without-ordering", "record-set-without-key", "ordering-without-key", "two-kinds")
_OF_RECORD_SETS = ("guard-without-record-set", "complete-without-record-set")
_CHILDREN = ("children-without-explode", "children-without-parent", "children-ranked-by-item")

DATASETS = Section(
    key=KEY,
    spec=DatasetSpec,
    load=load,
    counted_as="fact dataset",
    counted_if_none=True,
    is_counted=lambda spec: isinstance(spec, FactDatasetSpec),
    names=_names,
    stand_in=_stand_in,
    unreadable=_unreadable,
    not_yet={"mirror": "`mirror`"},
    follow_ups={
        "columns": ("missing-key", "unknown-column", "item-without-explode", *_CHILDREN),
        "explode": ("item-without-explode", "parent-without-nesting", *_CHILDREN),
        "record_set": (*_KINDS, *_OF_RECORD_SETS, *_CHILDREN),
        "event_stream": (*_KINDS, *_OF_RECORD_SETS),
        "contract": (*_KINDS, *_OF_RECORD_SETS),
    },
)
