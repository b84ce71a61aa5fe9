"""The section `triggers`. What a trigger reads gets a change log."""

from collections.abc import Mapping
from typing import Any

from strandline.declare.loading import Loading
from strandline.declare.publish.log import want_log
from strandline.declare.section import Section
from strandline.declare.yaml_lines import DataPath
from strandline.model.report import suggest
from strandline.sql.known_columns import Known

from .spec import TriggerSpec
from .trigger import COLUMNS, TriggerDraft

KEY = "triggers"


def load(triggers: Mapping[str, TriggerSpec], loading: Loading) -> None:
    for name, spec in triggers.items():
        path: DataPath = (KEY, name)
        place = loading.document.place(*path)
        endpoints = _find_endpoints(name, spec, path, loading)
        if not loading.registry.claim(name, "trigger", place):
            loading.mark_broken(name)
            continue
        loading.drafts[name] = TriggerDraft(
            name=name, spec=spec, path=path, place=place, dataset=spec.from_, endpoints=endpoints
        )
        loading.add_table(name, name, Known(types=COLUMNS, complete=True, names=frozenset(COLUMNS)))
        loading.names[name] = (name,)
    for name, spec in triggers.items():
        # After all names are known: a log of a dataset that does not exist would look like a dataset.
        if spec.from_ in loading.tables:
            want_log(spec.from_, (KEY, name, "from"), loading)


def _find_endpoints(name: str, spec: TriggerSpec, path: DataPath, loading: Loading) -> tuple[str, ...]:
    named = (spec.endpoint,) if isinstance(spec.endpoint, str) else tuple(spec.endpoint or ())
    for endpoint in named:
        if endpoint not in loading.endpoints and endpoint not in loading.registry.broken:
            what = f"the trigger `{name}` tells `{endpoint}`, which is not an endpoint."
            remedy = suggest(endpoint, loading.endpoints, "endpoints")
            loading.report_of(*path).add(
                "unknown-endpoint", what, remedy, loading.document.place(*path, "endpoint")
            )
    return tuple(dict.fromkeys(named))


def _stand_in(_: Mapping[str, Any], place: DataPath) -> object | None:
    match place:
        case ("from",):
            return ""
        case ("fire",):
            return {}
        case _:
            return None


TRIGGERS = Section(key=KEY, spec=TriggerSpec, load=load, counted_as="trigger", stand_in=_stand_in)
