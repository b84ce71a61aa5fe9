"""Benchmarks of the engine and its peers, measured side by side in one run.

The peers are the engine's own rebuild, PySpark, Delta's MERGE, DuckDB and a hand-written script.

`python -m bench` writes JSON and a plot to `bench/results`. The engine imports nothing from here.
"""
