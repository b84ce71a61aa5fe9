"""The report of a soak."""

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .lives import Life, Sample

RECOVERY = 10.0
"""Seconds from a running Spark to the end of the first run after a kill."""
KILLS = ("both", "python", "jvm")
_MB = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    minutes: float
    seed: str
    lives: Sequence[Life]
    events: Sequence[dict[str, Any]]
    files: int
    lines: int
    queries: int
    webhooks: int
    """How many came to the receiver, each as often as it came."""
    refused: int
    """Answers of the receiver that were failures."""
    rows: dict[str, int]
    """By dataset: rows at rest."""
    last_runs: int
    broken: Sequence[str]

    def lines_to_print(self) -> Iterator[str]:
        ends, actions = Counter(life.ended_by for life in self.lives), self._actions()
        kills = sum(ends[how] for how in KILLS)
        verbs = Counter(a["action"] for a in actions)
        yield f"{'minutes':<48}{self.minutes:g}, seed {self.seed}"
        yield f"{'kills':<48}{kills}: {_count(ends, KILLS)}; asked to end {ends['asked']}"
        yield f"{'actions ended':<48}{len(actions)}: {_count(verbs, sorted(verbs, key=lambda v: -verbs[v]))}"
        yield f"{'of these not well':<48}{sum(1 for a in actions if a['code'])}"
        yield f"{'dead writers fenced off, commits found':<48}{self._sum('fenced')}, {self._sum('found')}"
        yield f"{'lines sent':<48}{self.lines:,} in {self.files:,} files"
        yield f"{'queries meanwhile':<48}{self.queries:,}"
        yield f"{'webhooks that came, failed answers':<48}{self.webhooks:,}, {self.refused:,}"
        yield f"{'rows at rest':<48}{', '.join(f'{name} {rows:,}' for name, rows in self.rows.items())}"
        yield f"{'runs until nothing waited':<48}{self.last_runs}"
        yield ""
        yield from self._times()
        yield ""
        yield from self._memory()
        yield ""
        yield from (f"BROKEN  {text}" for text in self.broken)
        yield f"kills {kills}, laws broken {len(self.broken)}"

    def _actions(self) -> list[dict[str, Any]]:
        return [t for t in self.events if t["event"] == "action"]

    def _sum(self, what: str) -> int:
        return sum(t.get(what, 0) for t in self.events)

    def _times(self) -> Iterator[str]:
        """Report the times of runs.

        A first run is one in a new JVM. After a kill it also has to finish the work of the killed writer.
        """
        yield f"{'seconds':<48}{'median':>8}{'p95':>8}{'max':>8}   of"
        recovered, started = list(self._first_runs(KILLS)), list(self._first_runs(("asked",)))
        yield spread("first run after a kill, without Spark's start", recovered)
        yield spread("first run after an end that was asked for", started)
        later = [a["seconds"] for a in self._actions() if a["action"] == "run" and a["tasks"]]
        yield spread("any run that had work", later)
        yield spread("Spark's start", [t["seconds"] for t in self.events if t["event"] == "ready"])
        if recovered:
            yield f"under {RECOVERY:g} s after every kill: {'yes' if max(recovered) < RECOVERY else 'NO'}"
        if recovered and started:
            yield (
                "a kill's own share, by the medians: "
                f"{statistics.median(recovered) - statistics.median(started):+.1f} s"
            )

    def _first_runs(self, ends: tuple[str, ...]) -> Iterator[float]:
        """Seconds from a running Spark to the end of the first successful run."""
        for life in self.lives:
            mine = [t for t in self.events if t["life"] == life.number]
            ready = next((t["at"] for t in mine if t["event"] == "ready"), None)
            ended = next(
                (t["at"] for t in mine if t["event"] == "action" and t["action"] == "run" and not t["code"]),
                None,
            )
            if life.after in ends and ready is not None and ended is not None:
                yield ended - ready

    def _memory(self) -> Iterator[str]:
        heads = "".join(f"{name:>20}" for name in ("Python MB", "its handles", "JVM MB", "its handles"))
        yield f"{'life, first / last / most':<30}{heads}"
        for life in self.lives:
            seconds = life.ended - life.began
            cells = [
                f
                for s in (life.python, life.jvm)
                for f in (_range([x.rss // _MB for x in s]), _range([x.handles for x in s]))
            ]
            yield f"{f'{life.number}: {seconds:.0f} s, ended by {life.ended_by}':<30}" + "".join(
                f"{cell:>20}" for cell in cells
            )
        yield from self._growth(self.lives[-1])

    def _growth(self, life: Life) -> Iterator[str]:
        """Report the growth in the last life, which nobody disturbed.

        It compares the second quarter with the last, so the warm-up is in neither.
        """
        yield f"growth of life {life.number}, from its second quarter to its last:"
        for name, samples in (("Python", life.python), ("JVM", life.jvm)):
            yield f"  {name:<8}" + ", ".join(_grown(samples, what) for what in ("rss", "handles"))
        heap = [t["bytes"] / _MB for t in self.events if t["event"] == "heap" and t["life"] == life.number]
        if heap:
            yield "  live heap after a collection, MB: " + " ".join(f"{value:.0f}" for value in heap)


def _count(counted: "Counter[str]", names: Iterable[str]) -> str:
    return ", ".join(f"{name} {counted[name]}" for name in names)


def spread(name: str, seconds: list[float]) -> str:
    if not seconds:
        return f"{name:<48}{'-':>8}{'-':>8}{'-':>8}   0"
    ordered = sorted(seconds)
    p95 = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    return f"{name:<48}{statistics.median(ordered):>8.1f}{p95:>8.1f}{ordered[-1]:>8.1f}   {len(ordered)}"


def _range(values: list[int]) -> str:
    return f"{values[0]} / {values[-1]} / {max(values)}" if values else "-"


def _grown(samples: list[Sample], what: str) -> str:
    quarter = len(samples) // 4
    if not quarter:
        return "too short to say"
    scale, unit = (_MB, "MB") if what == "rss" else (1, "handles")
    early, late = (
        statistics.median(getattr(s, what) for s in part) / scale
        for part in (samples[quarter : 2 * quarter], samples[-quarter:])
    )
    return f"{early:.0f} to {late:.0f} {unit} ({late - early:+.0f})"
