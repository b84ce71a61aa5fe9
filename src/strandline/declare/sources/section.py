"""The section `sources`."""

from collections.abc import Mapping
from pathlib import Path

from strandline.declare.loading import Loading, Offer
from strandline.declare.section import Section
from strandline.model.project import FileFormat, FileSource, HttpSource
from strandline.sql.known_columns import Known

from .files import find_columns, make_source
from .http import make_http_source
from .node import make_http_node, make_node
from .spec import SourceSpec

KEY = "sources"


def load(sources: Mapping[str, SourceSpec], loading: Loading) -> None:
    loading.source_names = loading.written[KEY]
    for name, spec in sources.items():
        place = loading.document.place(KEY, name)
        source = (
            make_source(name, spec, loading.secrets, loading.document, loading.report)
            if spec.http is None
            else make_http_source(name, spec, KEY, loading)
        )
        if not loading.registry.claim(name, "source", place) or source is None:
            loading.mark_broken(name)
            continue
        loading.names[name] = (name,)
        if isinstance(source, HttpSource):
            # Messages, as lines of jsonl are.
            loading.offers[name] = Offer(name=name, format=FileFormat.JSONL)
            loading.add_table(name, name, Known(types={}, complete=True, names=frozenset()))
        else:
            loading.offers[name] = Offer(name=name, format=source.format, complete=source.complete)
            loading.add_table(name, name, _find_known(source, loading.folder))
        if loading.right:
            loading.nodes.append(
                make_http_node(source) if isinstance(source, HttpSource) else make_node(source, spec)
            )


def _find_known(source: FileSource, folder: Path) -> Known:
    messages = source.format.holds_messages
    return Known(
        types={},
        complete=messages,
        other_type="string" if source.format is FileFormat.CSV else None,
        names=frozenset() if messages else find_columns(source, folder),
    )


SOURCES = Section(
    key=KEY,
    spec=SourceSpec,
    load=load,
    counted_as="source",
    counted_if_none=True,
    follow_ups={"format": ("unknown-format",)},
    not_yet={
        "kafka": "A Kafka source",
        "postgres": "A Postgres source",
        "delta": "A Delta source",
        "envelope": "`envelope`",
    },
)
