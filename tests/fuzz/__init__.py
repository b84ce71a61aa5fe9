"""A differential fuzzer of jobs: random SQL over random changing rows. `make fuzz MINUTES=10`; a share of it is in `make test`.

queries: random SQL, much of it nearly provable. laws: does what was proved hold, by DuckDB and by Spark. published: the whole engine, run
after run, against a full recompute by both. mutants: wrong provers, each of which the laws must find.
"""
