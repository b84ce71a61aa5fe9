"""The names of a file's own columns."""

from collections.abc import Sequence

from strandline.model.columns import RESERVED_PREFIX, native_name
from strandline.model.project import FileSource

from .survey import Piece
from .text import FileRefusedError


def check_names(source: FileSource, piece: Piece, columns: Sequence[str]) -> tuple[str, ...]:
    """The names under which a file's columns are kept. A file in which two coincide is refused."""
    names = tuple(native_name(c) or f"_c{i}" for i, c in enumerate(columns))
    if twice := sorted({c for c in names if names.count(c) > 1}):
        raise FileRefusedError(
            f"{source.place}: `{piece.read.path}` has columns that coincide: {', '.join(twice)}."
            " Names are lower-cased, and a blank or a bracket is kept as `_`.",
            remedy="Rename one of them in the file.",
            slug="columns-coincide",
        )
    if taken := [c for c in names if c.startswith(RESERVED_PREFIX)]:
        raise FileRefusedError(
            f"{source.place}: `{piece.read.path}` has a column {', '.join(taken)}, a name that Strandline"
            " uses beside the row.",
            remedy="Rename it in the file.",
            slug="metadata-column",
        )
    return names
