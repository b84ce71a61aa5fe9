"""RisingWave's small TPC-H, subscribed: two queries over line items that go and come back."""

import asyncio
import csv
import gzip
from collections.abc import Awaitable, Callable, Iterable
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.harness import TestProject
from tests.unit.serve.serving import Client, Server, serving

pytestmark = [pytest.mark.spark, pytest.mark.real_data]

Make = Callable[[str], TestProject]
COLUMNS = ["l_orderkey", "l_linenumber", "l_quantity", "l_extendedprice", "l_discount", "l_tax"]
COLUMNS += ["l_returnflag", "l_linestatus", "l_shipdate"]
PROJECT = """
    project: tpch
    sources:
      lines: {files: "lines/*.csv"}
    datasets:
      lineitem:
        from: lines
        columns:
          l_orderkey:      {path: l_orderkey, type: bigint}
          l_linenumber:    {path: l_linenumber, type: bigint}
          l_quantity:      {path: l_quantity, type: "decimal(12,2)"}
          l_extendedprice: {path: l_extendedprice, type: "decimal(12,2)"}
          l_discount:      {path: l_discount, type: "decimal(12,2)"}
          l_tax:           {path: l_tax, type: "decimal(12,2)"}
          l_returnflag:    l_returnflag
          l_linestatus:    l_linestatus
          l_shipdate:      {path: l_shipdate, type: date}
          op:              op
        record_set: {key: [l_orderkey, l_linenumber], order_by: [_source_position], deleted: "op = 'D'"}
        guard: {max_deleted: 60%}  # half of all orders are deleted at once
      q1: {key: [l_returnflag, l_linestatus]}
      q6: {key: [query]}
    jobs:
      - name: q1
        input_datasets: [lineitem]
        output_dataset: q1
        incremental: {mode: keyed, key: [l_returnflag, l_linestatus]}
        update_strategy: replace
        sql: |
          SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty,
                 sum(l_extendedprice) AS sum_base_price,
                 sum(l_extendedprice * (1 - l_discount)) AS sum_disc_price,
                 sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge,
                 avg(l_quantity) AS avg_qty, avg(l_extendedprice) AS avg_price, avg(l_discount) AS avg_disc,
                 count(*) AS count_order
          FROM lineitem WHERE l_shipdate <= DATE '1998-09-21' GROUP BY l_returnflag, l_linestatus
      - name: q6
        input_datasets: [lineitem]
        output_dataset: q6
        incremental: {mode: full}
        update_strategy: replace
        sql: |
          SELECT 'q6' AS query, sum(l_extendedprice * l_discount) AS revenue FROM lineitem
          WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
            AND l_discount BETWEEN 0.07 AND 0.09 AND l_quantity < 24
    publish: [q1, q6, lineitem]
"""
ROWS = "operation ts_cursor data"
Q1 = f"""subscription {{ q1 {{ {ROWS} {{ l_returnflag l_linestatus sum_qty
  sum_base_price sum_disc_price sum_charge avg_qty avg_price avg_disc count_order }} }} }}"""
Q6 = f"subscription {{ q6 {{ {ROWS} {{ query revenue }} }} }}"
LINES = f"""subscription {{ lineitem(where: {{l_returnflag: {{_eq: "R"}}}})
  {{ {ROWS} {{ l_orderkey l_linenumber l_quantity }} }} }}"""
KEYS = {Q1: ("l_returnflag", "l_linestatus"), Q6: ("query",), LINES: ("l_orderkey", "l_linenumber")}


def write_lines(project: TestProject, name: str, lines: Iterable[dict[str, str]], op: str) -> None:
    folder = project.folder / "lines"
    folder.mkdir(exist_ok=True)
    with (folder / name).open("w", newline="") as out:
        writer = csv.DictWriter(out, [*COLUMNS, "op"], extrasaction="ignore")
        writer.writeheader()
        writer.writerows({**line, "op": op} for line in lines)


class Dashboard:
    """Keeps the rows of one subscription. Each message must fit to those before it."""

    def __init__(self, client: Client, query: str) -> None:
        self.client = client
        self.query = query
        self.rows: dict[tuple[str, ...], Any] = {}
        self.cursor = ""
        self.messages = 0

    async def follow(self) -> None:
        await self.client.subscribe(self.query)
        while True:
            (update,) = await self._next()
            key = tuple(update["data"][column] for column in KEYS[self.query])
            assert (key in self.rows) is (update["operation"] != "INSERT")
            if update["operation"] == "DELETE":
                del self.rows[key]
            else:
                self.rows[key] = update["data"]
            if update["ts_cursor"] is not None:
                assert update["ts_cursor"] > self.cursor
                self.cursor = update["ts_cursor"]
            self.messages += 1

    async def _next(self) -> list[Any]:
        answer = await self.client.receive(seconds=600)
        assert answer["type"] == "next", answer
        return list(answer["payload"]["data"].values())


async def settle(is_done: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not is_done():
            await asyncio.sleep(0.05)


def round_4(text: str) -> Decimal:
    return Decimal(text).quantize(Decimal("0.0001"), ROUND_HALF_UP)


def show_q1(rows: Iterable[Any]) -> list[list[object]]:
    """As RisingWave's file has it."""
    return sorted(
        [
            row["l_returnflag"],
            row["l_linestatus"],
            *(Decimal(row[c]) for c in ("sum_qty", "sum_base_price", "sum_disc_price", "sum_charge")),
            *(round_4(row[c]) for c in ("avg_qty", "avg_price", "avg_disc")),
            int(row["count_order"]),
        ]
        for row in rows
    )


def read_q1(folder: Path) -> list[list[object]]:
    lines = [line.split() for line in (folder / "expected_q1.txt").read_text().splitlines() if line.strip()]
    return sorted(
        [*line[:2], *map(Decimal, line[2:6]), *map(round_4, line[6:9]), int(line[9])] for line in lines
    )


def test_orders_are_deleted_and_put_back_and_every_subscriber_ends_where_it_began(
    make_project: Make, shared_data: Path, say: Callable[[str], None]
) -> None:
    data = shared_data / "4_live_changes/risingwave_tpch_mini"
    with gzip.open(data / "lineitem.csv.gz", "rt") as file:
        lines = list(csv.DictReader(file))
    even = [line for line in lines if int(line["l_orderkey"]) % 2 == 0]
    project = make_project(PROJECT)
    write_lines(project, "1.csv", lines, "I")
    project.run()

    async def story(server: Server) -> None:
        boards = [Dashboard(await Client.open(server), query) for query in (Q1, Q6, LINES)]
        following = [asyncio.create_task(board.follow()) for board in boards]
        q1, q6, items = boards
        refunds = sum(line["l_returnflag"] == "R" for line in lines)
        await settle(lambda: all(board.cursor for board in boards))
        assert len(items.rows) == refunds
        began = [dict(board.rows) for board in boards]
        assert show_q1(q1.rows.values()) == read_q1(data)
        assert Decimal(q6.rows["q6",]["revenue"]) == Decimal((data / "expected_q6.txt").read_text().strip())

        for name, op in (("2.csv", "D"), ("3.csv", "I")):
            write_lines(project, name, even, op)
            await asyncio.to_thread(project.run)
            expected = refunds - (op == "D") * sum(line["l_returnflag"] == "R" for line in even)
            await settle(lambda: len(items.rows) == expected)  # noqa: B023 called before the next turn
            shown = [
                {tuple(row): None for row in project.query(f"select {columns} from {name}")}
                for name, columns in (("q1", "l_returnflag, l_linestatus, sum_qty"), ("q6", "query, revenue"))
            ]
            await settle(lambda: find_shown(q1, q6) == shown)  # noqa: B023

        assert [board.rows for board in boards] == began
        assert all(not task.done() for task in following)
        for task in following:
            task.cancel()
        for board in boards:
            await board.client.socket.close()
        say(f"TPC-H: {sum(board.messages for board in boards):,} messages to three subscribers")

    with serving(project.folder) as server:
        run_story(story(server))
    project.assert_verified("q1", "q6")


def find_shown(q1: Dashboard, q6: Dashboard) -> list[dict[tuple[Any, ...], None]]:
    return [
        {(r["l_returnflag"], r["l_linestatus"], Decimal(r["sum_qty"])): None for r in q1.rows.values()},
        {(r["query"], Decimal(r["revenue"])): None for r in q6.rows.values()},
    ]


def run_story(story: Awaitable[None]) -> None:
    asyncio.run(story)  # type: ignore[arg-type]
