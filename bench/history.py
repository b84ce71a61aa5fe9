"""The same changed keys, with a history ten times as long."""

from dataclasses import dataclass
from pathlib import Path

from .engine import Engine, open_engine
from .measure import Sample
from .progress import say
from .register import Register, deliver, make_register

ROUNDS = 5
WARM_UP = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryLength:
    changed_keys: int
    short_facts: int
    long_facts: int
    short: list[Sample]
    long: list[Sample]


def measure_history(register: Register, engine: Engine, folder: Path) -> HistoryLength:
    """Compare `engine`, which has the long history, with a project that has a tenth of its tenants.

    Both receive the same files, in turn.
    """
    tenants = max(1, register.tenants // 10)
    say(f"a history of {tenants} tenants beside that of {register.tenants}")
    small = make_register(folder / "short_data", tenants)
    short_engine = open_engine(folder / "short", small)
    short_engine.run(small.facts)
    keys = max(1, register.keys // 1000)
    short: list[Sample] = []
    long: list[Sample] = []
    for nth in range(WARM_UP + ROUNDS):
        file = register.make_increment(keys, tenants)
        for each, samples in ((short_engine, short), (engine, long)):
            deliver(file, each.data)
            sample = each.run(keys)
            if nth >= WARM_UP:
                samples.append(sample)
        if nth >= WARM_UP:
            say(f"  {keys:,} keys: short {short[-1].seconds:.1f} s, long {long[-1].seconds:.1f} s")
    return HistoryLength(
        changed_keys=keys, short_facts=small.facts, long_facts=register.facts, short=short, long=long
    )
