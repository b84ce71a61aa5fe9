"""Every remedy settles its error: each slug is provoked and its remedy applied here, or a test named here does it, or it says why none can.

A slug that is in no list fails: whoever writes an error shows that what it tells people to do helps.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.unit.declare.builders import slugs

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "strandline"

BASE = """
project: shop
sources:
  events: {files: "d/*.jsonl"}
  sheets: {files: "s/*.csv"}
datasets:
  item:
    from: events
    columns:
      id: id
      shop: shop
      price: {path: price, type: bigint}
      at: {path: at, type: timestamp}
    record_set: {key: [id], order_by: [at]}
  part:
    from: events
    explode: parts
    columns: {id: id, part_id: item.id, at: {path: at, type: timestamp}}
    record_set: {key: [id, part_id], order_by: [at], children: replace}
  block:
    from: events
    columns: {number: {path: n, type: bigint}, hash: h, parent: p, weight: {path: w, type: bigint}}
    event_stream: {identity: [hash]}
chains:
  canonical: {from: block, number: number, hash: hash, parent: parent, head: {most: weight}}
jobs:
  - name: totals
    input_datasets: [item]
    output_dataset: totals
    incremental: {mode: keyed, key: [shop]}
    config: {least: 1}
    sql: select shop, sum(price) as price from item where price > :least group by shop
  - name: rows
    input_datasets: [item]
    output_dataset: rows_out
    incremental: {mode: keyed, key: [shop], inputs: {item: {by: [shop]}}}
    python: jobs/rows.py:rows
  - name: parts
    input_datasets: [canonical]
    output_dataset: parts_out
    incremental: {mode: partition}
    partition: {column: number, size: 10, final_after: 2}
    sql: select * from canonical
  - name: seen
    input_datasets: [canonical]
    output_dataset: seen_out
    incremental: {mode: cursor, cursor_column: number, unique_key: [hash]}
    update_strategy: append
    sql: select number, hash from canonical
"""
FILES = {"jobs/rows.py": "def rows(inputs, context):\n    return inputs['item'].select('shop', 'price')\n"}
SQL = "select shop, sum(price) as price from item where price > :least group by shop"
PYTHON = "    return inputs['item'].select('shop', 'price')\n"

FUNCTIONS = "from pyspark.sql import functions as F\n\n"

Edit = tuple[str, str]

CHECKED: Mapping[str, tuple[Edit, Edit]] = {
    # slug: (an edit of the project that provokes it, the same place as the remedy says)
    "yaml-syntax": (("project: shop", "project: [shop"), ("project: shop", "project: shop")),
    "unknown-key": (("order_by: [at]}\n  part", "orderby: [at]}\n  part"), ("order_by: [at]}\n  part", "order_by: [at]}\n  part")),
    "wrong-type": (("size: 10,", "size: ten,"), ("size: 10,", "size: 10000,")),
    "missing-key": (("project: shop\n", ""), ("project: shop\n", "project: shop\n")),
    "unknown-value": (("mode: partition}", "mode: partitions}"), ("mode: partition}", "mode: partition}")),
    "unknown-source": (("from: events\n    columns:\n      id", "from: event\n    columns:\n      id"), ("from: events", "from: events")),
    "unknown-dataset": (
        ("input_datasets: [item]\n    output_dataset: totals", "input_datasets: [itm]\n    output_dataset: totals"),
        ("x", "x"),
    ),
    "unknown-column": (("key: [id], order", "key: [ident], order"), ("key: [id], order", "key: [shop], order")),
    "unknown-format": (('"s/*.csv"', '"s/*.xml"'), ('"s/*.csv"', '"s/*.xml", format: csv')),
    "unknown-type": (("type: bigint}\n      at", "type: bigit}\n      at"), ("type: bigint}\n      at", "type: bigint}\n      at")),
    "unknown-timezone": (
        ("project: shop", "project: shop\ntimezone: asia/kolkata"),
        ("project: shop", "project: shop\ntimezone: Asia/Kolkata"),
    ),
    "unknown-catalog": (
        ("project: shop", "project: shop\nsettings: {catalog: 'mysql://x'}"),
        ("project: shop", "project: shop\nsettings: {catalog: 'sqlite:///.strandline/catalog.db'}"),
    ),
    "unknown-parameter": ((":least", ":lest"), (":least", ":least")),
    "conf-changes-results": (
        ("project: shop", "project: shop\nsettings: {spark: {conf: {spark.sql.ansi.enabled: false}}}"),
        ("project: shop", "project: shop\nsettings: {spark: {conf: {spark.sql.shuffle.partitions: 8}}}"),
    ),
    "option-not-taken": (
        ('{files: "s/*.csv"}', '{files: "s/*.csv", options: {lineSep: "|", sep: ";"}}'),
        ('{files: "s/*.csv"}', '{files: "s/*.csv", options: {sep: ";"}}'),
    ),
    "secret-not-set": (("project: shop", "project: shop\nsettings: {lake: '${NOT_SET_HERE}'}"), ("x", "x")),
    "bad-name": (("name: totals", "name: Totals!"), ("name: totals", "name: totals")),
    "reserved-name": (("output_dataset: totals", "output_dataset: totals_facts"), ("output_dataset: totals", "output_dataset: all_totals")),
    "name-taken": (("output_dataset: totals", "output_dataset: item"), ("output_dataset: totals", "output_dataset: other")),
    "named-twice": (("key: [id], order", "key: [id, id], order"), ("key: [id], order", "key: [id], order")),
    "metadata-column": (("as price from", "as _key from"), ("as price from", "as key from")),
    "record-set-without-ordering": (
        ("key: [id], order_by: [at]", "key: [id]"),
        ("key: [id], order_by: [at]", "key: [id], order_by: [price]"),
    ),
    "position-not-last": (
        ("key: [id], order_by: [at]", "key: [id], order_by: [_source_position, at]"),
        ("key: [id], order_by: [at]", "key: [id], order_by: [at, _source_position]"),
    ),
    "latest-non-null-of-key": (
        ("key: [id], order_by: [at]", "key: [id], order_by: [at], latest_non_null: [id]"),
        ("key: [id], order_by: [at]", "key: [id], order_by: [at], latest_non_null: [price]"),
    ),
    "children-without-explode": (
        ("key: [id], order_by: [at]", "key: [id], order_by: [at], children: replace"),
        ("key: [id], order_by: [at]", "key: [id], order_by: [at]"),
    ),
    "children-without-parent": (("key: [id, part_id]", "key: [part_id]"), ("key: [id, part_id]", "key: [part_id, id]")),
    "item-without-explode": (("shop: shop\n", "shop: item.shop\n"), ("shop: shop\n", "shop: here.shop\n")),
    "complete-without-record-set": (
        ('{files: "d/*.jsonl"}', '{files: "d/*.jsonl", complete: true}'),
        ("event_stream: {identity: [hash]}", "event_stream: {identity: [hash]}"),
    ),
    "two-kinds": (
        ("event_stream: {identity: [hash]}", "event_stream: {identity: [hash]}\n    record_set: {key: [hash], order_by: [number]}"),
        ("x", "x"),
    ),
    "path-and-sql": (
        ("{path: price, type: bigint}", "{path: price, sql: 'price', type: bigint}"),
        ("{path: price, type: bigint}", "{sql: 'price', type: bigint}"),
    ),
    "default-does-not-fit": (
        ("{path: price, type: bigint}", "{path: price, type: bigint, default: x}"),
        ("{path: price, type: bigint}", "{path: price, type: bigint, default: 0}"),
    ),
    "sql-not-row-wise": (
        ("{path: price, type: bigint}", "{sql: 'sum(price)', type: bigint}"),
        ("{path: price, type: bigint}", "{path: price, type: bigint}"),
    ),
    "source-at-not-a-time": (
        ("    record_set: {key: [id], order", "    source_at: shop\n    record_set: {key: [id], order"),
        ("    record_set: {key: [id], order", "    source_at: at\n    record_set: {key: [id], order"),
    ),
    "guard-without-record-set": (
        ("event_stream: {identity: [hash]}", "event_stream: {identity: [hash]}\n    guard: {max_deleted: 10%}"),
        ("event_stream: {identity: [hash]}", "event_stream: {identity: [hash]}"),
    ),
    "bad-path": (("shop: shop\n", "shop: 'a..b'\n"), ("shop: shop\n", "shop: a.b\n")),
    "chain-needs-stream": (("{from: block, number", "{from: item, number"), ("{from: block, number", "{from: block, number")),
    "chain-number": (("number: {path: n, type: bigint}", "number: {path: n, type: string}"), ("x", "x")),
    "chain-weight": (("weight: {path: w, type: bigint}", "weight: {path: w, type: string}"), ("x", "x")),
    "chain-parent": (("parent: parent, head", "parent: hash, head"), ("x", "x")),
    "head-rule": (("head: {most: weight}", "head: {most: weight, last: weight}"), ("head: {most: weight}", "head: longest")),
    "children-ranked-by-item": (
        ("part_id: item.id, at: {path: at, type: timestamp}", "part_id: item.id, at: {path: item.at, type: timestamp}"),
        ("x", "x"),
    ),
    "parent-without-nesting": (("part_id: item.id", "part_id: parent.id"), ("explode: parts", "explode: 'boxes[].parts'")),
    "via-cycle": (
        ("inputs: {item: {by: [shop]}}", "inputs: {item: {via: item, on: [shop]}}"),
        ("inputs: {item: {by: [shop]}}", "inputs: {item: whole}"),
    ),
    "partition-needs-by": (
        ("mode: partition}", "mode: partition, inputs: {canonical: whole}}"),
        ("mode: partition}", "mode: partition, inputs: {canonical: {by: [number]}}}"),
    ),
    "follow-needs-dataset": (
        ("head: {most: weight}}", "head: {most: weight}, follow: {kept: totals}}"),
        ("head: {most: weight}}", "head: {most: weight}, follow: {kept: block}}"),
    ),
    "sql-syntax": ((SQL, "select shop, sum(price as price from item group by shop"), (SQL, SQL)),
    "sql-not-a-select": ((SQL, "delete from item"), (SQL, SQL)),
    "sql-and-python": (("    sql: select number, hash", "    python: jobs/rows.py:rows\n    sql: select number, hash"), ("x", "x")),
    "job-without-code": ((f"    sql: {SQL}\n", ""), (f"    sql: {SQL}\n", f"    sql: {SQL}\n")),
    "substitution": ((":least", "${env:LEAST}"), (":least", ":least")),
    "nondeterministic": (
        ("sum(price) as price", "sum(price * rand()) as price"),
        ("sum(price) as price", "sum(price * xxhash64(shop)) as price"),
    ),
    "undeclared-input": (
        (SQL, "select t.shop, sum(t.price) as price from item t join part p on p.id = t.shop group by t.shop"),
        (SQL, SQL),
    ),
    "unused-input": (
        ("input_datasets: [item]\n    output_dataset: totals", "input_datasets: [item, part]\n    output_dataset: totals"),
        ("x", "x"),
    ),
    "key-not-in-output": (("key: [shop]}\n", "key: [id]}\n"), ("key: [shop]}\n", "key: [shop]}\n")),
    "input-relation-unknown": (
        ((SQL), "select shop, price from item cross join (select max(price) as top from item)"),
        (
            f"key: [shop]}}\n    config: {{least: 1}}\n    sql: {SQL}",
            "key: [shop], inputs: {item: whole}}\n    sql: select shop, price from item cross join (select max(price) as top from item)",
        ),
    ),
    "by-is-not-the-key": (
        ("inputs: {item: {by: [shop]}}", "inputs: {item: {by: [id]}}"),
        ("inputs: {item: {by: [shop]}}", "inputs: {item: {by: {shop: id}}}"),
    ),
    "keyed-without-key": (("{mode: keyed, key: [shop]}", "{mode: keyed}"), ("{mode: keyed, key: [shop]}", "{mode: keyed, key: [shop]}")),
    "cursor-without-column": (("cursor_column: number, ", ""), ("cursor_column: number, ", "cursor_column: number, ")),
    "append-without-key": ((", unique_key: [hash]", ""), (", unique_key: [hash]", ", unique_key: [number, hash]")),
    "append-without-cursor": (("mode: cursor, cursor_column: number, unique_key: [hash]", "mode: keyed, key: [number]"), ("x", "x")),
    "partition-without-column": (("    partition: {column: number, size: 10, final_after: 2}\n", ""), ("size: 10,", "size: 10000,")),
    "partition-size": (("size: 10,", "size: 10, unit: day,"), ("size: 10,", "size: 10000,")),
    "final-after": (("final_after: 2", "final_after: 2 days"), ("final_after: 2", "final_after: 100")),
    "unused-key": (("mode: partition}", "mode: partition, key: [number]}"), ("mode: partition}", "mode: partition}")),
    "cycle": (("input_datasets: [item]\n    output_dataset: totals", "input_datasets: [totals]\n    output_dataset: totals"), ("x", "x")),
    "bad-python": (("jobs/rows.py:rows", "jobs/rows.py"), ("jobs/rows.py:rows", "jobs/rows.py:rows")),
    "file-not-found": (("jobs/rows.py:rows", "jobs/row.py:rows"), ("jobs/rows.py:rows", "jobs/rows.py:rows")),
    "function-not-found": (("jobs/rows.py:rows", "jobs/rows.py:row"), ("jobs/rows.py:rows", "jobs/rows.py:rows")),
}
"""The base project with an edit is wrong; with the edit that the remedy tells it is not. (`x`, `x`) takes the edit back."""

IN_PYTHON: Mapping[str, tuple[str, str]] = {
    # slug: (a body that provokes it, a body as the remedy says)
    "python-syntax": ("def rows(inputs, context:\n", f"def rows(inputs, context):\n{PYTHON}"),
    "wrong-parameters": (f"def rows(inputs):\n{PYTHON}", f"def rows(inputs, context):\n{PYTHON}"),
    "import-not-followed": (
        f"import importlib\nrates = importlib.import_module('rates')\n\ndef rows(inputs, context):\n{PYTHON}",
        f"import rates\n\ndef rows(inputs, context):\n{PYTHON}",
    ),
    "outside-input": (
        "import os\n\ndef rows(inputs, context):\n    return inputs['item'].limit(os.environ['N'])\n",
        "def rows(inputs, context):\n    return inputs['item'].where(inputs['item'].price < context.config['n'])\n",
    ),
    "text-not-literal": (
        f"{FUNCTIONS}def rows(inputs, context):\n    return inputs['item'].select(F.expr(context.config['x']))\n",
        f"{FUNCTIONS}def rows(inputs, context):\n    return inputs['item'].select(F.expr('price + 1'))\n",
    ),
}

TESTED: Mapping[str, str] = {
    "types-changed": "tests/spark/test_configurations.py",
    "held": "tests/unit/test_held_calls.py",
    "frozen": "tests/golden/cases/asked.txt",
    "strict-incremental": "tests/unit/plan/test_strict_incremental.py",
    "order-not-total": "tests/unit/declare/test_ranking.py",
    "guarded": "tests/spark/test_facts.py",
    "file-rewritten": "tests/spark/test_ingest.py",
    "source-lost": "tests/unit/cli/test_lost_source.py",
    "foreign-commit": "tests/faults/test_protocol.py",
    "lake-held": "tests/faults/test_processes.py",
    "table-unreadable": "tests/faults/test_damage.py",
    "file-damaged": "tests/faults/test_damage.py",
    "release-overtakes": "tests/spark/test_facts.py",
    "cannot-adopt": "tests/faults/test_adopt.py",
}
"""Provoked and settled by a test elsewhere."""

_ANOTHER_CALL = "the call is wrong; the remedy is to type it as the message says"
_USERS_CODE = "the remedy is to correct what the project's SQL, Python or data gives; only its author knows how"
_MACHINE = "the remedy is outside the project: the disk, the network, Java, the database"
_AGAIN = "the remedy is to run again, which is what a scheduler does anyway"
_HELD_FIRST = "what reads such a table is held before it comes to this"
_RULES_OUT = "the remedy is to write something else; there is not one spelling of it"
NOT_EXECUTED: Mapping[str, str] = {
    **dict.fromkeys(("bad-instant", "no-facts", "wrong-key", "already-there", "unknown-example", "call", "no-quarantine"), _ANOTHER_CALL),
    **dict.fromkeys(("unknown-table", "unknown-version", "not-kept", "not-known-then", "bad-known-at", "not-a-query"), _ANOTHER_CALL),
    **dict.fromkeys(("unknown-verb", "no-verb", "filter-unknown", "bad-share", "bad-sql", "bad-value", "filter-type"), _ANOTHER_CALL),
    **dict.fromkeys(("filter-too-large", "no-reader", "nothing-to-adopt", "fresh-needs-local-lake", "project-not-found"), _ANOTHER_CALL),
    **dict.fromkeys(("backfill-of-a-source", "unknown-partition", "no-partitions", "no-rows-to-filter", "unknown-name"), _ANOTHER_CALL),
    **dict.fromkeys(("never-built", "not-built"), _ANOTHER_CALL),
    **dict.fromkeys(("published-does-not-fit", "export-not-one-rank", "missing-column", "parameter-type", "python-result"), _USERS_CODE),
    **dict.fromkeys(("sql-refused", "python-raised", "columns-coincide", "key-not-in-result", "key-type", "key-not-unique"), _USERS_CODE),
    **dict.fromkeys(("partitions-collide", "too-many-partitions", "partition-type", "chain-types", "file-not-text"), _USERS_CODE),
    **dict.fromkeys(("file-unreadable", "type-not-kept", "not-text", "too-many-columns", "unknown-encoding", "file-changed"), _USERS_CODE),
    **dict.fromkeys(("column-without-path", "not-append-only", "ordering-without-key", "record-set-without-key", "not-yet"), _RULES_OUT),
    **dict.fromkeys(("via-whole", "hidden-table", "parameter-not-a-value"), _RULES_OUT),
    **dict.fromkeys(("folder-unwritable", "lake-unreadable", "catalog-unreachable", "catalog-newer", "java-missing"), _MACHINE),
    **dict.fromkeys(("jar-folder-not-writable", "jars-not-resolved", "jar-with-wrong-checksum", "jars-missing", "spark-start"), _MACHINE),
    "table-missing": _MACHINE,
    "column-not-built": _HELD_FIRST,
    **dict.fromkeys(("lease-held", "run-not-open", "counts-lost", "conflict", "blocked", "written-anew", "table-replaced"), _AGAIN),
}
"""No test applies the remedy, for the reason that stands beside it."""


def find_slugs() -> dict[str, str]:
    """Every slug that the source writes, with the first file that does."""
    found: dict[str, str] = {}
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            for text in _slugs_of(node):
                found.setdefault(text, str(file.relative_to(ROOT)))
    return found


def _slugs_of(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Call):
        values = [k.value for k in node.keywords if k.arg == "slug"]
        if isinstance(node.func, ast.Attribute) and node.func.attr == "add" and len(node.args) >= 3:
            values.append(node.args[0])
        if isinstance(node.func, ast.Attribute) and node.func.attr == "refuse" and len(node.args) == 4:
            values.append(node.args[3])
        for value in values:
            if isinstance(value, ast.Constant) and isinstance(value.value, str) and re.fullmatch(r"[a-z][a-z-]+", value.value):
                yield value.value


def provoked(folder: Path, edit: Edit, files: Mapping[str, str] = FILES) -> list[str]:
    if edit[0] == "x":
        return slugs(folder, BASE, dict(files))
    assert edit[0] in BASE, f"the base project has no {edit[0]!r}"
    return slugs(folder, BASE.replace(*edit), dict(files))


def test_the_base_project_is_right(tmp_path: Path) -> None:
    assert provoked(tmp_path, ("x", "x")) == []


@pytest.mark.parametrize("slug", CHECKED)
def test_what_a_mistake_tells_to_write_settles_it(slug: str, tmp_path: Path) -> None:
    wrong, mended = CHECKED[slug]

    before, after = provoked(tmp_path, wrong), provoked(tmp_path, mended)

    assert slug in before
    assert after == []


@pytest.mark.parametrize("slug", IN_PYTHON)
def test_what_a_mistake_in_python_tells_to_write_settles_it(slug: str, tmp_path: Path) -> None:
    wrong, mended = IN_PYTHON[slug]
    helper = {"jobs/rates.py": "RATE = 1\n"}

    before = provoked(tmp_path, ("x", "x"), {"jobs/rows.py": wrong, **helper})
    after = provoked(tmp_path, ("x", "x"), {"jobs/rows.py": mended, **helper})

    assert slug in before
    assert after == []


def test_every_slug_has_a_remedy_that_is_tried_or_a_reason_why_it_is_not() -> None:
    written = find_slugs()
    lists = (CHECKED, IN_PYTHON, TESTED, NOT_EXECUTED)
    listed = [slug for each in lists for slug in each]

    assert {slug: file for slug, file in written.items() if slug not in listed} == {}
    assert [slug for slug in listed if slug not in written] == []
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize("slug", TESTED)
def test_the_test_that_tries_a_remedy_is_there(slug: str) -> None:
    file = ROOT / TESTED[slug]

    assert file.exists()
