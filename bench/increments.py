"""Increments that touch a share of the keys, measured beside other ways to compute the same rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .comparators import (
    Script,
    fingerprint,
    merge,
    open_plain,
    read_facts,
    recompute_with_duckdb,
    recompute_with_pyspark,
)
from .engine import Engine, copy_table
from .measure import Sample, measure
from .progress import say
from .register import Register, deliver

WARM_UP = 5
"""Rounds before anything counts: a JVM makes its first fifteen commits at half speed."""
ROUNDS = {0.01: 3, 0.1: 5, 1.0: 3, 10.0: 2}
"""By percentage of the keys: how many increments are measured."""
MERGES = {0.01: 1, 0.1: 2, 1.0: 1, 10.0: 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Increments:
    """Samples by name and percentage; full recomputes have none."""

    first_load: Sample
    engine: Mapping[float, list[Sample]]
    script: Mapping[float, list[Sample]]
    merge: Mapping[float, list[Sample]]
    full: Mapping[str, list[Sample]]
    keys: Mapping[float, int]
    nothing_to_do: Sample
    differing: tuple[str, ...]
    """Results whose rows differ from those of the plain recompute. There must be none."""


def measure_increments(register: Register, engine: Engine, folder: Path) -> Increments:
    bench = _Bench(register, engine, folder)
    say("the engine's first load")
    first_load = engine.run(register.facts)
    say(f"  {first_load.seconds:.1f} s; warming up")
    bench.open_peers()
    for _ in range(WARM_UP):
        bench.round(bench.keys_of(0.1), merged=False)
    bench.catch_up()
    samples: dict[str, dict[float, list[Sample]]] = {"engine": {}, "script": {}, "merge": {}}
    for percent, rounds in ROUNDS.items():
        say(f"{rounds} increments of {percent:g} % ({bench.keys_of(percent):,} keys)")
        for nth in range(rounds):
            measured = bench.round(bench.keys_of(percent), merged=nth < MERGES[percent])
            say("  " + ", ".join(f"{name} {sample.seconds:.1f} s" for name, sample in measured.items()))
            for name, sample in measured.items():
                samples[name].setdefault(percent, []).append(sample)
        bench.recompute(with_pyspark=percent in (0.1, 1.0))
    bench.recompute_live()
    nothing_to_do = engine.run(0)
    differing = bench.find_differing()
    bench.rebuild()
    return Increments(
        first_load=first_load,
        engine=samples["engine"],
        script=samples["script"],
        merge=samples["merge"],
        full=bench.full,
        keys={percent: bench.keys_of(percent) for percent in ROUNDS},
        nothing_to_do=nothing_to_do,
        differing=differing,
    )


class _Bench:
    """The engine and its peers over one register, kept in step."""

    def __init__(self, register: Register, engine: Engine, folder: Path) -> None:
        self.register, self.engine, self.folder = register, engine, folder
        self.session, self.plain = engine.session, open_plain(engine.session)
        self.full: dict[str, list[Sample]] = {}
        self._unmerged: list[Path] = []
        self._script: Script | None = None

    def keys_of(self, percent: float) -> int:
        return max(1, round(self.register.keys * percent / 100))

    def open_peers(self) -> None:
        """Prepare the tables of the peers.

        The script starts from copies of the tables that the engine has just built. MERGE's target comes from
        a first plain recompute, which also warms that up.
        """
        tables = {name: self.folder / "script" / name for name in ("changes", "register_facts", "register")}
        for name, path in tables.items():
            copy_table(self.engine.table(name), path)
        self._script = Script(
            self.session,
            received=tables["changes"],
            facts=tables["register_facts"],
            snapshot=tables["register"],
            staging=self.folder / "script" / "staging",
        )
        recompute_with_pyspark(self.plain, self.engine.data, self.folder / "merged", for_merge=True)
        recompute_with_duckdb(self.engine.data, self.folder / "duckdb.parquet")

    def round(self, keys: int, *, merged: bool) -> dict[str, Sample]:
        """Measure one increment with each of them in turn."""
        assert self._script is not None
        script = self._script
        file = self.register.make_increment(keys)
        arrived = deliver(file, self.engine.data)
        samples = {
            "engine": self.engine.run(keys),
            "script": measure(self.session, lambda: script.run(arrived)),
        }
        if merged:
            self.catch_up()
            samples["merge"] = measure(
                self.session, lambda: merge(self.plain, [arrived], self.folder / "merged")
            )
        else:
            self._unmerged.append(arrived)
        return samples

    def catch_up(self) -> None:
        """Apply the increments that MERGE has skipped, outside any measurement."""
        if self._unmerged:
            merge(self.plain, self._unmerged, self.folder / "merged")
            self._unmerged = []

    def recompute(self, *, with_pyspark: bool) -> None:
        if with_pyspark:
            self._full(
                "pyspark",
                lambda: recompute_with_pyspark(self.plain, self.engine.data, self.folder / "pyspark"),
            )
        self._full("duckdb", lambda: recompute_with_duckdb(self.engine.data, self.folder / "duckdb.parquet"))

    def recompute_live(self) -> None:
        self._full(
            "pyspark_live",
            lambda: recompute_with_pyspark(
                self.plain, self.engine.data, self.folder / "pyspark_live", live_only=True
            ),
        )
        self._full(
            "duckdb_live",
            lambda: recompute_with_duckdb(
                self.engine.data, self.folder / "duckdb_live.parquet", live_only=True
            ),
        )

    def rebuild(self) -> None:
        say("the engine's own full rebuild")
        self.full["engine"] = [self.engine.rebuild()]

    def _full(self, name: str, work: "object") -> None:
        sample = measure(self.session, work)  # type: ignore[arg-type]
        say(f"full recompute, {name}: {sample.seconds:.1f} s")
        self.full.setdefault(name, []).append(sample)

    def find_differing(self) -> tuple[str, ...]:
        """Compare every result with a plain recompute over all facts delivered."""
        say("comparing the results")
        self.catch_up()
        recompute_with_pyspark(self.plain, self.engine.data, self.folder / "pyspark")
        delta = self.plain.read.format("delta")
        wanted = fingerprint(delta.load(str(self.folder / "pyspark")))
        tables = {
            "engine": self.engine.table("register"),
            "script": self.folder / "script" / "register",
            "merge": self.folder / "merged",
        }
        found = {name: fingerprint(delta.load(str(path))) for name, path in tables.items()}
        found["duckdb"] = fingerprint(read_facts(self.plain, self.folder / "duckdb.parquet"))
        say(f"  {wanted[0]:,} rows")
        return tuple(name for name, given in found.items() if given != wanted)
