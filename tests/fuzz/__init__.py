"""A differential fuzzer of jobs: random SQL over random changing rows.

`make fuzz MINUTES=10` runs it, and `make test` runs a part of it. `queries` makes random SQL, much of it
nearly provable. `laws` checks with DuckDB and with Spark that what was proved holds. `published` compares the
whole engine, run after run, with a full recompute by both. `mutants` are wrong provers, each of which the
laws must find.
"""
