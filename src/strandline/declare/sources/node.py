"""The node of a source: what its rows depend on, and its traits."""

from strandline.declare.settings import as_text
from strandline.model.hashing import make_config
from strandline.model.node import Node, NodeConfig
from strandline.model.project import FileSource, HttpSource
from strandline.model.traits import Traits, Writing

from .spec import SourceSpec


def make_node(source: FileSource, spec: SourceSpec) -> Node:
    return Node(
        name=source.name,
        inputs=(),
        definition=source,
        config=_config(source, spec),
        traits=_traits(source),
    )


def make_http_node(source: HttpSource) -> Node:
    return Node(
        name=source.name,
        inputs=(),
        definition=source,
        config=make_config({"format": "http"}),
        traits=Traits(
            how="Messages that are posted are kept as they came, and each is appended once.",
            drawn_under="sources",
            drawn_from=0,
            writing=Writing.RECEIVES,
            answers_invalidations=False,
            runs_code=False,
            inbox=True,
            starts_empty=True,
        ),
    )


def _config(source: FileSource, spec: SourceSpec) -> NodeConfig:
    """Made from the declared options, because those of the source contain secrets."""
    options = {key: as_text(value) for key, value in spec.options.items()}
    return make_config({"format": str(source.format), "options": options, "complete": source.complete})


def _traits(source: FileSource) -> Traits:
    return Traits(
        how=f"Files that match {source.files} are read once, and every row is appended as it came.",
        drawn_under="sources",
        drawn_from=0,
        writing=Writing.RECEIVES,
        answers_invalidations=False,
        runs_code=False,
        pattern=source.files,
        starts_empty=source.format.holds_messages,
    )
