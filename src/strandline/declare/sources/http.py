"""HTTP sources: facts are posted to the server, which keeps them in the lake until they are received."""

from strandline.declare.loading import Loading
from strandline.model.project import HttpSource

from .spec import SourceSpec


def make_http_source(name: str, spec: SourceSpec, key: str, loading: Loading) -> HttpSource | None:
    place = loading.document.place(key, name)
    for option in sorted(spec.model_fields_set - {"http"}):
        what = f"`{option}` of an HTTP source cannot be set: what is posted is JSON, and no file."
        remedy = f"Remove it, or declare the files as a source of their own, without `http` of `{name}`."
        loading.report.add("option-not-taken", what, remedy, loading.document.place(key, name, option))
    if not loading.lake_is_local:
        what = f"`{name}` is an HTTP source, and the lake is not a folder of this machine."
        remedy = (
            "Set `settings.lake` (or STRANDLINE_LAKE) to a folder. Posts are kept there until they are"
            " received, and an object store cannot keep two posts with one key apart."
        )
        loading.report.add("inbox-not-local", what, remedy, loading.document.place(key, name, "http"))
        return None
    return HttpSource(name=name, place=place)
