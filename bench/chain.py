"""A chain that reorganises: eleven blocks pass through hot tables, alerts and transfers.

It is measured on a long chain and on one a tenth as long.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from strandline.app.invalidate import invalidate
from strandline.app.planning import RunRequest, make_plan
from strandline.app.run import RunOutcome, run
from strandline.app.workspace import open_workspace
from strandline.lake.table import get_table
from strandline.spark.session import get_session

from .engine import SILENT
from .measure import Sample, measure
from .progress import say

DEPTH = 11
PER_BLOCK = 5
PENDING = 1000
ROUNDS = 3
WARM_UP = 6
JOBS = ("hot_blocks", "hot_transactions", "alert_events", "transfers")
PROJECT = """\
project: chain_bench
settings:
  spark: {master: "local[2]", conf: {spark.driver.memory: 4g}}
sources:
  block_rows: {files: "blocks/*.parquet"}
  transaction_rows: {files: "transactions/*.parquet"}
datasets:
  blocks: {from: block_rows, event_stream: {}}
  transactions: {from: transaction_rows, event_stream: {}}
chains:
  hot_blocks:
    from: blocks
    number: block_number
    hash: block_hash
    parent: parent_hash
    head: {most: total_difficulty}
    order_by: [seq]
    anchor: 1
    follow: {hot_transactions: transactions}
jobs:
  - name: alert_evaluate
    incremental:
      mode: cursor
      cursor_column: block_number
      unique_key: [block_hash, tx_hash]
      inputs: {hot_transactions: {by: [block_number]}}
    update_strategy: append
    input_datasets: [hot_transactions]
    output_dataset: alert_events
    sql: select block_hash, tx_hash, block_number, amount from hot_transactions where amount >= 990000
  - name: enrich_transfers
    incremental:
      mode: cursor
      cursor_column: block_number
      inputs: {hot_transactions: {by: [block_number]}, hot_blocks: {by: [block_number]}}
    input_datasets: [hot_transactions, hot_blocks]
    output_dataset: transfers
    sql: >-
      select t.block_number, t.tx_hash, t.amount, b.miner
      from hot_transactions t
      join hot_blocks b on t.block_number = b.block_number and t.block_hash = b.block_hash
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reorg:
    seconds: Sample
    rows_read: dict[str, int]
    """By job: increment rows, and input rows left after restriction."""
    affected_rows: dict[str, int]
    """By job: rows of its inputs in the blocks that left or joined the canonical branch."""
    files: dict[str, tuple[int, int]]
    """By input: files whose statistics admit the blocks in question, and the number of all files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainLength:
    blocks: int
    transactions: int
    first_load: Sample
    reorgs: list[Reorg]
    full: Sample
    """The same jobs, computed in full."""
    planning: Sample
    """With a thousand invalidations pending on one dataset."""
    planned: tuple[str, ...]
    """The tasks that such a plan contains."""


@dataclass(slots=True)
class _Chain:
    """A project with a chain of some length, and the branch that is canonical now."""

    folder: Path
    blocks: int
    seq: int = 0

    def write(self, first: int, last: int, parent: str, branch: str, weight: int) -> None:
        """Announce the blocks of a branch with their transactions.

        The total difficulty of each block is a thousand times its number, plus `weight`.
        """
        numbers = list(range(first, last + 1))
        hashes = [name_block(branch, n) for n in numbers]
        name = f"{branch}-{first}.parquet"
        for folder in ("blocks", "transactions"):
            (self.folder / folder).mkdir(parents=True, exist_ok=True)
        blocks = {
            "block_number": numbers,
            "block_hash": hashes,
            "parent_hash": [parent, *hashes[:-1]],
            "total_difficulty": [n * 1000 + weight for n in numbers],
            "seq": [self.seq + i for i in range(len(numbers))],
            "miner": [f"miner {n % 97}" for n in numbers],
        }
        self.seq += len(numbers)
        pq.write_table(pa.table(blocks), self.folder / "blocks" / name)
        repeated = [n for n in numbers for _ in range(PER_BLOCK)]
        transactions = {
            "block_number": repeated,
            "block_hash": [h for h in hashes for _ in range(PER_BLOCK)],
            "tx_hash": [
                f"0x{(n * PER_BLOCK + i % PER_BLOCK) * 2654435761 % (1 << 64):064x}"
                for i, n in enumerate(repeated)
            ],
            "amount": [(n * 7919 + i * 104729 + weight * 31) % 1_000_000 for i, n in enumerate(repeated)],
        }
        pq.write_table(pa.table(transactions), self.folder / "transactions" / name)

    def run(self, request: RunRequest | None = None) -> RunOutcome:
        with open_workspace(self.folder) as workspace:
            outcome = run(workspace, request or RunRequest(), SILENT)
        if outcome.exit_code:
            raise RuntimeError(
                "\n".join(f"{r.node}: {r.status} {r.error}" for r in outcome.results if r.error)
            )
        return outcome


def name_block(branch: str, number: int) -> str:
    return f"0x{branch}{number:060x}"


def measure_chain(folder: Path, blocks: int) -> ChainLength:
    chain = _Chain(folder=folder, blocks=blocks)
    folder.mkdir(parents=True)
    (folder / "strandline.yaml").write_text(PROJECT)
    say(f"a chain of {blocks:,} blocks")
    chain.write(1, blocks, name_block("a", 0), "a", 0)
    with open_workspace(folder) as workspace:
        session = get_session(workspace.project.settings)
    first_load = measure(session, lambda: _by_node(chain.run()))
    say(f"  first load {first_load.seconds:.1f} s")
    reorgs: list[Reorg] = []
    for nth in range(WARM_UP + ROUNDS):
        reorg = _reorganise(chain, session, nth)
        if nth >= WARM_UP:
            reorgs.append(reorg)
            say(f"  reorg of {DEPTH} blocks: {reorg.seconds.seconds:.1f} s")
    full = measure(
        session, lambda: _by_node(chain.run(RunRequest(backfill=" ".join(JOBS), reason="benchmark")))
    )
    say(f"  the same jobs in full: {full.seconds:.1f} s")
    _pile_up(chain)
    tasks: list[str] = []

    def plan() -> None:
        with open_workspace(chain.folder) as workspace:
            tasks[:] = [t.node for t in make_plan(workspace, RunRequest())[0].tasks]

    plan()
    planning = measure(None, plan)
    say(f"  planning with {PENDING:,} invalidations: {planning.seconds:.2f} s, {len(tasks)} tasks")
    return ChainLength(
        blocks=blocks,
        transactions=blocks * PER_BLOCK,
        first_load=first_load,
        reorgs=reorgs,
        full=full,
        planning=planning,
        planned=tuple(tasks),
    )


def _pile_up(chain: _Chain) -> None:
    """Record a thousand invalidations of one table.

    The first is made as the command line makes it. Its commit is then repeated under the next versions.
    """
    with open_workspace(chain.folder) as workspace:
        version = invalidate(
            workspace, "hot_transactions", where="block_number between 10 and 20", reason="benchmark"
        ).table_version
        log = Path(workspace.lake.table("hot_transactions")) / "_delta_log"
    first = (log / f"{version:020}.json").read_text()
    for nth in range(1, PENDING):
        actions = [json.loads(line) for line in first.splitlines()]
        for action in actions:
            if info := action.get("commitInfo"):
                info["inCommitTimestamp"] += nth
                metadata = json.loads(info["userMetadata"])
                metadata["task"] += f"/{nth}"
                metadata["invalidations"][0]["id"] += f"-{nth}"
                info["userMetadata"] = json.dumps(metadata)
            if txn := action.get("txn"):
                txn["version"] += nth
        (log / f"{version + nth:020}.json").write_text("\n".join(map(json.dumps, actions)) + "\n")


def _by_node(outcome: RunOutcome) -> dict[str, float]:
    return {r.node: r.seconds for r in outcome.results}


def _reorganise(chain: _Chain, session: object, nth: int) -> Reorg:
    """Announce eleven blocks of another branch, slightly heavier than the eleven at the tip."""
    branch = f"b{nth:02}"
    first = chain.blocks - DEPTH + 1
    chain.write(first, chain.blocks, name_block("a", first - 1), branch, nth + 1)
    outcomes: list[RunOutcome] = []

    def work() -> dict[str, float]:
        outcomes.append(chain.run())
        return _by_node(outcomes[0])

    sample = measure(session, work)  # type: ignore[arg-type]
    results = {r.node: r for r in outcomes[0].results}
    if results["hot_blocks"].rows_written != DEPTH or results["transfers"].rows_written != DEPTH * PER_BLOCK:
        raise RuntimeError(
            f"the reorg wrote {results['hot_blocks'].rows_written} blocks, "
            f"{results['transfers'].rows_written} transfers"
        )
    came, left = DEPTH, DEPTH
    per_input = {"hot_blocks": came + left, "hot_transactions": (came + left) * PER_BLOCK}
    return Reorg(
        seconds=sample,
        rows_read={name: results[name].rows_read for name in ("alert_events", "transfers")},
        affected_rows={"alert_events": per_input["hot_transactions"], "transfers": sum(per_input.values())},
        files={name: _count_files(chain, name, first) for name in ("hot_blocks", "hot_transactions")},
    )


def _count_files(chain: _Chain, dataset: str, first: int) -> tuple[int, int]:
    with open_workspace(chain.folder) as workspace:
        highest = get_table(workspace.lake.table(dataset)).newest_by_file("block_number")
    return sum(1 for top in highest if not isinstance(top, int) or top >= first), len(highest)
