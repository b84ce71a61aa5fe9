"""`check` reports all mistakes of a project, each with its file and line, and no mere consequences."""

import random
from dataclasses import dataclass
from pathlib import Path

import pytest

from strandline.declare import load_project
from strandline.model.errors import ProjectError
from tests.unit.declare.builders import report, write

YAML = """\
project: shop
timezone: Asia/Kolkata
financial_year_starts: 04-01
settings:
  workers: 2
  keep: 30 days
sources:
  order_events: {files: "data/orders/*.jsonl"}
  price_list:
    files: "data/prices/*.csv"
    complete: true
  block_events: {files: "data/blocks/*.jsonl"}
datasets:
  orders:
    from: order_events
    where: "status <> 'DRAFT'"
    columns:
      order_id: orderId
      customer: customer
      article: article
      pieces: {path: pieces, type: int}
      total: {sql: "pieces * 2"}
      changed_at: {path: changedAt, type: timestamp}
    require: [customer]
    record_set:
      key: [order_id]
      order_by: [changed_at]
      deleted: "pieces = 0"
    source_at: changed_at
    guard: {max_deleted: "20%", at_least: 10}
  prices:
    from: price_list
    columns:
      article: {type: string}
      cents: {type: bigint}
      valid_from: {type: date}
    record_set: {key: [article], order_by: [valid_from]}
  blocks:
    from: block_events
    columns:
      block_number: {path: number, type: bigint}
      block_hash: hash
      parent_hash: parentHash
      miner: miner
      weight: {path: weight, type: bigint}
    event_stream: {identity: [block_hash]}
  best:
    key: [customer]
chains:
  canonical:
    from: blocks
    number: block_number
    hash: block_hash
    parent: parent_hash
    head: {most: weight}
jobs:
  - name: totals
    input_datasets: [orders]
    output_dataset: customer_totals
    incremental:
      mode: keyed
      key: [customer]
    config: {least: 3}
    sql: jobs/totals.sql
  - name: worth
    input_datasets: [orders, prices]
    output_dataset: worth
    incremental:
      mode: keyed
      key: [customer]
      inputs:
        orders: {by: [customer]}
        prices: whole
    strict_incremental: true
    sql: |
      select o.customer, sum(o.pieces * p.cents) as cents
      from orders o join prices p on p.article = o.article
      group by o.customer
  - name: finest
    input_datasets: [customer_totals]
    lookup_datasets: [worth]
    output_dataset: best
    sql: |
      select t.customer, t.pieces, w.cents
      from customer_totals t
      left join worth w on w.customer = t.customer
  - name: ranges
    input_datasets: [canonical]
    output_dataset: block_ranges
    incremental: {mode: partition}
    partition:
      column: block_number
      size: 100
    sql: select block_number, miner from canonical
  - name: copied
    input_datasets: [block_ranges]
    output_dataset: copied
    update_strategy: replace
    python: jobs/copied.py:copied
"""
FILES = {
    "jobs/totals.sql": """\
-- pieces of each customer
select customer,
  sum(pieces) as pieces
from orders
where pieces > :least
group by customer
""",
    "jobs/copied.py": """\
def copied(inputs, context):
    return inputs["block_ranges"]
""",
}
PROJECT = "strandline.yaml"
SQL = "jobs/totals.sql"


@dataclass(frozen=True)
class Planted:
    """One mistake: a line, and the wrong text that replaces the correct one."""

    old: str
    new: str
    slug: str
    file: str = PROJECT
    nearest: str = ""
    """The correct word, which the report must name."""
    hides: tuple[str, ...] = ()
    """Mistakes that cannot be found beside this one.

    Examples are columns of a table that may have any, and parameters where `config` is invalid.
    """

    @property
    def line(self) -> int:
        lines = (YAML if self.file == PROJECT else FILES[self.file]).splitlines()
        (number,) = [n for n, line in enumerate(lines, 1) if line == self.old]
        return number

    def __str__(self) -> str:
        return f"{self.slug}: {self.new.strip()}"


def planted(
    old: str, new: str, slug: str, file: str = PROJECT, nearest: str = "", hides: tuple[str, ...] = ()
) -> Planted:
    """`old` is the end of one line, after its indentation, which the planted text keeps."""
    lines = (YAML if file == PROJECT else FILES[file]).splitlines()
    (line,) = [line for line in lines if line.strip() == old]
    return Planted(old=line, new=line.replace(old, new), slug=slug, file=file, nearest=nearest, hides=hides)


MISTAKES = (
    planted("timezone: Asia/Kolkata", "timezone: Asia/Kolkatta", "unknown-timezone", nearest="Asia/Kolkata"),
    planted(
        "financial_year_starts: 04-01",
        "financial_year_start: 04-01",
        "unknown-key",
        nearest="financial_year_starts",
    ),
    planted("financial_year_starts: 04-01", "financial_year_starts: 13-01", "wrong-type"),
    planted("settings:", "setings:", "unknown-key", nearest="settings"),
    planted("workers: 2", "workers: many", "wrong-type"),
    planted("keep: 30 days", "kept: 30 days", "unknown-key", nearest="keep"),
    planted("sources:", "source:", "unknown-key", nearest="sources"),
    planted('files: "data/prices/*.csv"', 'fils: "data/prices/*.csv"', "unknown-key", nearest="files"),
    planted('files: "data/prices/*.csv"', 'files: "data/prices/*"', "unknown-format"),
    planted("complete: true", "complete: perhaps", "wrong-type"),
    planted("from: order_events", "from: order_event", "unknown-source", nearest="order_events"),
    planted("from: order_events", "from: mm", "unknown-source", hides=("unknown-column",)),
    planted("from: price_list", "frm: price_list", "unknown-key", nearest="from"),
    planted("order_id: orderId", "order_id: 17", "wrong-type"),
    planted("pieces: {path: pieces, type: int}", "pieces: {path: pieces, type: integr}", "unknown-type"),
    planted(
        "pieces: {path: pieces, type: int}", "pieces: {pth: pieces, type: int}", "unknown-key", nearest="path"
    ),
    planted('total: {sql: "pieces * 2"}', 'total: {sql: "pieces * "}', "sql-syntax"),
    planted('total: {sql: "pieces * 2"}', 'total: {sql: "rand()"}', "nondeterministic"),
    planted("require: [customer]", "require: [custmer]", "unknown-column", nearest="customer"),
    planted("require: [customer]", "require: customer", "wrong-type"),
    planted("record_set:", "recordset:", "unknown-key", nearest="record_set"),
    planted("key: [order_id]", "key: [ordr_id]", "unknown-column", nearest="order_id"),
    planted("key: [order_id]", "kee: [order_id]", "unknown-key", nearest="key"),
    planted("key: [order_id]", "key: []", "wrong-type"),
    planted("order_by: [changed_at]", "order_by: [changd_at]", "unknown-column", nearest="changed_at"),
    planted("order_by: [changed_at]", "orderby: [changed_at]", "unknown-key", nearest="order_by"),
    planted("order_by: [changed_at]", "order_by: {a: b}", "wrong-type"),
    planted('deleted: "pieces = 0"', 'deleted: "peices = 0"', "unknown-column", nearest="pieces"),
    planted("source_at: changed_at", "source_at: changed", "unknown-column", nearest="changed_at"),
    planted(
        'guard: {max_deleted: "20%", at_least: 10}',
        'guard: {max_deleted: "20%", at_leest: 10}',
        "unknown-key",
        nearest="at_least",
    ),
    planted(
        'guard: {max_deleted: "20%", at_least: 10}',
        'guard: {max_deleted: "much", at_least: 10}',
        "wrong-type",
    ),
    planted("cents: {type: bigint}", "cents: {type: [bigint]}", "wrong-type"),
    planted(
        "record_set: {key: [article], order_by: [valid_from]}",
        "record_set: {key: [article]}",
        "record-set-without-ordering",
    ),
    planted(
        "event_stream: {identity: [block_hash]}",
        "event_stream: {identity: [blok_hash]}",
        "unknown-column",
        nearest="block_hash",
    ),
    planted("event_stream: {identity: [block_hash]}", "event_stream: {identity: 3}", "wrong-type"),
    planted("best:", "bst:", "unknown-dataset", nearest="best"),
    planted("from: blocks", "from: blcks", "chain-needs-stream", nearest="blocks"),
    planted("hash: block_hash", "hash: blok_hash", "unknown-column", nearest="block_hash"),
    planted("parent: parent_hash", "parnt: parent_hash", "unknown-key", nearest="parent"),
    planted("head: {most: weight}", "head: longst", "unknown-value", nearest="longest"),
    planted("- name: totals", "- nam: totals", "unknown-key", nearest="name"),
    planted(
        "output_dataset: customer_totals",
        "output_datset: customer_totals",
        "unknown-key",
        nearest="output_dataset",
    ),
    planted("config: {least: 3}", "config: 3", "wrong-type", hides=("unknown-parameter",)),
    planted("sql: jobs/totals.sql", "sql: jobs/total.sql", "file-not-found", nearest="jobs/totals.sql"),
    planted(
        "input_datasets: [orders, prices]",
        "input_datasets: [orders, price]",
        "unknown-dataset",
        nearest="prices",
    ),
    planted("orders: {by: [customer]}", "orders: {bye: [customer]}", "unknown-key", nearest="by"),
    planted("prices: whole", "pricse: whole", "unknown-dataset", nearest="prices"),
    planted("prices: whole", "prices: hole", "unknown-value", nearest="whole"),
    planted("strict_incremental: true", "strict_incremental: certainly", "wrong-type"),
    planted(
        "select o.customer, sum(o.pieces * p.cents) as cents",
        "select o.customer, sum(o.peices * p.cents) as cents",
        "unknown-column",
        nearest="pieces",
    ),
    planted(
        "from orders o join prices p on p.article = o.article",
        "from ordrs o join prices p on p.article = o.article",
        "undeclared-input",
        nearest="orders",
    ),
    planted("lookup_datasets: [worth]", "lookup_datasets: [wrth]", "unknown-dataset", nearest="worth"),
    planted("lookup_datasets: [worth]", "lookup_dataset: [worth]", "unknown-key", nearest="lookup_datasets"),
    planted(
        "select t.customer, t.pieces, w.cents",
        "select t.customer, t.peices, w.cents",
        "unknown-column",
        nearest="pieces",
    ),
    planted(
        "incremental: {mode: partition}",
        "incremental: {mode: partitions}",
        "unknown-value",
        nearest="partition",
    ),
    planted("column: block_number", "column: 7", "wrong-type"),
    planted("size: 100", "size: 0", "wrong-type"),
    planted("size: 100", "sise: 100", "unknown-key", nearest="size"),
    planted(
        "sql: select block_number, miner from canonical",
        "sql: select block_number, minr from canonical",
        "unknown-column",
        nearest="miner",
    ),
    planted(
        "sql: select block_number, miner from canonical",
        "sql: select block_number, from canonical where",
        "sql-syntax",
    ),
    planted("input_datasets: [block_ranges]", "input_datasets: [nope]", "unknown-dataset"),
    planted("update_strategy: replace", "update_strategy: replce", "unknown-value", nearest="replace"),
    planted("python: jobs/copied.py:copied", "python: jobs/copied.py:copid", "function-not-found"),
    planted("sum(pieces) as pieces", "sum(peices) as pieces", "unknown-column", file=SQL, nearest="pieces"),
    planted("from orders", "from ordrs", "undeclared-input", file=SQL, nearest="orders"),
    planted("where pieces > :least", "where pieces > :lest", "unknown-parameter", file=SQL, nearest="least"),
    planted("select customer,", "select custmer,", "unknown-column", file=SQL, nearest="customer"),
)


def check(folder: Path, mistakes: tuple[Planted, ...]) -> None:
    """The project with these mistakes. All of them are reported, and nothing else."""
    texts = {PROJECT: YAML, **FILES}
    for mistake in mistakes:
        texts[mistake.file] = texts[mistake.file].replace(f"{mistake.old}\n", f"{mistake.new}\n", 1)
    write(folder, texts[PROJECT], {name: text for name, text in texts.items() if name != PROJECT})

    with pytest.raises(ProjectError) as refused:
        load_project(folder, {})

    places = [(m.place.file, m.place.line, m.slug) for m in refused.value.mistakes if m.place]
    assert sorted(places) == sorted((m.file, m.line, m.slug) for m in mistakes), (
        f"planted {[str(m) for m in mistakes]}\n{refused.value}"
    )
    for mistake in mistakes:
        if mistake.nearest:
            (reported,) = [
                m
                for m in refused.value.mistakes
                if m.place and (m.place.line, m.slug) == (mistake.line, mistake.slug)
            ]
            assert f"`{mistake.nearest}`" in reported.remedy, reported


def test_the_project_is_right_without_any(tmp_path: Path) -> None:
    assert report(tmp_path, YAML, FILES) == ""


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_a_mistake_is_reported_once_where_it_stands(mistake: Planted, tmp_path: Path) -> None:
    check(tmp_path, (mistake,))


def independent(mistakes: tuple[Planted, ...]) -> bool:
    """Mistakes of which no two are on one line and none hides another."""
    lines = {(m.file, m.old) for m in mistakes}
    return len(lines) == len(mistakes) and not any(
        other.slug in m.hides for m in mistakes for other in mistakes
    )


@pytest.mark.parametrize("seed", range(60))
def test_any_mistakes_together_are_all_reported_and_nothing_else(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    while not independent(mistakes := tuple(chance.sample(MISTAKES, chance.randint(2, 9)))):
        pass

    check(tmp_path, mistakes)


def test_one_file_with_four_mistakes_gives_four(tmp_path: Path) -> None:
    yaml = """\
project: x
sources:
  events: {files: "data/*.jsonl"}
datasets:
  a:
    from: mm
    colums: {k: k, at: {path: at, type: timestamp}}
    record_set: {key: [k], order_by: [at]}
jobs:
  - name: b
    input_datasets: [nope]
    output_dataset: b
    incremental: {mode: keyd, key: [k]}
    sql: select k, count(*) as n from nope group by k
"""

    assert report(tmp_path, yaml).splitlines()[::2] == [
        "strandline.yaml:6: the dataset `a` is decoded from `mm`, which is not a source.",
        "strandline.yaml:7: unknown key `colums` in `datasets.a`.",
        "strandline.yaml:11: job `b` reads `nope`, which is not a dataset.",
        "strandline.yaml:13: `mode` is `keyd` in `jobs[0].incremental`, which is not a valid value.",
    ]
