"""The section `views`. Each view gets a change log."""

from collections.abc import Mapping
from typing import Any

from strandline.declare.loading import Loading
from strandline.declare.publish.log import want_log
from strandline.declare.section import Section
from strandline.declare.yaml_lines import DataPath

from .spec import ViewSpec
from .view import ViewDraft

KEY = "views"


def load(views: Mapping[str, ViewSpec], loading: Loading) -> None:
    for name, spec in views.items():
        path: DataPath = (KEY, name)
        place = loading.document.place(*path)
        if not loading.registry.claim(name, "view", place):
            loading.mark_broken(name)
            continue
        loading.drafts[name] = ViewDraft(
            name=name, spec=spec, path=path, place=place, dataset=spec.from_, views=tuple(views)
        )
        loading.tables[name] = name
        loading.names[name] = (name,)
        want_log(name, path, loading)


def _stand_in(_: Mapping[str, Any], place: DataPath) -> object | None:
    return "" if place == ("from",) else None


VIEWS = Section(
    key=KEY,
    spec=ViewSpec,
    load=load,
    counted_as="view",
    stand_in=_stand_in,
    follow_ups={"calculated": ("unknown-column",)},
)
