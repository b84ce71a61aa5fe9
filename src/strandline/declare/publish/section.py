"""The section `publish`: names of datasets that get a change log."""

from collections.abc import Collection, Mapping

from strandline.declare.loading import Loading
from strandline.declare.section import Section

from .log import want_log

KEY = "publish"


def load(names: Mapping[int, str], loading: Loading) -> None:
    for place, name in names.items():
        want_log(name, (KEY, place), loading, asked_for=True)


def _no_names(*_: object) -> Collection[str]:
    return ()


PUBLISH = Section(key=KEY, spec=str, load=load, is_list=True, counted_as="published dataset", names=_no_names)
