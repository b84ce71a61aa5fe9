"""What the fault suite knows of each kind of node: one module or folder per kind, each with a `KIND`.

A kind of the engine that is missing here fails the house suite (`tests/house/test_kinds.py`).
"""

from . import chain, facts, job, quarantine, snapshot, source
from .kind import Kind

__all__ = ["KINDS", "STREAMS", "Kind"]

KINDS: tuple[Kind, ...] = (
    source.KIND,
    facts.KIND,
    quarantine.KIND,
    snapshot.KIND,
    chain.KIND,
    job.KIND,
)
"""Kinds that are read come before kinds that read them."""
STREAMS = tuple(stream for kind in KINDS for stream in kind.streams)
