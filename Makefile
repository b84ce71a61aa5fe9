PYTHON ?= python3
EXAMPLE ?= property_tax
MINUTES ?= 30
BIN := .venv/bin

.PHONY: help setup demo test test-faults test-types test-scale fuzz soak soak-serve endure lint docs bench clean

help: ## show these lines
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/make \1\t\2/' | expand -t 18

setup: ## install everything into .venv and a cache; quick and offline the second time
	@$(PYTHON) scripts/setup.py

demo: setup ## play an example, EXAMPLE=property_tax unless told
	@$(BIN)/python examples/play.py $(EXAMPLE)

test: setup ## run all tests; PYTEST_ARGS='-k late -x' to choose
	@$(PYTHON) scripts/test_needs.py
	@$(BIN)/python -m pytest -n 2 --dist loadscope --durations=15 $(PYTEST_ARGS)

test-faults: setup ## every kill, 10,000 schedules, real processes and damage; `make test` has a share of it
	@$(PYTHON) scripts/test_needs.py
	@STRANDLINE_FAULTS=all STRANDLINE_SCHEDULES=$${STRANDLINE_SCHEDULES:-10000} $(BIN)/python -m pytest -n 2 --dist loadscope --durations=15 tests/faults $(PYTEST_ARGS)

test-types: setup ## every type in every role, on every path that sizes choose between; `make test` takes one of the paths
	@STRANDLINE_TYPES=all $(BIN)/python -m pytest tests/types $(PYTEST_ARGS)

test-scale: setup ## two million rows in one scope, a million facts of one key (of a timeline too, in a day), 5,000 files, 500 nodes, 10,000 commits
	@STRANDLINE_SCALE=1 $(BIN)/python -m pytest tests/scale --durations=0 $(PYTEST_ARGS)

fuzz: setup ## random jobs against recomputes by Spark and DuckDB for MINUTES=30; FUZZ_ARGS='--seed 7' repeats one
	@$(BIN)/python -m tests.fuzz --minutes $(MINUTES) $(FUZZ_ARGS)

soak: setup ## a mixed load and a random SIGKILL every 20 to 60 seconds for MINUTES=30, then the laws; SOAK_ARGS='--seed 7' repeats one
	@$(BIN)/python -m tests.faults.soak --minutes $(MINUTES) $(SOAK_ARGS)

soak-serve: setup ## `serve` with posts, requests, subscribers, a receiver that fails, and a kill every 20 to 60 seconds for MINUTES=20, then the laws
	@$(BIN)/python -m tests.faults.soak.serving --minutes $(MINUTES) $(SOAK_ARGS)

endure: setup ## `serve` at one post a second for MINUTES=60: memory, handles and threads must not grow
	@$(BIN)/python -m bench.endurance --minutes $(MINUTES)

lint: setup ## ruff, mypy and the import contracts
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports

docs: setup ## write what is generated: the page of errors and the JSON Schema of the project file
	@$(BIN)/python scripts/error_reference.py
	@$(BIN)/python -m strandline.declare.json_schema

bench: setup ## measure against the peers; results go to bench/results
	@$(BIN)/python -m bench $(BENCH_ARGS)

clean: ## remove the environment and what tools left behind; keeps the cache of jars
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist spark-warehouse metastore_db derby.log
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
