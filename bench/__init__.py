"""Benchmarks: increments of the engine beside its own rebuild, PySpark, Delta's MERGE, DuckDB and a hand-written script, in one run.

`python -m bench` measures and writes JSON and a plot to `bench/results`. Nothing here is imported by the engine.
"""
