"""One picture: time against the share of keys changed, and where a run's time goes."""

from pathlib import Path

import matplotlib

from .increments import Increments
from .measure import median, middle

_LINES = {
    "engine": ("engine", "tab:blue", "o-"),
    "script": ("hand-written script", "tab:cyan", "s--"),
    "merge": ("MERGE", "tab:orange", "^-"),
}
_LEVELS = {
    "pyspark": ("PySpark, full", "tab:red"),
    "duckdb": ("DuckDB, full", "tab:olive"),
    "engine": ("engine, full rebuild", "tab:purple"),
}
_NODES = {
    "changes": ("received", "#9ecae1"),
    "register_facts": ("facts", "#4292c6"),
    "register": ("snapshot", "#084594"),
}


def draw(found: Increments, scale: int, path: Path) -> None:
    matplotlib.use("Agg")  # no display is needed
    import matplotlib.pyplot as plt

    percents = list(found.engine)
    figure, (times, parts) = plt.subplots(1, 2, figsize=(12, 5), width_ratios=(3, 2))
    for name, (label, color, style) in _LINES.items():
        samples = getattr(found, name)
        times.plot(percents, [median(samples[p]) for p in percents], style, color=color, label=label)
    for name, (label, color) in _LEVELS.items():
        if name in found.full:
            times.axhline(median(found.full[name]), color=color, linestyle=":", label=label)
    times.set(
        xscale="log",
        yscale="log",
        xlabel="% of the keys changed",
        ylabel="seconds",
        title=f"From file to snapshot, {scale} tenants",
    )
    times.set_xticks(percents, [f"{p:g}" for p in percents])
    times.grid(visible=True, which="both", alpha=0.2)
    times.legend(fontsize=8)
    places = range(len(percents))
    bottoms = [0.0] * len(percents)
    for node, (label, color) in _NODES.items():
        heights = [middle(found.engine[p]).by_node.get(node, 0.0) for p in percents]
        parts.bar(places, heights, bottom=bottoms, color=color, label=label)
        bottoms = [b + h for b, h in zip(bottoms, heights, strict=True)]
    rest = [max(0.0, median(found.engine[p]) - b) for p, b in zip(percents, bottoms, strict=True)]
    parts.bar(places, rest, bottom=bottoms, color="#cccccc", label="plan, and the rest")
    parts.set_xticks(places, [f"{p:g} %" for p in percents])
    parts.set(ylabel="seconds", title="Where the engine's time goes")
    parts.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    plt.close(figure)
