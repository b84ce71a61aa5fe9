"""What the fault suite knows of each kind of node: one module or folder per kind, each with a `KIND`.

A kind of the engine that is missing here fails the house suite (`tests/house/test_kinds.py`).

There are three worlds, because each table of a project costs every run time: the register has records,
chains and jobs, the ledger has timelines and what they read, and the rooms are entities.
"""

from . import chain, entity, facts, job, quarantine, snapshot, source, timeline, valuation
from .kind import Kind, without_data
from .valuation import readers

__all__ = ["KINDS", "LEDGER", "REGISTER", "ROOMS", "Kind"]

REGISTER: tuple[Kind, ...] = (
    source.KIND,
    facts.KIND,
    quarantine.KIND,
    snapshot.KIND,
    chain.KIND,
    job.KIND,
)
"""Kinds that are read come before kinds that read them."""
LEDGER: tuple[Kind, ...] = (
    source.KIND,
    facts.KIND,
    quarantine.KIND,
    without_data(snapshot.KIND),
    timeline.KIND,
    valuation.KIND,
    readers.KIND,
)
ROOMS: tuple[Kind, ...] = (
    source.KIND,
    facts.KIND,
    quarantine.KIND,
    without_data(snapshot.KIND),
    entity.KIND,
)
KINDS: tuple[Kind, ...] = (*REGISTER, timeline.KIND, valuation.KIND, entity.KIND)
"""Each kind once."""
