"""What the fault suite knows of each kind of node: one module or folder per kind, each with a `KIND`.

A kind of the engine that is missing here fails the house suite (`tests/house/test_kinds.py`).

There are four worlds, because each table of a project costs every run time: the register has records, chains
and jobs, the ledger has timelines and what they read, the rooms are entities, and the desk is what is
published.
"""

from . import (
    chain,
    changes,
    entity,
    facts,
    job,
    quarantine,
    snapshot,
    source,
    timeline,
    trigger,
    valuation,
    view,
)
from .kind import Kind, without_data
from .valuation import readers

__all__ = ["DESK", "KINDS", "LEDGER", "REGISTER", "ROOMS", "Kind"]

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
DESK: tuple[Kind, ...] = (
    source.KIND,
    facts.KIND,
    quarantine.KIND,
    without_data(snapshot.KIND),
    view.KIND,
    changes.KIND,
    trigger.KIND,
)
KINDS: tuple[Kind, ...] = (
    *REGISTER,
    timeline.KIND,
    valuation.KIND,
    entity.KIND,
    view.KIND,
    changes.KIND,
    trigger.KIND,
)
"""Each kind once."""
