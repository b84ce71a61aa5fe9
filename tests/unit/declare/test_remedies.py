"""The remedies of `check` settle the mistakes: each mend is an edit that follows the remedy's words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from strandline.declare import load_project
from strandline.model.errors import Mistake, ProjectError
from tests.unit.declare.builders import write

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
  row:
    from: sheets
    columns: {n: {type: bigint}, day: {type: date}}
  trade:
    from: events
    columns: {fund: fund, trade_id: id, traded_on: {path: on, type: date},
      traded_at: {path: t, type: timestamp}}
    record_set: {key: [trade_id], order_by: [traded_at]}
  quote:
    from: events
    columns: {fund: fund, quoted_on: {path: on, type: date}, quoted: {path: q, type: double},
      seq: {path: s, type: bigint}}
    record_set: {key: [fund, quoted_on], order_by: [seq]}
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
  - name: filed
    input_datasets: [item]
    output_dataset: filed
    incremental: {mode: full}
    sql: jobs/filed.sql
timelines:
  holdings:
    key: [fund]
    facts: trade
    date: traded_on
    order_by: [traded_at]
    fold: jobs/folds.py:count
    fields: {held: bigint}
    output_dataset: holding_history
    together: [fund]
    valuation:
      output_dataset: holding_values
      calendar: weekdays
      due_at: "18:00"
      references:
        latest: {dataset: quote, on: [fund], date: quoted_on}
      columns:
        worth: held * latest.quoted
"""
PYTHON = "    return inputs['item'].select('shop', 'price')\n"
RIGHT = f"def rows(inputs, context):\n{PYTHON}"
FILES: Mapping[str, str | bytes] = {
    "jobs/rows.py": RIGHT,
    "jobs/filed.sql": "select id from item\n",
    "jobs/rates.py": "RATE = 1\n",
    "jobs/folds.py": "def count(state, facts):\n    return {'held': len(facts)}\n",
}
FUNCTIONS = "from pyspark.sql import functions as F\n\n"
SQL = "select shop, sum(price) as price from item where price > :least group by shop"
RECORDS = "record_set: {key: [id], order_by: [at]}\n  part"
STREAM = "event_stream: {identity: [hash]}"
ROWS = "inputs: {item: {by: [shop]}}"
TOTALS = "input_datasets: [item]\n    output_dataset: totals"

Edit = tuple[str, str]
"""Edits of the project file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mend:
    """The remedy, applied."""

    edits: tuple[Edit, ...] = ()
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    slug: str
    wrong: Mend
    remedy: str
    """Words of the remedy that the mends follow."""
    mends: tuple[Mend, ...]
    """More than one if the remedy offers a choice."""


def case(
    slug: str, wrong: Edit | tuple[Edit, ...] | Mend, remedy: str, *mends: Edit | tuple[Edit, ...] | Mend
) -> Case:
    return Case(slug=slug, wrong=_mend(wrong), remedy=remedy, mends=tuple(_mend(mend) for mend in mends))


def _mend(written: Edit | tuple[Edit, ...] | Mend) -> Mend:
    match written:
        case Mend():
            return written
        case (str() as old, str() as new):
            return Mend(edits=((old, new),))
        case _:
            return Mend(edits=written)


def in_python(slug: str, wrong: str, remedy: str, mended: str) -> Case:
    file = "jobs/rows.py"
    return case(slug, Mend(files={file: wrong}), remedy, Mend(files={file: mended}))


CASES: tuple[Case, ...] = (
    # The text of the file
    case(
        "yaml-syntax",
        ("project: shop", "project: a: shop"),
        "text with `: `, `#` or `{` in it needs quotes",
        ("a: shop", "'a: shop'"),
    ),
    case(
        "duplicate-key",
        ("      shop: shop\n", "      shop: shop\n      shop: store\n"),
        "Keep one of them.",
        ("      shop: store\n", ""),
    ),
    case(
        "unknown-key",
        ("order_by: [at]}\n  part", "orderby: [at]}\n  part"),
        "Did you mean `order_by`?",
        ("orderby", "order_by"),
    ),
    case("wrong-type", ("size: 10,", "size: ten,"), "Write a whole number.", ("size: ten", "size: 10000")),
    case(
        "missing-key", ("project: shop\n", ""), "Add `project:`.", ("sources:\n", "project: any\nsources:\n")
    ),
    case(
        "unknown-value",
        ("mode: partition}", "mode: partitions}"),
        "Did you mean `partition`?",
        ("mode: partitions", "mode: partition"),
    ),
    case(
        "not-yet",
        ("identity: [hash]}\n", "identity: [hash]}\n    mirror: {}\n"),
        "Leave it out until a later version.",
        ("    mirror: {}\n", ""),
    ),
    case(
        "not-yet",
        ('"s/*.csv"', '"s3://there/*.csv"'),
        "Name files in a folder, relative to the project.",
        ("s3://there/*.csv", "there/*.csv"),
    ),
    case(
        "not-yet",
        ("from: sheets\n", "from: sheets\n    explode: list\n"),
        "Explode the list in a job.",
        (
            ("    explode: list\n", ""),
            (
                "jobs:\n",
                "jobs:\n  - name: exploded\n    input_datasets: [row]\n    output_dataset: exploded\n"
                "    incremental: {mode: full}\n"
                "    sql: select n, explode(split(list, ';')) as element from row\n",
            ),
        ),
    ),
    # Names
    case(
        "unknown-source",
        ("from: sheets", "from: sheet"),
        "Did you mean `sheets`?",
        ("from: sheet", "from: sheets"),
    ),
    case(
        "unknown-dataset",
        (TOTALS, TOTALS.replace("item", "itm")),
        "Did you mean `item`?",
        ("[itm]", "[item]"),
    ),
    case(
        "unknown-column",
        ("key: [id], order", "key: [ident], order"),
        "`at`, `id`, `price`, `shop`",
        ("key: [ident]", "key: [shop]"),
    ),
    case(
        "unknown-format",
        ('"s/*.csv"', '"s/*.xml"'),
        "Add `format: jsonl`, `json`, `csv`",
        ('"s/*.xml"', '"s/*.xml", format: csv'),
    ),
    case(
        "unknown-type",
        ("type: bigint}\n      at", "type: bigit}\n      at"),
        "Did you mean `bigint`?",
        ("bigit}", "bigint}"),
    ),
    case(
        "unknown-timezone",
        ("project: shop", "project: shop\ntimezone: asia/kolkata"),
        "Did you mean `Asia/Kolkata`?",
        ("asia/kolkata", "Asia/Kolkata"),
    ),
    case(
        "unknown-catalog",
        ("project: shop", "project: shop\nsettings: {catalog: 'mysql://x'}"),
        "Write `sqlite:///.strandline/catalog.db` or `postgresql+psycopg://user:${PASSWORD}@host/database`",
        ("mysql://x", "sqlite:///.strandline/catalog.db"),
        Mend(
            edits=(("mysql://x", "postgresql+psycopg://user:${PASSWORD}@host/database"),),
            environ={"PASSWORD": "p"},
        ),
    ),
    case("unknown-parameter", (":least", ":lest"), "Did you mean `least`?", (":lest", ":least")),
    case(
        "conf-changes-results",
        ("project: shop", "project: shop\nsettings: {spark: {conf: {spark.sql.ansi.enabled: false}}}"),
        "Remove it. Among the settings of `spark.sql.` and `spark.databricks.` only those of performance "
        "may be set, such as `spark.sql.shuffle.partitions`.",
        ("spark.sql.ansi.enabled: false", ""),
        ("spark.sql.ansi.enabled: false", "spark.sql.shuffle.partitions: 8"),
    ),
    case(
        "option-not-taken",
        ('{files: "s/*.csv"}', '{files: "s/*.csv", options: {lineSep: "|", sep: ";"}}'),
        "Remove it",
        ('lineSep: "|", ', ""),
    ),
    case(
        "secret-not-set",
        ("project: shop", "project: shop\nsettings: {lake: '${NOT_SET_HERE}'}"),
        "Set it before the call: `export NOT_SET_HERE=...`",
        Mend(environ={"NOT_SET_HERE": "lake"}),
    ),
    case(
        "bad-name",
        ("name: totals", "name: Totals!"),
        "Name it, for example, `totals`.",
        ("Totals!", "totals"),
    ),
    case(
        "reserved-name",
        ("output_dataset: totals", "output_dataset: totals_facts"),
        "Give it a name without that ending.",
        ("totals_facts", "all_totals"),
    ),
    case(
        "name-taken",
        ("output_dataset: totals", "output_dataset: item"),
        "Rename one of them",
        ("dataset: item", "dataset: items"),
    ),
    case(
        "named-twice", ("key: [id], order", "key: [id, id], order"), "Keep one of them.", ("[id, id]", "[id]")
    ),
    case(
        "metadata-column",
        ("as price from", "as _key from"),
        "Give it another name: `AS key`.",
        ("as _key", "AS key"),
    ),
    # Datasets
    case(
        "record-set-without-ordering",
        (RECORDS, RECORDS.replace(", order_by: [at]", "")),
        "Add `order_by: [<column>]` to `item`.",
        ("{key: [id]}", "{key: [id], order_by: [price]}"),
    ),
    case(
        "position-not-last",
        (RECORDS, RECORDS.replace("[at]", "[_source_position, at]")),
        "Put `_source_position` last.",
        ("[_source_position, at]", "[at, _source_position]"),
    ),
    case(
        "latest-non-null-of-key",
        (RECORDS, RECORDS.replace("[at]", "[at], latest_non_null: [id, price]")),
        "Leave them out",
        ("latest_non_null: [id, price]", "latest_non_null: [price]"),
    ),
    case(
        "children-without-explode",
        (RECORDS, RECORDS.replace("[at]", "[at], children: replace")),
        "Add `explode: <path of the list>`, or remove `children`.",
        ("{key: [id], order_by: [at], children: replace}", "{key: [id], order_by: [at]}"),
        (
            (
                "from: events\n    columns:\n      id: id",
                "from: events\n    explode: parts\n    columns:\n      id: id",
            ),
            ("      shop: shop\n", "      shop: shop\n      part_id: item.id\n"),
            ("{key: [id], order_by: [at], children", "{key: [id, part_id], order_by: [at], children"),
        ),
    ),
    case(
        "children-without-parent",
        ("key: [id, part_id]", "key: [part_id]"),
        "Add the parent's key, read from the payload, to `key`.",
        ("key: [part_id]", "key: [part_id, id]"),
    ),
    case(
        "item-without-explode",
        ("shop: shop\n", "shop: item.shop\n"),
        "Add `explode: <path of a list>` to the dataset, or read the field `item` with `sql:`.",
        (
            "from: events\n    columns:\n      id: id",
            "from: events\n    explode: parts\n    columns:\n      id: id",
        ),
        ("shop: item.shop\n", "shop: {sql: item.shop}\n"),
    ),
    case(
        "complete-without-record-set",
        ('{files: "s/*.csv"}', '{files: "s/*.csv", complete: true}'),
        "Add `record_set: {key: [...], order_by: [...]}` to `row`.",
        ("day: {type: date}}\n", "day: {type: date}}\n    record_set: {key: [n], order_by: [day]}\n"),
    ),
    case(
        "two-kinds",
        (RECORDS, f"event_stream: {{identity: [id]}}\n    {RECORDS}"),
        "Keep one",
        ("    event_stream: {identity: [id]}\n", ""),
    ),
    case(
        "path-and-sql",
        ("{path: price, type: bigint}", "{path: price, sql: 'price', type: bigint}"),
        "Keep one of them.",
        ("path: price, sql: 'price'", "path: price"),
        ("path: price, sql: 'price'", "sql: 'price'"),
    ),
    case(
        "column-without-path",
        ("{path: price, type: bigint}", "{type: bigint}"),
        "Add, for example, `path: price`",
        ("{type", "{path: price, type"),
    ),
    case(
        "columns-coincide",
        ("shop: shop\n", "shop: shop\n      SHOP: store\n"),
        "Rename one of them.",
        ("SHOP: store", "store: store"),
    ),
    case(
        "default-does-not-fit",
        ("{path: price, type: bigint}", "{path: price, type: bigint, default: x}"),
        "Write a whole number.",
        ("default: x", "default: 0"),
    ),
    case(
        "sql-not-row-wise",
        ("{path: price, type: bigint}", "{sql: 'sum(price)', type: bigint}"),
        "Do this in a job.",  # `totals` does
        ("{sql: 'sum(price)', type: bigint}", "{path: price, type: bigint}"),
    ),
    case(
        "source-at-not-a-time",
        (RECORDS, f"source_at: shop\n    {RECORDS}"),
        "Name a column of type timestamp, timestamp_ms, timestamp_us, timestamp_ns, date or bigint.",
        ("source_at: shop", "source_at: at"),
    ),
    case(
        "guard-without-record-set",
        (STREAM, f"{STREAM}\n    guard: {{max_deleted: 10%}}"),
        "Remove `guard`.",
        ("\n    guard: {max_deleted: 10%}", ""),
    ),
    case(
        "bad-path",
        ("shop: shop\n", "shop: 'a..b'\n"),
        "Write field names with dots between them",
        ("'a..b'", "a.b"),
    ),
    case(
        "parent-without-nesting",
        ("part_id: item.id", "part_id: parent.id"),
        "Read the field from the payload, or explode a nested list such as `a[].b`.",
        (("part_id: parent.id", "part_id: item.id, parent_id: boxes.id"),),
        ("explode: parts", "explode: 'boxes[].parts'"),
    ),
    case(
        "children-ranked-by-item",
        ("part_id: item.id, at: {path: at,", "part_id: item.id, at: {path: item.at,"),
        "Order by columns of the message.",
        ("{path: item.at,", "{path: at,"),
    ),
    case(
        "not-append-only",
        (STREAM, "contract: {is_append_only: false, is_event_stream: true}"),
        "Remove it",
        ("is_append_only: false, ", ""),
    ),
    case(
        "ordering-without-key",
        (RECORDS, "contract: {override_ordering: at}\n  part"),
        "Add `override_channel: <key column>`.",
        ("{override_ordering: at}", "{override_ordering: at, override_channel: id}"),
    ),
    case(
        "record-set-without-key",
        (RECORDS, "contract: {is_event_stream: false}\n  part"),
        "Add `override_channel` and `override_ordering`.",
        ("{is_event_stream: false}", "{is_event_stream: false, override_channel: id, override_ordering: at}"),
    ),
    # Chains
    case(
        "chain-needs-stream",
        ("{from: block, number", "{from: item, number"),
        "`block`",
        ("{from: item, number", "{from: block, number"),
    ),
    case(
        "chain-number",
        ("number: {path: n, type: bigint}", "number: n"),
        "Give it a type under `columns:` of `block`: `number: {type: bigint}`, beside its `path`",
        ("number: n,", "number: {path: n, type: bigint},"),
    ),
    case(
        "chain-weight",
        ("weight: {path: w, type: bigint}", "weight: {path: w}"),
        "Give it a type under `columns:` of `block`: `weight: {type: bigint}`, beside its `path`",
        ("weight: {path: w}", "weight: {path: w, type: bigint}"),
    ),
    case(
        "chain-parent",
        ("parent: parent, head", "parent: hash, head"),
        "Name the column that contains the hash of the previous block.",
        ("parent: hash, head", "parent: parent, head"),
    ),
    case(
        "head-rule",
        ("head: {most: weight}", "head: {most: weight, last: weight}"),
        "Write one of `longest`, `{most: <column>}`, `{most_summed: <column>}`, `{last: <column>}`.",
        *(
            ("{most: weight, last: weight}", rule)
            for rule in ("longest", "{most: weight}", "{most_summed: weight}", "{last: number}")
        ),
    ),
    case(
        "follow-needs-dataset",
        ("head: {most: weight}}", "head: {most: weight}, follow: {kept: seen_out}}"),
        "write a job with `SELECT * FROM seen_out LEFT SEMI JOIN canonical USING (hash)`",
        (
            (", follow: {kept: seen_out}", ""),
            (
                "jobs:\n",
                "jobs:\n  - name: kept\n    input_datasets: [seen_out, canonical]\n    output_dataset: kept\n"
                "    incremental: {mode: full}\n"
                "    sql: SELECT * FROM seen_out LEFT SEMI JOIN canonical USING (hash)\n",
            ),
        ),
    ),
    # What jobs are made of
    case(
        "sql-syntax",
        (SQL, "select shop, from where"),
        "Write it as Spark SQL takes it.",
        ("select shop, from where", SQL),
    ),
    case("sql-not-a-select", (SQL, "delete from item"), "Write one SELECT", ("delete from item", SQL)),
    case(
        "sql-and-python",
        ("    sql: select number, hash", "    python: jobs/rows.py:rows\n    sql: select number, hash"),
        "Keep one of them.",
        ("    python: jobs/rows.py:rows\n    sql: select number", "    sql: select number"),
    ),
    case(
        "job-without-code",
        (f"    sql: {SQL}\n", ""),
        "Add, for example, `sql: jobs/totals.sql`.",
        Mend(
            edits=(("    config: {least: 1}\n", "    config: {least: 1}\n    sql: jobs/totals.sql\n"),),
            files={"jobs/totals.sql": SQL},
        ),
    ),
    case(
        "substitution",
        (":least", "${env:LEAST}"),
        "In a job, put the value into `config:` and write `:name`",
        (("${env:LEAST}", ":most"), ("config: {least: 1}", "config: {most: 9}")),
    ),
    case(
        "nondeterministic",
        ("sum(price) as price", "sum(price * rand()) as price"),
        "Derive it from the row, for example with `xxhash64(<key columns>)`.",
        ("rand()", "xxhash64(shop)"),
    ),
    case(
        "undeclared-input",
        (
            SQL,
            "select t.shop, count(p.id) as parts from item t left join part p on p.id = t.shop "
            "group by t.shop",
        ),
        "Add `part` to `input_datasets`.",
        # Then `check` asks how `part` relates to the key, with YAML to paste.
        (
            (TOTALS, TOTALS.replace("[item]", "[item, part]")),
            ("key: [shop]}\n", "key: [shop], inputs: {part: whole}}\n"),
        ),
    ),
    case(
        "unused-input",
        (TOTALS, TOTALS.replace("[item]", "[item, part]")),
        "Remove it from `input_datasets`.",
        ("[item, part]", "[item]"),
    ),
    case(
        "hidden-table",
        (SQL, "select shop, price from (table item)"),
        "Write `SELECT * FROM <name>`",
        ("(table item)", "(SELECT * FROM item)"),
    ),
    case(
        "parameter-not-a-value",
        ("config: {least: 1}", "config: {least: [1, 2]}"),
        "Give each value a name of its own.",
        (
            ("config: {least: [1, 2]}", "config: {low: 1, high: 2}"),
            ("price > :least", "price between :low and :high"),
        ),
    ),
    case(
        "bad-python",
        ("jobs/rows.py:rows", "jobs/rows.py"),
        "Write, for example, `jobs/rows.py:rows`",
        ("jobs/rows.py\n", "jobs/rows.py:rows\n"),
    ),
    case(
        "file-not-found",
        ("jobs/rows.py:", "jobs/row.py:"),
        "Did you mean `jobs/rows.py`?",
        ("jobs/row.py", "jobs/rows.py"),
    ),
    case(
        "function-not-found",
        ("rows.py:rows", "rows.py:row"),
        "Did you mean `rows`?",
        ("rows.py:row\n", "rows.py:rows\n"),
    ),
    case(
        "file-not-text",
        Mend(files={"jobs/filed.sql": "select 'é' as id from item".encode("latin-1")}),
        "Save it as UTF-8.",
        Mend(files={"jobs/filed.sql": "select 'é' as id from item".encode()}),
    ),
    case(
        "cycle",
        (TOTALS, TOTALS.replace("[item]", "[totals]")),
        "Read the dataset from which it is made instead.",
        ("[totals]", "[item]"),
    ),
    # How jobs follow changes
    case(
        "key-not-in-output",
        ("key: [shop]}\n", "key: [id]}\n"),
        "`price`, `shop`",
        ("key: [id]}\n", "key: [shop]}\n"),
    ),
    case(
        "input-relation-unknown",
        (
            f"    config: {{least: 1}}\n    sql: {SQL}",
            "    sql: select shop, price from item cross join (select max(price) as top from item)",
        ),
        "inputs:\n      item: whole   # or {by: [shop]}",
        ("key: [shop]}\n", "key: [shop], inputs: {item: whole}}\n"),
        ("key: [shop]}\n", "key: [shop], inputs: {item: {by: [shop]}}}\n"),
    ),
    case(
        "by-is-not-the-key",
        (ROWS, ROWS.replace("[shop]", "[id]")),
        "Name each key column: `by: {shop: <column of item>}`.",
        (ROWS.replace("[shop]", "[id]"), ROWS.replace("[shop]", "{shop: id}")),
    ),
    case(
        "via-cycle",
        (ROWS, "inputs: {item: {via: item, on: [shop]}}"),
        "`by` the key.",
        ("{via: item, on: [shop]}", "{by: [shop]}"),
    ),
    case(
        "via-whole",
        (
            "input_datasets: [item]\n    output_dataset: rows_out\n"
            f"    incremental: {{mode: keyed, key: [shop], {ROWS}}}",
            "input_datasets: [item, part]\n    output_dataset: rows_out\n"
            "    incremental: {mode: keyed, key: [shop], inputs: {item: whole, part: {via: item, on: [id]}}}",
        ),
        "Relate `item` `by` the key, or read `part` whole.",
        ("{item: whole, part", "{item: {by: [shop]}, part"),
        ("part: {via: item, on: [id]}", "part: whole"),
    ),
    case(
        "partition-needs-by",
        ("mode: partition}", "mode: partition, inputs: {canonical: whole}}"),
        "Relate one of them: `inputs: {canonical: {by: [number]}}`.",
        ("inputs: {canonical: whole}", "inputs: {canonical: {by: [number]}}"),
    ),
    case(
        "keyed-without-key",
        ("{mode: keyed, key: [shop]}", "{mode: keyed}"),
        "Add `key: [<columns of the output>]` to `incremental`.",
        ("{mode: keyed}", "{mode: keyed, key: [shop]}"),
    ),
    case(
        "cursor-without-column",
        ("cursor_column: number, ", ""),
        "Add `cursor_column: <column of inputs and output>` to `incremental`.",
        ("{mode: cursor, ", "{mode: cursor, cursor_column: hash, "),
    ),
    case(
        "append-without-key",
        (", unique_key: [hash]", ""),
        "Add `unique_key: [<columns of the output>]` to `incremental`.",
        ("cursor_column: number", "cursor_column: number, unique_key: [number, hash]"),
    ),
    case(
        "append-without-cursor",
        ("mode: cursor, cursor_column: number, unique_key: [hash]", "mode: keyed, key: [number]"),
        "Write `mode: cursor` with a `cursor_column` and a `unique_key`, or `update_strategy: replace`.",
        ("mode: keyed, key: [number]", "mode: cursor, cursor_column: number, unique_key: [hash]"),
        ("update_strategy: append", "update_strategy: replace"),
    ),
    case(
        "partition-without-column",
        ("    partition: {column: number, size: 10, final_after: 2}\n", ""),
        "Add `partition: {column: <column>, size: 10000}`",
        ("{mode: partition}\n", "{mode: partition}\n    partition: {column: number, size: 10000}\n"),
    ),
    case(
        "partition-size",
        ("size: 10,", "size: 10, unit: day,"),
        "Write `size: 10000`, or",
        ("size: 10, unit: day", "size: 10000"),
    ),
    case(
        "final-after",
        ("final_after: 2", "final_after: 2 days"),
        "Write `100`.",
        ("final_after: 2 days", "final_after: 100"),
    ),
    case(
        "unused-key",
        ("mode: partition}", "mode: partition, key: [number]}"),
        "Remove `key`, or write `mode: keyed` and remove `partition`.",
        ("mode: partition, key: [number]}", "mode: partition}"),
        (
            ("mode: partition, key", "mode: keyed, key"),
            ("    partition: {column: number, size: 10, final_after: 2}\n", ""),
        ),
    ),
    case(
        "unused-key",
        ("{mode: full}", "{mode: full, inputs: {item: whole}}"),
        "Remove `inputs`, or write `mode: keyed` with a `key`.",
        (", inputs: {item: whole}", ""),
        ("{mode: full, inputs", "{mode: keyed, key: [id], inputs"),
    ),
    # Timelines
    case(
        "timeline-date",
        ("date: traded_on", "date: traded_at"),
        'Add `traded_at_on: {sql: "local_date(traded_at)"}` under `columns:` of the dataset, and name that.',
        (
            (
                "columns: {fund: fund, trade_id",
                'columns: {traded_at_on: {sql: "local_date(traded_at)"}, fund: fund, trade_id',
            ),
            ("date: traded_at\n", "date: traded_at_on\n"),
        ),
    ),
    case(
        "timeline-date",
        ("traded_on: {path: on, type: date}", "traded_on: {path: on}"),
        "Give it the type under `columns:` of the dataset: `traded_on: {type: date}`, beside its `path`",
        ("traded_on: {path: on}", "traded_on: {path: on, type: date}"),
    ),
    case(
        "timeline-name",
        ("fields: {held: bigint}", "fields: {held: bigint, latest: bigint}"),
        "Rename one of them: names are compared in lower case.",
        ("latest: bigint", "newest: bigint"),
    ),
    case(
        "timeline-name",
        (
            ("columns: {fund: fund, trade_id", "columns: {epoch: fund, trade_id"),
            ("key: [fund]\n    facts", "key: [epoch]\n    facts"),
            ("together: [fund]", "together: [epoch]"),
            ("on: [fund]", "on: {fund: epoch}"),
        ),
        "Give the column another name in `trade`, and use that.",
        (
            ("epoch: fund", "series: fund"),
            ("key: [epoch]", "key: [series]"),
            ("together: [epoch]", "together: [series]"),
            ("fund: epoch", "fund: series"),
        ),
    ),
    case(
        "together-not-in-key",
        ("together: [fund]", "together: [trade_id]"),
        "Name columns of the key: `fund`.",
        ("together: [trade_id]", "together: [fund]"),
    ),
    case(
        "field-type",
        ("{held: bigint}", "{held: bigint, seen_at: timestamp_ms}"),
        "Write `timestamp`.",
        ("timestamp_ms", "timestamp"),
    ),
    case(
        "due-at",
        ('due_at: "18:00"', "due_at: evening"),
        'Write it as HH:MM, such as "18:00".',
        ("evening", '"20:30"'),
    ),
    case(
        "reference-on",
        ("on: [fund], date", "on: {fund: fnd}, date"),
        "Did you mean `fund`?",
        ("{fund: fnd}", "{fund: fund}"),
    ),
    case(
        "reference-on",
        (
            "latest: {dataset: quote, on: [fund], date: quoted_on}",
            "first: {dataset: quote, on: {fund: latest.fund}, date: quoted_on}\n"
            "        latest: {dataset: quote, on: [fund], date: quoted_on}",
        ),
        "Move `latest` above `first`: references are resolved top down.",
        (
            ("        first: {dataset: quote, on: {fund: latest.fund}, date: quoted_on}\n", ""),
            (
                "      columns:\n        worth",
                "        first: {dataset: quote, on: {fund: latest.fund}, date: quoted_on}\n"
                "      columns:\n        worth",
            ),
        ),
    ),
    case(
        "reference-type",
        ("on: [fund], date", "on: {fund: held}, date"),
        "Give both one type: `fund: {type: bigint}` under `columns:` of `quote`, beside its `path` if it has"
        " one.",
        ("{fund: fund, quoted_on", "{fund: {path: fund, type: bigint}, quoted_on"),
    ),
    case(
        "reference-not-unique",
        ("on: [fund], date: quoted_on", "on: [fund]"),
        "Match it on its whole key: `fund` and `quoted_on`. A date column of the key is named by `date`.",
        ("on: [fund]", "on: [fund], date: quoted_on"),
    ),
    case(
        "reference-not-unique",
        ("record_set: {key: [fund, quoted_on], order_by: [seq]}", "event_stream: {identity: [seq]}"),
        "Match it on its whole key: `seq`.",
        (("on: [fund], date: quoted_on", "on: {seq: held}"),),
    ),
    case(
        "reference-not-unique",
        ("    record_set: {key: [fund, quoted_on], order_by: [seq]}\n", ""),
        "Look up a record set: `record_set: {key: [fund, quoted_on], order_by: [<column>]}`.",
        (
            "seq: {path: s, type: bigint}}\n",
            "seq: {path: s, type: bigint}}\n    record_set: {key: [fund, quoted_on], order_by: [seq]}\n",
        ),
    ),
    case(
        "reference-not-unique",
        ("dataset: quote,", "dataset: rows_out,"),
        "Declare the key of its rows under `datasets:`: `rows_out: {key: [fund, quoted_on]}`.",
        ("datasets:\n", "datasets:\n  rows_out: {key: [fund, quoted_on]}\n"),
    ),
    case(
        "star-in-expression",
        ("worth: held * latest.quoted", "worth: struct(latest.*)"),
        "Name each column that it needs.",
        ("struct(latest.*)", "struct(latest.quoted, latest.seq)"),
    ),
    case(
        "unknown-column",
        ("worth: held * latest.quoted", "twice: 2 * worth\n        worth: held * latest.quoted"),
        "Declare `worth` above it: a column may use the columns above.",
        (
            "twice: 2 * worth\n        worth: held * latest.quoted",
            "worth: held * latest.quoted\n        twice: 2 * worth",
        ),
    ),
    case(
        "nondeterministic",
        Mend(
            files={
                "jobs/folds.py": "import time\n\ndef count(state, facts):\n    return {'held': time.time()}\n"
            }
        ),
        "Use the dates and times of the facts",
        Mend(
            files={
                "jobs/folds.py": "def count(state, facts):\n    return {'held': facts[0]['traded_at'].year}\n"
            }
        ),
    ),
    # Python
    in_python(
        "python-syntax", "def rows(inputs, context:\n", "Correct it so that `python` accepts it.", RIGHT
    ),
    in_python(
        "wrong-parameters", f"def rows(inputs):\n{PYTHON}", "Write `def rows(inputs, context):`", RIGHT
    ),
    in_python(
        "import-not-followed",
        f"import importlib\nrates = importlib.import_module('rates')\n\ndef rows(inputs, context):\n{PYTHON}",
        "Write `import <module>`: modules are found beside the job's file",
        f"import rates\n\ndef rows(inputs, context):\n{PYTHON}",
    ),
    in_python(
        "outside-input",
        "import os\n\ndef rows(inputs, context):\n    return inputs['item'].limit(os.environ['N'])\n",
        "put the value into `config:`",
        "def rows(inputs, context):\n"
        "    return inputs['item'].where(inputs['item'].price < context.config['n'])\n",
    ),
    in_python(
        "text-not-literal",
        f"{FUNCTIONS}def rows(inputs, context):\n"
        "    return inputs['item'].select(F.expr(context.config['x']))\n",
        "Write the text as a literal",
        f"{FUNCTIONS}def rows(inputs, context):\n    return inputs['item'].select(F.expr('price + 1'))\n",
    ),
)
BOTH = tuple((case, mend) for case in CASES for mend in case.mends)
CHECKED = frozenset(case.slug for case in CASES)


def mistakes(folder: Path, *steps: Mend) -> tuple[Mistake, ...]:
    """The report of `check` on the base project after these steps."""
    text, files = BASE, dict(FILES)
    environ: dict[str, str] = {}
    for step in steps:
        for old, new in step.edits:
            assert old in text, f"the project has no {old!r}"
            text = text.replace(old, new, 1)
        files |= step.files
        environ |= step.environ
    try:
        load_project(write(folder, text, files), environ)
    except ProjectError as error:
        return error.mistakes
    return ()


def test_the_base_project_is_valid(tmp_path: Path) -> None:
    assert mistakes(tmp_path) == ()


@pytest.mark.parametrize(("case", "mend"), BOTH, ids=[case.slug for case, _ in BOTH])
def test_what_a_mistake_tells_to_write_settles_it(case: Case, mend: Mend, tmp_path: Path) -> None:
    before = mistakes(tmp_path, case.wrong)
    after = mistakes(tmp_path, case.wrong, mend)

    assert case.slug in [mistake.slug for mistake in before]
    assert any(case.remedy in mistake.remedy for mistake in before if mistake.slug == case.slug), [
        m.remedy for m in before
    ]
    assert after == ()
