"""Chains and the datasets that follow them: requirements, results, and effects of changes."""

from pathlib import Path

import pytest

from strandline.model.node import By, Input
from strandline.model.project import Chain, Head, HeadRule, Job, Mode
from tests.unit.declare.builders import config_change, line_of, load, report, slugs

BASE = """\
project: x
sources:
  block_events: {files: "b/*.jsonl"}
  tx_events: {files: "t/*.jsonl"}
datasets:
  blocks:
    from: block_events
    columns:
      chain_id: {path: c, type: bigint}
      block_number: {path: n, type: bigint}
      block_hash: h
      parent_hash: p
      difficulty: {path: d, type: bigint}
      block_at: {path: t, type: timestamp}
      seq: {path: s, type: bigint}
    event_stream: {identity: [block_hash]}
  transactions:
    from: tx_events
    columns: {chain_id: {path: c, type: bigint}, block_hash: b, tx_hash: h}
  receipts:
    from: tx_events
    columns: {block_hash: b, receipt_hash: r, at: {path: at, type: bigint}}
    record_set: {key: [receipt_hash], order_by: [at]}
"""
CHAIN = """\
chains:
  hot_blocks:
    from: blocks
    number: block_number
    hash: block_hash
    parent: parent_hash
    head: {most: difficulty}
"""
FOLLOWED = CHAIN + "    follow: {hot_transactions: transactions, hot_receipts: receipts}\n"
READER = """\
jobs:
  - name: a
    output_dataset: a_out
    input_datasets: [hot_blocks, hot_transactions]
"""


def edited(yaml: str, *edits: tuple[str, str]) -> str:
    for old, new in edits:
        assert old in yaml, f"the project has no {old!r}"
        yaml = yaml.replace(old, new)
    return yaml


def chain_of(folder: Path, *edits: tuple[str, str], more: str = "") -> Chain:
    definition = load(folder, BASE + edited(CHAIN, *edits) + more).get("hot_blocks").definition
    assert isinstance(definition, Chain)
    return definition


# what a chain needs


@pytest.mark.parametrize(
    ("made_of", "remedy"),
    [
        ("blcks", "Did you mean `blocks`?"),
        ("blocks_facts", "Did you mean `blocks`?"),
        ("receipts", "Known event streams: `blocks`, `transactions`."),
        ("tx_events", "Known event streams: `blocks`, `transactions`."),
        ("hot_blocks", "Did you mean `blocks`?"),
    ],
    ids=["no dataset", "its facts", "a record set", "a source", "itself"],
)
def test_a_chain_is_made_of_an_event_stream(made_of: str, remedy: str, tmp_path: Path) -> None:
    yaml = BASE + edited(CHAIN, ("from: blocks", f"from: {made_of}  # wrong"))

    reported = report(tmp_path, yaml)

    place = f"strandline.yaml:{line_of(yaml, '# wrong')}"
    what = f"the chain `hot_blocks` is made from `{made_of}`, which is not an event stream."
    assert reported == f"{place}: {what}\n  {remedy}  [chain-needs-stream]"


@pytest.mark.parametrize(
    ("old", "new", "word", "column", "remedy"),
    [
        (
            "number: block_number",
            "number: blok_number",
            "number",
            "blok_number",
            "Did you mean `block_number`?",
        ),
        ("hash: block_hash", "hash: blok_hash", "hash", "blok_hash", "Did you mean `block_hash`?"),
        ("parent: parent_hash", "parent: parent_hsh", "parent", "parent_hsh", "Did you mean `parent_hash`?"),
        ("most: difficulty", "most: difficult", "head", "difficult", "Did you mean `difficulty`?"),
        ("most: difficulty", "most_summed: difficult", "head", "difficult", "Did you mean `difficulty`?"),
        ("most: difficulty", "last: difficult", "head", "difficult", "Did you mean `difficulty`?"),
        (
            "most: difficulty}",
            "most: difficulty}\n    order_by: [seqq]",
            "order_by",
            "seqq",
            "Did you mean `seq`?",
        ),
        (
            "most: difficulty}",
            "most: difficulty}\n    group_by: [chain]",
            "group_by",
            "chain",
            "Did you mean `chain_id`?",
        ),
    ],
)
def test_a_column_that_the_blocks_lack_is_told_with_the_nearest(
    old: str, new: str, word: str, column: str, remedy: str, tmp_path: Path
) -> None:
    yaml = BASE + edited(CHAIN, (old, new))

    reported = report(tmp_path, yaml)

    place = f"strandline.yaml:{line_of(yaml, f'    {word}: ')}"
    assert (
        reported == f"{place}: `{word}` of the chain `hot_blocks` names `{column}`, "
        f"which is not a column of `blocks`.\n  {remedy}  [unknown-column]"
    )


def test_our_own_arrival_ranks_no_blocks(tmp_path: Path) -> None:
    assert slugs(tmp_path, BASE + CHAIN + "    order_by: [_ingested_at]\n") == ["unknown-column"]
    assert slugs(tmp_path, BASE + CHAIN + "    order_by: [seq, _source_position]\n") == []


OF_BEFORE = "Name the column that contains the hash of the previous block."


@pytest.mark.parametrize(
    ("edit", "word", "column", "other", "remedy"),
    [
        (("parent: parent_hash", "parent: block_hash"), "parent", "block_hash", "hash", OF_BEFORE),
        (("parent: parent_hash", "parent: Block_Hash"), "parent", "block_hash", "hash", OF_BEFORE),
        (("parent: parent_hash", "parent: block_number"), "parent", "block_number", "number", OF_BEFORE),
        (
            ("hash: block_hash", "hash: block_number"),
            "hash",
            "block_number",
            "number",
            "Name the column that contains the block's own hash.",
        ),
    ],
)
def test_a_link_that_is_none_is_told_once_where_it_stands_with_its_column(
    edit: tuple[str, str], word: str, column: str, other: str, remedy: str, tmp_path: Path
) -> None:
    yaml = BASE + edited(CHAIN, edit)

    reported = report(tmp_path, yaml)

    what = (
        f"the chain `hot_blocks` has no usable parent link: `{word}` is `{column}`, "
        f"which is also its `{other}`."
    )
    assert reported == f"strandline.yaml:{line_of(yaml, f'    {word}:')}: {what}\n  {remedy}  [chain-parent]"


def test_a_column_that_is_none_is_no_link_that_is_none(tmp_path: Path) -> None:
    yaml = BASE + edited(CHAIN, ("hash: block_hash", "hash: blok"), ("parent: parent_hash", "parent: blok"))

    assert slugs(tmp_path, yaml) == ["unknown-column", "unknown-column"]


@pytest.mark.parametrize(("number", "type_"), [("block_at", "timestamp"), ("parent_hash", "string")])
def test_a_number_that_is_none_is_told_with_its_type(number: str, type_: str, tmp_path: Path) -> None:
    yaml = BASE + edited(
        CHAIN, ("number: block_number", f"number: {number}"), ("parent: parent_hash", "parent: seq")
    )

    reported = report(tmp_path, yaml)

    assert (
        reported
        == f"""\
strandline.yaml:{line_of(yaml, "    number:")}: `number` of the chain `hot_blocks` is `{number}`, \
which is {type_}, not a whole number.
  Give it a type under `columns:` of `blocks`: `{number}: {{type: bigint}}`, \
beside its `path` if it has one.  [chain-number]"""
    )


CSV_BLOCKS = (
    'project: x\nsources:\n  block_files: {files: "b/*.csv"}\ndatasets:\n  blocks:\n    from: block_files\n'
)
LONGEST = CHAIN.replace("{most: difficulty}", "longest")
CSV_FILE: dict[str, str | bytes] = {"b/1.csv": "block_number,block_hash,parent_hash,difficulty\n1,a,,5\n"}


@pytest.mark.parametrize("files", [{}, CSV_FILE], ids=["no file yet", "a file"])
@pytest.mark.parametrize(
    "columns",
    ["", "    columns: {block_hash: {type: string}}\n", "    columns: {block_number: block_number}\n"],
)
def test_a_number_that_csv_gives_as_text_is_told(
    columns: str, files: dict[str, str | bytes], tmp_path: Path
) -> None:
    yaml = CSV_BLOCKS + columns + LONGEST

    reported = report(tmp_path, yaml, files)

    what = "`number` of the chain `hot_blocks` is `block_number`, which is string, not a whole number."
    remedy = (
        "Give it a type under `columns:` of `blocks`: `block_number: {type: bigint}`, "
        "beside its `path` if it has one."
    )
    assert reported == f"strandline.yaml:{line_of(yaml, '    number:')}: {what}\n  {remedy}  [chain-number]"


@pytest.mark.parametrize("column", ["{type: bigint}", '{sql: "cast(block_number as bigint)"}'])
def test_a_number_of_csv_that_has_a_type_or_may_have_one_is_taken(column: str, tmp_path: Path) -> None:
    assert report(tmp_path, f"{CSV_BLOCKS}    columns: {{block_number: {column}}}\n{LONGEST}", CSV_FILE) == ""


def test_a_number_that_csv_files_lack_is_told_as_that_alone(tmp_path: Path) -> None:
    yaml = CSV_BLOCKS + edited(LONGEST, ("number: block_number", "number: height"))

    assert slugs(tmp_path, yaml, CSV_FILE) == ["unknown-column"]


def test_every_mistake_of_a_chain_is_told_in_the_order_of_the_file(tmp_path: Path) -> None:
    yaml = BASE + edited(
        FOLLOWED, ("number: block_number", "number: block_at"), ("most: difficulty", "most: weight")
    )
    yaml += "    group_by: [chain]\n"

    assert slugs(tmp_path, yaml) == ["chain-number", "unknown-column", "unknown-column"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("    head: {most: difficulty}\n", "", "`chains.hot_blocks` lacks `head`."),
        ("head: {most: difficulty}", "head: longst", "Did you mean `longest`?"),
        ("head: {most: difficulty}", "head: {mots: difficulty}", "Did you mean `most`?"),
        (
            "    parent: ",
            "    parents: ",
            "unknown key `parents` in `chains.hot_blocks`.\n  Did you mean `parent`?",
        ),
        (
            "from: blocks\n    number",
            "from: blocks\n    anchor: first\n    number",
            "`chains.hot_blocks.anchor` is `first`, not a whole number.",
        ),
    ],
)
def test_a_wrong_shape_of_a_chain_is_told_once(old: str, new: str, expected: str, tmp_path: Path) -> None:
    shown = report(tmp_path, BASE + edited(CHAIN, (old, new)))

    assert expected in shown
    assert shown.count("strandline.yaml:") == 1


@pytest.mark.parametrize(
    ("head", "choices"),
    [
        ("{most: difficulty, last: block_at}", "`most` and `last`"),
        ("{last: seq, most_summed: difficulty, most: seq}", "`most`, `most_summed` and `last`"),
        ("{}", "none"),
    ],
)
def test_a_head_has_exactly_one_rule(head: str, choices: str, tmp_path: Path) -> None:
    yaml = BASE + edited(CHAIN, ("{most: difficulty}", head))

    reported = report(tmp_path, yaml)

    assert (
        reported
        == f"""\
strandline.yaml:{line_of(yaml, "    head:")}: exactly one rule chooses \
the head of a chain, and `chains.hot_blocks.head` has {choices}.
  Write one of `longest`, `{{most: <column>}}`, `{{most_summed: <column>}}`, `{{last: <column>}}`.  \
[head-rule]"""
    )


@pytest.mark.parametrize(
    "edit",
    [
        ("number: block_number", "number: blok"),
        ("from: blocks", "from: blcks"),
        ("number: block_number", "nmber: block_number"),
    ],
    ids=["a column", "the blocks", "the shape"],
)
def test_leaning_on_a_chain_that_is_wrong_is_no_second_mistake(edit: tuple[str, str], tmp_path: Path) -> None:
    job = """\
    incremental: {mode: partition}
    partition: {column: block_number, size: 10}
    sql: select * from hot_blocks left semi join hot_transactions using (block_hash)
"""
    job = job.replace("partition}", "partition, inputs: {hot_transactions: whole}}")

    assert slugs(tmp_path, BASE + FOLLOWED + READER + job) == []
    assert len(slugs(tmp_path, BASE + edited(FOLLOWED, edit) + READER + job)) == 1


# what follows it


@pytest.mark.parametrize(
    ("follow", "expected"),
    [
        (
            "hot_transactions: transaction",
            "`hot_transactions` follows the chain `hot_blocks` with `transaction`, which is not a dataset.\n"
            "  Did you mean `transactions`?  [unknown-dataset]",
        ),
        (
            "hot_events: tx_events",
            "`tx_events` has no column `block_hash`, "
            "by which `hot_events` would follow the chain `hot_blocks`.\n"
            "  There are no columns to choose from.  [unknown-column]",
        ),
        (
            "receipts: transactions",
            "`receipts` is the name of a dataset that follows a chain "
            f"and of a dataset (strandline.yaml:{line_of(BASE, 'receipts:')}).\n"
            "  Rename one of them: a name stands for one thing.  [name-taken]",
        ),
        (
            "hot_blocks: transactions",
            "`hot_blocks` is the name of a dataset that follows a chain and of a chain "
            f"(strandline.yaml:{line_of(BASE + CHAIN, 'hot_blocks:')}).\n"
            "  Rename one of them: a name stands for one thing.  [name-taken]",
        ),
        (
            "hot_state: transactions",
            "the dataset that follows a chain `hot_state` ends in `_state`, "
            "which is reserved for tables that Strandline creates.\n"
            "  Give it a name without that ending.  [reserved-name]",
        ),
    ],
    ids=["no dataset", "no hash", "a dataset's name", "the chain's name", "a reserved name"],
)
def test_a_mistake_in_what_follows_is_told_once_where_it_stands(
    follow: str, expected: str, tmp_path: Path
) -> None:
    yaml = BASE + CHAIN + f"    follow: {{\n      {follow}}}\n"

    assert report(tmp_path, yaml) == f"strandline.yaml:{line_of(yaml, f'      {follow}')}: {expected}"


@pytest.mark.parametrize("named", ["totals", "make_totals"], ids=["its output", "its name"])
def test_a_jobs_output_is_told_apart_from_what_is_no_dataset(named: str, tmp_path: Path) -> None:
    job = (
        "jobs:\n  - {name: make_totals, input_datasets: [transactions], output_dataset: totals, "
        "sql: select * from transactions}\n"
    )
    yaml = BASE + CHAIN + f"    group_by: [chain_id]\n    follow:\n      hot_totals: {named}\n" + job

    reported = report(tmp_path, yaml)

    assert (
        reported
        == f"""\
strandline.yaml:{line_of(yaml, "hot_totals:")}: `hot_totals` follows the chain `hot_blocks` with `{named}`, \
which is a job's output, not an event stream or record set.
  Follow a dataset that the job reads, or write a job with \
`SELECT * FROM totals LEFT SEMI JOIN hot_blocks USING (chain_id, block_hash)`.  [follow-needs-dataset]"""
    )


def test_what_follows_has_the_group_of_the_chain_too(tmp_path: Path) -> None:
    yaml = BASE + FOLLOWED + "    group_by: [chain_id]\n"

    reported = report(tmp_path, yaml)

    assert (
        "`receipts` has no column `chain_id`, by which `hot_receipts` would follow the chain `hot_blocks`."
        in reported
    )
    assert slugs(tmp_path, yaml) == ["unknown-column"]


def test_a_job_may_not_take_the_name_of_what_follows(tmp_path: Path) -> None:
    job = (
        "jobs:\n"
        "  - {name: a, input_datasets: [blocks], output_dataset: hot_transactions, "
        "sql: select * from blocks}\n"
    )

    assert slugs(tmp_path, BASE + FOLLOWED + job) == ["name-taken"]


# what it gives


def test_a_chain_is_taken_as_declared(tmp_path: Path) -> None:
    more = "    order_by: [Seq, _source_position]\n    group_by: [Chain_Id]\n    anchor: 0\n"

    chain = chain_of(tmp_path, ("number: block_number", "number: Block_Number"), more=more)

    assert (chain.blocks, chain.number, chain.hash, chain.parent) == (
        "blocks",
        "block_number",
        "block_hash",
        "parent_hash",
    )
    assert chain.head == HeadRule(kind=Head.MOST, column="difficulty")
    assert (chain.order_by, chain.group_by, chain.anchor) == (("seq", "_source_position"), ("chain_id",), 0)
    assert chain.key == ("chain_id", "block_number")


def test_a_chain_takes_the_lowest_number_and_the_sources_order_unless_told(tmp_path: Path) -> None:
    chain = chain_of(tmp_path)

    assert (chain.order_by, chain.group_by, chain.anchor) == (("_source_position",), (), None)
    assert chain.key == ("block_number",)


@pytest.mark.parametrize(
    ("head", "rule"),
    [
        ("longest", HeadRule(kind=Head.LONGEST)),
        ("{most: Difficulty}", HeadRule(kind=Head.MOST, column="difficulty")),
        ("{most_summed: difficulty}", HeadRule(kind=Head.MOST_SUMMED, column="difficulty")),
        ("{last: block_at}", HeadRule(kind=Head.LAST, column="block_at")),
    ],
)
def test_each_way_to_choose_the_head_is_taken(head: str, rule: HeadRule, tmp_path: Path) -> None:
    assert chain_of(tmp_path, ("head: {most: difficulty}", f"head: {head}")).head == rule


def test_a_chain_and_what_follows_it_become_nodes_with_inputs_before_readers(tmp_path: Path) -> None:
    project = load(tmp_path, BASE + FOLLOWED)

    chain = project.get("hot_blocks")
    assert (chain.kind, chain.key, chain.traits.range_column, chain.traits.only_grows) == (
        Chain.kind,
        ("block_number",),
        "block_number",
        False,
    )
    assert chain.inputs == (
        Input(name="blocks_facts", dataset="blocks_facts", relation=By(columns=("block_number",))),
    )
    assert [n.name for n in project.nodes if n.kind in (Chain.kind, Job.kind)] == [
        "hot_blocks",
        "hot_transactions",
        "hot_receipts",
    ]
    assert {name: project.names[name] for name in ("hot_blocks", "hot_transactions")} == {
        "hot_blocks": ("hot_blocks",),
        "hot_transactions": ("hot_transactions",),
    }
    assert (project.tables["hot_blocks"], project.tables["hot_transactions"]) == (
        "hot_blocks",
        "hot_transactions",
    )
    assert project.indexed("blocks_facts") == ("block_number",)


def test_what_follows_is_a_job_keyed_by_the_blocks_hash(tmp_path: Path) -> None:
    edits = (
        ("hot_receipts: receipts", "again: hot_transactions"),
        ("head: ", "group_by: [chain_id]\n    head: "),
    )
    project = load(tmp_path, BASE + edited(FOLLOWED, *edits))

    assert project.get("hot_blocks").inputs[0].relation == By(columns=("chain_id", "block_number"))
    for name, dataset, table in (
        ("hot_transactions", "transactions", "transactions_facts"),
        ("again", "hot_transactions", "hot_transactions"),
    ):
        node = project.get(name)
        assert isinstance(node.definition, Job)
        assert (node.kind, node.definition.mode, node.key) == (
            Job.kind,
            Mode.KEYED,
            ("chain_id", "block_hash"),
        )
        assert node.inputs == (
            Input(name=dataset, dataset=table, relation=By(columns=("chain_id", "block_hash"))),
            Input(name="hot_blocks", dataset="hot_blocks", relation=By(columns=("chain_id", "block_hash"))),
        )


def test_a_job_reads_a_chain_and_what_follows_it_with_their_columns(tmp_path: Path) -> None:
    job = """\
    incremental: {mode: keyed, key: [block_hash]}
    sql: >-
      select b.block_hash, count(*) as n from hot_blocks b
      join hot_transactions t on t.block_hash = b.block_hash group by b.block_hash
"""
    project = load(tmp_path, BASE + FOLLOWED + READER + job)

    assert [(i.dataset, i.relation, i.proved) for i in project.get("a_out").inputs] == [
        ("hot_blocks", By(columns=("block_hash",)), True),
        ("hot_transactions", By(columns=("block_hash",)), True),
    ]
    assert (
        slugs(tmp_path, BASE + FOLLOWED + READER + job.replace("b.block_hash, count", "b.blok_hash, count"))
        != []
    )


# what a change of it does


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("number: block_number", "number: seq", {"number"}),
        ("hash: block_hash", "hash: tx", {"hash"}),
        ("parent: parent_hash", "parent: uncle_hash", {"parent"}),
        ("most: difficulty", "most: seq", {"head"}),
        ("most: difficulty", "most_summed: difficulty", {"head"}),
        ("head: {most: difficulty}", "head: longest", {"head"}),
        ("head: ", "order_by: [seq]\n    head: ", {"order_by"}),
        ("head: ", "order_by: [_source_position]\n    head: ", set()),
        ("head: ", "group_by: [chain_id]\n    head: ", {"group_by"}),
        ("head: ", "anchor: 0\n    head: ", {"anchor"}),
        ("head: ", "follow: {hot_transactions: transactions}\n    head: ", set()),
        ("from: blocks\n", "from: other_blocks\n", {"from"}),
    ],
)
def test_any_change_of_a_chain_freezes_it(old: str, new: str, parts: set[str], tmp_path: Path) -> None:
    yaml = BASE.replace("      parent_hash: p\n", "      parent_hash: p\n      uncle_hash: u\n      tx: x\n")
    blocks = yaml[yaml.index("  blocks:") : yaml.index("  transactions:")]
    yaml = yaml.replace(blocks, blocks + blocks.replace("  blocks:", "  other_blocks:")) + CHAIN

    assert config_change(tmp_path, yaml, "hot_blocks", (old, new)) == (parts, bool(parts))


@pytest.mark.parametrize(
    ("old", "new", "parts", "freezes"),
    [
        ("hot_transactions: transactions", "hot_transactions: blocks", {"sql", "inputs"}, False),
        ("head: ", "group_by: [chain_id]\n    head: ", {"key", "sql", "inputs"}, True),
        ("most: difficulty", "most: seq", set(), False),
    ],
)
def test_what_follows_changes_as_any_job_does(
    old: str, new: str, parts: set[str], freezes: bool, tmp_path: Path
) -> None:
    yaml = BASE + FOLLOWED.replace(", hot_receipts: receipts", "")

    assert config_change(tmp_path, yaml, "hot_transactions", (old, new)) == (parts, freezes)


@pytest.mark.parametrize("rule", ["most", "most_summed"])
def test_a_weight_that_is_text_is_refused_because_nine_would_be_more_than_ten(
    tmp_path: Path, rule: str
) -> None:
    yaml = edited(
        BASE + CHAIN, ("difficulty: {path: d, type: bigint}", "difficulty: d"), ("{most:", f"{{{rule}:")
    )

    reported = report(tmp_path, yaml)

    what = "`head` of the chain `hot_blocks` uses `difficulty`, which is text, not a number."
    remedy = (
        "Give it a type under `columns:` of `blocks`: `difficulty: {type: bigint}`, "
        "beside its `path` if it has one."
    )
    assert reported == f"strandline.yaml:{line_of(yaml, '    head:')}: {what}\n  {remedy}  [chain-weight]"
