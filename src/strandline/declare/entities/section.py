"""The section `entities`."""

from collections.abc import Mapping
from typing import Any

from strandline.declare.loading import Loading
from strandline.declare.section import Section
from strandline.declare.yaml_lines import DataPath

from .draft import EntityDraft
from .ids import make_id
from .spec import EntitySpec
from .written import read_variables

KEY = "entities"


def load(entities: Mapping[str, EntitySpec], loading: Loading) -> None:
    for name, spec in entities.items():
        _load(name, spec, loading)


def _load(name: str, spec: EntitySpec, loading: Loading) -> None:
    path: DataPath = (KEY, name)
    document, report, mistakes = loading.document, loading.report_of(*path), len(loading.report)
    place = document.place(*path)
    output = name
    if loading.registry.claim(name, "entity", place):
        loading.tables[name] = name
    else:
        output = ".".join(map(str, path))  # nothing can read it by this name
    columns, types = make_id(name, spec, path, document, report)
    before = len(loading.report)
    written = read_variables(spec, path, document, report)
    if not written and not spec.variables and not spec.groups:
        what = f"the entity `{name}` has no variables."
        report.add(
            "missing-key", what, 'Add `variables: {<name>: {from: <dataset>, select: "count(*)"}}`.', place
        )
    loading.drafts[output] = EntityDraft(
        name=name,
        spec=spec,
        path=path,
        place=place,
        output=output,
        id=columns,
        types=types,
        written=tuple(written),
        lacks_some=len(loading.report) > before,
    )
    loading.names[name] = (name,)
    if len(loading.report) > mistakes:
        loading.mark_broken(name)


def _stand_in(entry: Mapping[str, Any], place: DataPath) -> object | None:
    """Values for missing keys, so that the rest of the entry is checked."""
    match place:
        case ("id",):
            return "id"
        case (*_, "from"):
            return ""
        case (*_, "select"):
            return "count(*)"
        case (*_, "expr"):
            return "NULL"
        case ("groups", int(), "variables"):
            return {}
        case _:
            return None


ENTITIES = Section(
    key=KEY,
    spec=EntitySpec,
    load=load,
    counted_as="entity",
    stand_in=_stand_in,
    follow_ups={
        "id": ("entity-by", "entity-id-type", "unknown-column"),
        "by": ("entity-by",),
        "variables": ("unknown-column", "cycle", "unused-input", "missing-key"),
        "groups": ("unknown-column", "unused-input", "missing-key"),
    },
)
