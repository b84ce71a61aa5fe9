"""Published chains: Ethereum's fork tests, logs of Bitcoin nodes, competing blocks, two mainnet blocks."""

import csv
import gzip
import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterable
from decimal import Decimal
from pathlib import Path

import pytest

from tests.harness import TestProject

pytestmark = [pytest.mark.spark, pytest.mark.real_data]

Make = Callable[[str], TestProject]
Row = dict[str, str]

FORKS = """
    project: forks
    sources:
      block_rows: {files: "blocks/*.csv"}
      other_rows: {files: "others/*.csv"}
      transaction_rows: {files: "transactions/*.csv"}
    datasets:
      blocks: &blocks
        from: block_rows
        columns: {seq: {type: bigint}, block_number: {type: bigint}, difficulty: {type: bigint}}
        event_stream: {identity: [scenario, block_hash]}
      others:
        <<: *blocks
        from: other_rows
      transactions:
        from: transaction_rows
        columns: {block_number: {type: bigint}, value_wei: {type: "decimal(38,0)"}}
        event_stream: {identity: [scenario, block_hash, tx_hash]}
    chains:
      hot_blocks: &chain
        from: blocks
        number: block_number
        hash: block_hash
        parent: parent_hash
        head: {most_summed: difficulty}
        order_by: [seq]
        group_by: [scenario]
        anchor: 1
        follow: {hot_transactions: transactions}
      other_blocks:
        <<: *chain
        from: others
        follow: {}
    jobs:
      - name: tell
        incremental: {mode: cursor, cursor_column: block_number, unique_key: [scenario, block_hash]}
        update_strategy: append
        input_datasets: [hot_blocks]
        output_dataset: told
        sql: select scenario, block_hash, block_number from hot_blocks
      - name: received
        incremental: {mode: keyed, key: [scenario, to_address]}
        input_datasets: [hot_transactions]
        output_dataset: received
        sql: >-
          select scenario, to_address, sum(value_wei) as wei from hot_transactions
          group by scenario, to_address
      - name: sent
        incremental: {mode: keyed, key: [scenario, sender]}
        input_datasets: [hot_transactions]
        output_dataset: sent
        sql: select scenario, sender, count(*) as n from hot_transactions group by scenario, sender
"""


def read_csv(file: Path) -> list[Row]:
    with gzip.open(file, "rt") if file.suffix == ".gz" else file.open() as stream:
        return list(csv.DictReader(stream))


def write_csv(project: TestProject, path: str, rows: Iterable[Row]) -> None:
    listed = list(rows)
    lines = [",".join(listed[0]), *(",".join(row.values()) for row in listed)]
    project.write(path, "\n".join(lines) + "\n")


def find_branch(blocks: Iterable[Row]) -> list[Row]:
    """The branch of the heaviest head connected to number 1, ties to the lower `seq`."""
    known = {b["block_hash"]: b for b in blocks}
    best: tuple[tuple[int, int], list[Row]] = ((0, 0), [])
    for block in known.values():
        branch: list[Row] = []
        at: Row | None = block
        while at is not None:
            branch.append(at)
            at = known.get(at["parent_hash"])
        if int(branch[-1]["block_number"]) == 1:
            weight = (sum(int(b["difficulty"]) for b in branch), -int(block["seq"]))
            best = max(best, (weight, branch[::-1]), key=lambda pair: pair[0])
    return best[1]


def test_twenty_fork_scenarios_end_with_the_heads_and_balances_of_their_authors(
    make_project: Make, shared_data: Path
) -> None:
    folder = shared_data / "1_blockchain"
    blocks, transactions = (
        read_csv(folder / "eth_fork_blocks.csv"),
        read_csv(folder / "eth_fork_transactions.csv"),
    )
    expected = {
        row["scenario"]: row["expected_head_hash"] for row in read_csv(folder / "eth_fork_expected_head.csv")
    }
    genesis = {
        row["scenario"]: row["genesis_hash"] for row in read_csv(folder / "eth_fork_expected_head.csv")
    }
    accounts = read_csv(folder / "eth_fork_expected_accounts.csv")
    project = make_project(FORKS)
    by_seq = sorted(blocks, key=lambda b: int(b["seq"]))
    shuffled = blocks[:]
    random.Random(7).shuffle(shuffled)
    branches: dict[str, list[str]] = defaultdict(list)
    ever_canonical: set[tuple[str, str]] = set()
    reorgs: set[tuple[str, int, int, str, str]] = set()
    write_csv(project, "transactions/all.csv", transactions)
    size = len(blocks) // 2
    for nth in range(2):
        write_csv(project, f"blocks/{nth}.csv", by_seq[nth * size : (nth + 1) * size])
        write_csv(project, f"others/{nth}.csv", shuffled[nth * size : (nth + 1) * size])
        project.run()
        for scenario in expected:
            branch = [
                b["block_hash"]
                for b in find_branch(b for b in by_seq[: (nth + 1) * size] if b["scenario"] == scenario)
            ]
            old = branches[scenario]
            shared = next(
                (i for i, (a, b) in enumerate(zip(old, branch, strict=False)) if a != b),
                min(len(old), len(branch)),
            )
            if shared < len(old):
                reorgs.add((scenario, shared + 1, max(len(old), len(branch)), old[-1], branch[-1]))
            branches[scenario] = branch
            ever_canonical |= {(scenario, hash_) for hash_ in branch}
        assert project.rows("hot_blocks", "scenario", "block_number", "block_hash") == {
            (scenario, n, hash_) for scenario, branch in branches.items() for n, hash_ in enumerate(branch, 1)
        }

    for chain in ("hot_blocks", "other_blocks"):
        newest = (
            f"select scenario, last_value(block_hash order by block_number) from {chain} group by scenario"
        )
        heads = dict(project.query(newest))
        missing = {s for s in expected if s not in heads}
        assert {**heads, **{s: genesis[s] for s in missing}} == expected, chain
    recorded = project.query(
        "select row_filter, source_event from data_invalidations "
        "where reason = 'reorg' and dataset = 'hot_blocks'"
    )
    invalidations = [(json.loads(str(f)), json.loads(str(e))) for f, e in recorded]
    recorded_reorgs = [
        (f["scenario"]["eq"], f["block_number"]["gte"], f["block_number"]["lte"], e["old_tip"], e["new_tip"])
        for f, e in invalidations
    ]
    assert len(recorded_reorgs) == len(set(recorded_reorgs))
    assert set(recorded_reorgs) == reorgs
    assert reorgs
    assert project.rows("told", "scenario", "block_hash") == ever_canonical
    _compare_accounts(project, blocks, transactions, accounts)
    project.assert_verified("hot_blocks", "other_blocks", "hot_transactions", "told", "received", "sent")


def _compare_accounts(
    project: TestProject, blocks: list[Row], transactions: list[Row], accounts: list[Row]
) -> None:
    """An account that only received has the sum of its canonical transactions.

    An account that sent has used one nonce per transaction.
    """
    received = {
        (s, a): int(str(v))
        for s, a, v in project.query("select scenario, to_address, cast(wei as varchar) from received")
    }
    sent = {(s, a): n for s, a, n in project.query("select scenario, sender, n from sent")}
    others = {(t["scenario"], t["sender"]) for t in transactions} | {
        (b["scenario"], b["coinbase"]) for b in blocks
    }
    recipients = {(t["scenario"], t["to_address"]) for t in transactions}
    compared = 0
    for account in accounts:
        key = (account["scenario"], account["address"])
        assert (
            sent.get(key, 0) == int(account["post_nonce"]) - int(account["pre_nonce"])
            or account["has_code"] == "True"
        ), key
        if (
            key in recipients - others and account["has_code"] == "False"
        ):  # the reward of an uncle's miner is not a transaction
            assert received.get(key, 0) == int(account["post_balance"]) - int(account["pre_balance"]), key
            compared += 1
    assert compared >= 10


RECORDS = """
    project: published
    sources:
      tip_rows: {files: "tips/*.csv"}
      competing_rows: {files: "competing/*.csv"}
      log_lines: {files: "logs/*.jsonl.gz"}
    datasets:
      tips:
        from: tip_rows
        columns: {node_seq: {type: bigint}, height: {type: bigint}}
        record_set: {key: [node, height], order_by: [node_seq]}
      competing:
        from: competing_rows
        columns: {height: {type: bigint}, output_sats: {type: bigint}}
        event_stream: {}
      logs:
        from: log_lines
        columns:
          block_number: {path: block_number, type: bigint}
          block_hash: block_hash
          transaction_hash: transaction_hash
          log_index: {path: log_index, type: int}
          address: address
          data: data
          topics: {path: topics, type: json}
        event_stream: {identity: [block_hash, log_index]}
    jobs:
      - name: heights
        incremental: {mode: cursor, cursor_column: height}
        input_datasets: [tips]
        output_dataset: heights
        sql: select height, count(*) as nodes, count(distinct block_hash) as blocks from tips group by height
      - name: alert
        incremental: {mode: cursor, cursor_column: height, unique_key: [block_hash, txid]}
        update_strategy: append
        input_datasets: [competing]
        output_dataset: alerts
        sql: select block_hash, txid, height, output_sats from competing
      - name: transfers
        incremental: {mode: cursor, cursor_column: block_number}
        input_datasets: [logs]
        output_dataset: transfers
        sql: jobs/transfers.sql
"""
TRANSFERS = """
with words as (
  select block_number, block_hash, transaction_hash, log_index, address,
         concat(from_json(topics, 'array<string>'),
                if(length(data) > 2,
                   transform(sequence(0, cast((length(data) - 2) / 64 as int) - 1),
                             i -> substr(data, 3 + i * 64, 64)),
                   cast(array() as array<string>))) as w
  from logs
  where from_json(topics, 'array<string>')[0]
        = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
)
select block_number, transaction_hash, log_index, address as token_address,
       concat('0x', right(w[1], 40)) as from_address, concat('0x', right(w[2], 40)) as to_address,
       cast(conv(substr(w[3], -15, 15), 16, 10) as decimal(38, 0))
         + cast(conv(substr(w[3], -30, 15), 16, 10) as decimal(38, 0))
           * cast(1152921504606846976 as decimal(20, 0)) as value
from words where size(w) = 4
"""


def test_nodes_that_step_back_competing_blocks_and_token_transfers(
    make_project: Make, shared_data: Path
) -> None:
    folder = shared_data / "1_blockchain"
    tips, competing = (
        read_csv(folder / "btc_node_tips.csv.gz"),
        read_csv(folder / "btc_competing_337487_transactions.csv"),
    )
    stale = {(int(row["height"]), row["block_hash"]) for row in read_csv(folder / "btc_stale_blocks.csv")}
    project = make_project(RECORDS)
    project.write("jobs/transfers.sql", TRANSFERS)
    (project.folder / "logs").mkdir()
    (project.folder / "logs" / "two.jsonl.gz").write_bytes(
        (folder / "eth_mainnet_17173049_17173050_logs.jsonl.gz").read_bytes()
    )
    by_seq = sorted(tips, key=lambda t: int(t["node_seq"]))
    size = len(tips) // 2
    for nth in range(2):
        write_csv(project, f"tips/{nth}.csv", by_seq[nth * size : (nth + 1) * size])
        write_csv(
            project, f"competing/{nth}.csv", competing[nth * 300 : 400 + nth * 300]
        )  # each overlaps the one before
        project.run()

    newest = {(t["node"], int(t["height"])): t["block_hash"] for t in by_seq}
    assert project.rows("tips", "node", "height", "block_hash") == {
        (node, height, hash_) for (node, height), hash_ in newest.items()
    }
    assert len(newest) < len(tips), "no node ever stepped back"
    ends = {(height, hash_) for (_, height), hash_ in newest.items()}
    assert not ends & stale
    assert {(int(t["height"]), t["block_hash"]) for t in tips} & stale, "no node ever saw a stale block"
    assert len(project.rows("alerts", "block_hash", "txid")) == 687
    with gzip.open(folder / "eth_mainnet_17173049_17173050_token_transfers.jsonl.gz", "rt") as stream:
        transfers = [json.loads(line) for line in stream]
    expected = {
        (
            t["transaction_hash"],
            t["log_index"],
            t["token_address"],
            t["from_address"],
            t["to_address"],
            Decimal(t["value"]),
        )
        for t in transfers
        if t["value"] < 1 << 120
    }
    assert (
        project.rows(
            "transfers",
            "transaction_hash",
            "log_index",
            "token_address",
            "from_address",
            "to_address",
            "value",
        )
        >= expected
    )
    assert len(project.rows("transfers", "transaction_hash", "log_index")) == len(transfers)
    assert len(expected) > 250
    project.assert_verified("heights", "alerts", "transfers")
