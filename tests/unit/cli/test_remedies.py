"""A refused call, then the call that its remedy names: the second one succeeds. No Spark.

A call that would start Spark counts as successful at that point, because it has passed all checks.
"""

import json
import re
import shlex
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from strandline.cli import main
from strandline.model.conditions import MOST_VALUES
from strandline.model.errors import CallError, OutsideError
from tests.golden.cases import tell
from tests.unit.cli.builders import INSTANT, POSITION, Shop, at, make_shop, order
from tests.unit.cli.damaging import add_checksum, flip
from tests.unit.cli.lake_builder import Written, write_lake

MORE = """
  visits: {files: "data/visits/*.jsonl"}

datasets:
  visit:
    from: visits
    columns: {number: {path: n, type: bigint}, at: {path: at, type: timestamp}}
  counted:
    from: visits
    columns: {number: {path: n, type: bigint}}
    event_stream: {identity: [number]}
"""
JOBS = """
  - name: visit_days
    input_datasets: [visit]
    output_dataset: visit_days
    incremental: {mode: partition}
    partition: {column: at, unit: day}
    sql: select * from visit
"""
VISITS = pa.schema(
    [("number", pa.int64()), ("at", INSTANT), ("_source_position", POSITION), ("_ingested_at", INSTANT)]
)
REACHED = "it comes to Spark"


@pytest.fixture(autouse=True)
def _spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def start_spark(*_: object) -> None:
        raise OutsideError(REACHED)

    monkeypatch.setattr("strandline.spark.session.get_session", start_spark)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """Orders and visits in tables that the test writes. `customer_totals` was never built."""
    shop = make_shop(tmp_path / "shop")
    project = shop.folder / "strandline.yaml"
    project.write_text(project.read_text().replace("\ndatasets:\n", MORE, 1) + JOBS)
    shop.write("orders", [order("A-1", "100.00", 11, 4), order("B-1", "80.00", 10, 3, customer="Bilal")])
    shop.write("orders", [order("A-2", "35.50", 13, 6)])
    shop.write("orders_facts", [order("A-1", "120.00", 9, 1), order("A-1", "100.00", 11, 4)])
    place = {"name": "v", "part": 0, "place": 1}
    for name in ("visit_facts", "counted_facts"):
        shop.write(
            name, [{"number": 7, "at": at(9), "_source_position": place, "_ingested_at": at(9)}], VISITS
        )
    monkeypatch.chdir(tmp_path)
    return shop


def ask(shop: Shop | Written, capsys: pytest.CaptureFixture[str], words: str) -> tuple[bool, str]:
    """Whether a call succeeded, and its output: that on stderr if it failed."""
    code = shop.call(*shlex.split(words))
    output = capsys.readouterr()
    return code == 0 or REACHED in output.err, output.out if code == 0 else output.err


CALLS: tuple[tuple[str, str, str, str], ...] = (
    # slug, a wrong call, words of its remedy, the call that follows them
    (
        "bad-instant",
        "plan --as-of yesterday",
        "Write it as 2024-01-13 or 2024-01-13T08:30:00Z.",
        "plan --as-of 2024-01-13T08:30:00Z",
    ),
    (
        "no-facts",
        "history customer_totals Asha",
        "Name a dataset that it is computed from, with a key of that: orders.",
        "history orders A-1",
    ),
    ("wrong-key", "history orders A 1", "Write `strandline history orders ORDER_ID`.", "history orders A-1"),
    (
        "wrong-key",
        "history visit 7",
        'Use `strandline query "SELECT * FROM visit"`.',
        'query "SELECT * FROM visit"',
    ),
    ("already-there", "init shop", "Name a new folder: `strandline init DIR`.", "init another"),
    (
        "unknown-example",
        "init tax --example property_tx",
        "Did you mean `property_tax`?",
        "init tax --example property_tax",
    ),
    (
        "no-quarantine",
        "quarantine customer_totals",
        "Name a fact dataset: counted, orders, visit.",
        "quarantine orders",
    ),
    (
        "no-quarantine",
        "quarantine customer_totals --release",
        "Name a fact dataset: counted, orders, visit.",
        "quarantine orders --release",
    ),
    (
        "unknown-table",
        'query "SELECT * FROM ordrs"',
        "Did you mean `orders`?",
        'query "SELECT * FROM orders"',
    ),
    (
        "unknown-table",
        'query "SELECT * FROM xyz"',
        "orders, orders_facts",
        'query "SELECT * FROM orders_facts"',
    ),
    (
        "unknown-version",
        'query "SELECT * FROM orders" --known-at orders=9',
        "It has 0 to 1: write for example `--known-at orders=1`.",
        'query "SELECT * FROM orders" --known-at orders=1',
    ),
    (
        "bad-known-at",
        'query "SELECT * FROM orders" --known-at orders=one',
        "Write it as `demand=3,property=12`.",
        'query "SELECT * FROM orders" --known-at orders=1,visit=0',
    ),
    (
        "not-a-query",
        'query "DELETE FROM orders"',
        "Begin with SELECT or WITH.",
        'query "SELECT * FROM orders"',
    ),
    (
        "not-a-query",
        'query ""',
        "Begin with SELECT or WITH.",
        'query "WITH a AS (SELECT * FROM orders) SELECT * FROM a"',
    ),
    ("unknown-verb", "stats", "Did you mean `status`?", "status"),
    ("unknown-verb", "xyz", "query", 'query "SELECT 1"'),
    ("bad-sql", 'query "SELECT nope FROM orders"', "Correct the SQL", 'query "SELECT order_id FROM orders"'),
    ("unknown-name", "explain order", "Did you mean `orders`?", "explain orders"),
    ("unknown-name", "run --select xyz", "Known: counted, counted_facts,", "run --select counted_facts"),
    ("call", "plan --selects orders", "`strandline plan --help` shows how it is called.", "plan --help"),
    (
        "call",
        'query "SELECT 1" --fresh --known-at orders=1',
        "Leave one of them out.",
        'query "SELECT 1" --known-at orders=1',
    ),
    (
        "call",
        'query "SELECT 1" --fresh --engine spark',
        "Leave out --engine spark.",
        'query "SELECT 1 FROM orders" --fresh',
    ),
    (
        "filter-unknown",
        "invalidate orders --reason r --where \"upper(customer) = 'A' OR amount > 1\"",
        "Compare columns with values by = <> < <= > >=, BETWEEN, IN, NOT IN, IS NULL or IS NOT NULL, and "
        "join comparisons by AND.",
        "invalidate orders --reason r --where \"customer IN ('A', 'B') AND amount BETWEEN 1 AND 5\"",
    ),
    (
        "filter-unknown",
        "invalidate orders --reason r --row-filter amount",
        'Write it as {"block_number": {"gte": 995, "lte": 1005}}.',
        'invalidate orders --reason r --row-filter \'{"amount": {"gte": 1, "lte": 5}}\'',
    ),
    (
        "filter-unknown",
        'invalidate orders --reason r --row-filter \'{"amount": {"above": 1}}\'',
        'Write {"column": {"gte": 1, "lte": 2}}; the operators are eq, neq, gt,',
        'invalidate orders --reason r --row-filter \'{"amount": {"gt": 1}}\'',
    ),
    (
        "filter-type",
        "invalidate orders --reason r --where \"amount = 'many'\"",
        "Compare it with a number",
        'invalidate orders --reason r --where "amount = 5"',
    ),
    (
        "filter-too-large",
        f'invalidate orders --reason r --where "amount IN ({", ".join(map(str, range(MOST_VALUES + 1)))})"',
        "Name a range instead, or split the call.",
        f'invalidate orders --reason r --where "amount BETWEEN 0 AND {MOST_VALUES}"',
    ),
    (
        "unknown-column",
        'invalidate orders --reason r --where "amout > 1"',
        "Did you mean `amount`?",
        'invalidate orders --reason r --where "amount > 1"',
    ),
    (
        "no-reader",
        'invalidate counted --reason r --where "number > 1"',
        "Invalidate what a job reads; to compute it again itself, use `strandline backfill counted --all`.",
        "backfill counted --all",
    ),
    (
        "no-partitions",
        "invalidate orders --reason r --partition 2024-01-12",
        "Use `--where`.",
        "invalidate orders --reason r --where \"changed_at >= '2024-01-12'\"",
    ),
    (
        "backfill-of-a-source",
        "backfill visits --all",
        "decoded from it: counted, visit.",
        "backfill visit counted --all",
    ),
    (
        "call",
        "backfill orders --partitions 2024-01-12",
        "Name a job with partitions: visit_days.",
        "backfill visit_days --all",
    ),
)


@pytest.mark.parametrize(
    ("slug", "wrong", "remedy", "right"), CALLS, ids=[f"{slug}: {wrong[:40]}" for slug, wrong, *_ in CALLS]
)
def test_a_refused_call_is_done_when_made_as_the_message_says(
    shop: Shop, slug: str, wrong: str, remedy: str, right: str, capsys: pytest.CaptureFixture[str]
) -> None:
    refused, why = ask(shop, capsys, wrong)
    done, output = ask(shop, capsys, right)

    assert not refused
    assert why.rstrip().endswith(f"[{slug}]")
    assert remedy in why
    assert done, output


@pytest.mark.parametrize(
    ("slug", "wrong", "remedy", "right"),
    [
        ("call", "doctor --reason checked", "Use it with `--adopt`.", "doctor --adopt --reason checked"),
        (
            "nothing-to-adopt",
            "doctor --adopt customer_totals",
            "`strandline doctor` shows what there is.",
            "doctor --adopt orders",
        ),
    ],
)
def test_a_refused_call_about_tables_is_done_when_made_as_the_message_says(
    tmp_path: Path, slug: str, wrong: str, remedy: str, right: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = write_lake(tmp_path / "shop")
    write_deltalake(
        str(lake.table("orders")),
        pa.table({"id": pa.array([9], pa.int64()), "name": ["foreign"]}),
        mode="append",
    )

    refused, why = ask(lake, capsys, wrong)
    lake.call("doctor")
    shown = capsys.readouterr().out
    done, output = ask(lake, capsys, right)

    assert not refused
    assert f"[{slug}]" in why
    assert remedy in why
    assert "`orders` has commits that are not Strandline's: version 2" in shown
    assert done, output


def test_a_call_without_a_verb_is_told_the_verbs(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--output", "json"]) == 2
    output = capsys.readouterr().err

    assert "[no-verb]" in output
    for verb in ("check", "status"):
        assert verb in output
        assert main([verb, "--output", "json", "--project", str(shop.folder)]) == 0


def test_what_was_not_known_then_is_known_at_the_instant_that_the_message_tells(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    sql = 'query "SELECT count(*) FROM orders" --output csv --known-at'

    refused, why = ask(shop, capsys, f"{sql} 2001-01-01")
    first = re.search(r"`--known-at (\S+)`", why)
    assert first
    done, output = ask(shop, capsys, f"{sql} {first[1]}")

    assert not refused
    assert "[not-known-then]" in why
    assert done, output
    assert output.split() == ["count(*)", "2"]


def test_of_what_is_not_kept_the_oldest_version_that_the_message_tells_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = write_lake(tmp_path / "shop")
    lake.commit("orders", readable_from=1)

    code = lake.call("query", "SELECT count(*) AS n FROM orders", "--known-at", "orders=0")
    output = capsys.readouterr().err
    oldest = re.search(r"`--known-at (\S+)`", output)
    assert oldest
    again = lake.call(
        "query", "SELECT count(*) AS n FROM orders", "--known-at", oldest[1], "--output", "json"
    )

    assert code == 2
    assert "[not-kept]" in output
    assert again == 0
    assert json.loads(capsys.readouterr().out)["version"] == {"orders": 1}


def test_a_value_that_is_not_one_of_the_key_is_taken_as_query_prints_it(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    refused, why = ask(shop, capsys, "history counted seven")
    _, printed = ask(shop, capsys, 'query "SELECT number FROM counted" --output csv')
    done, output = ask(shop, capsys, f"history counted {printed.split()[1]} --output json")

    assert not refused
    assert "[bad-value]" in why
    assert "Write it as query prints it." in why
    assert done, output
    assert len(json.loads(output)["facts"]) == 1


def test_a_project_is_found_in_its_folder_or_made_by_init(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check"]) == 2
    assert "[project-not-found]" in capsys.readouterr().err

    monkeypatch.chdir(shop.folder)
    in_its_folder = main(["check"])
    (tmp_path / "new").mkdir()
    monkeypatch.chdir(tmp_path / "new")
    made = main(["init"]), main(["check"])

    assert (in_its_folder, made) == (0, (0, 0))


@pytest.mark.parametrize(
    ("slug", "wrong", "remedy", "right"),
    [
        (
            "unknown-partition",
            "cold_blocks --partitions 0-10,10-21",
            "Did you mean `10-20`?",
            "cold_blocks --partitions 0-10,10-20",
        ),
        (
            "no-partitions",
            "heavy --partitions 0-10",
            "Use `--where`, `--stale` or `--all`.",
            "heavy --where 'block_number > 3'",
        ),
        ("no-partitions", "heavy --partitions 0-10", "Use `--where`, `--stale` or `--all`.", "heavy --all"),
        (
            "no-rows-to-filter",
            "blocks --where 'block_number > 3'",
            "Name one job with a key",
            "cold_blocks --where 'block_number > 3'",
        ),
        ("no-rows-to-filter", "blocks --where 'block_number > 3'", "or use `--all`", "blocks --all"),
    ],
)
def test_a_refused_backfill_is_planned_when_asked_for_as_the_message_says(
    slug: str, wrong: str, remedy: str, right: str
) -> None:
    columns = (f"columns {name} block_number:bigint" for name in ("cold_blocks", "heavy"))
    built = ("project chain", "built", "partitions cold_blocks 0-10 10-20", *columns)

    with pytest.raises(CallError) as refused:
        tell((*built, f"ask backfill {wrong}")).plan()
    planned = tell((*built, f"ask backfill {right}")).plan()

    assert refused.value.slug == slug
    assert remedy in refused.value.remedy
    assert planned.tasks


def test_partitions_are_listed_where_the_message_says(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown partition of an input that a job reads by partitions. The job's dataset has them."""
    refused, why = ask(shop, capsys, "invalidate visit --reason r --partition yesterday")
    lists, output = ask(shop, capsys, "status visit_days --output json")
    done, _ = ask(shop, capsys, "invalidate visit --reason r --partition 2024-01-12")

    assert not refused
    assert "[unknown-partition]" in why
    assert "`strandline status visit_days` lists the partitions." in why
    assert lists
    assert "partitions" in json.loads(output)["datasets"][0]
    assert done


def test_a_folder_that_cannot_be_written_is_settled_by_naming_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")

    assert main(["init", str(tmp_path / "file" / "shop")]) == 3
    output = capsys.readouterr().err
    assert main(["init", str(tmp_path / "shop")]) == 0

    assert "Name another folder.  [folder-unwritable]" in output


def test_a_lake_that_cannot_be_used_is_settled_by_the_setting_or_the_variable(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message names both."""
    project = shop.folder / "strandline.yaml"
    text = project.read_text()
    project.write_text(text + "\nsettings: {lake: strandline.yaml/lake}\n")

    refused, why = ask(shop, capsys, "status")
    monkeypatch.setenv("STRANDLINE_LAKE", ".strandline/lake")
    by_variable, _ = ask(shop, capsys, "status")
    monkeypatch.delenv("STRANDLINE_LAKE")
    project.write_text(text + "\nsettings: {lake: .strandline/lake}\n")
    by_setting, output = ask(shop, capsys, 'query "SELECT count(*) FROM orders" --output csv')

    assert not refused
    assert "Correct `settings.lake` (or STRANDLINE_LAKE)" in why
    assert "[lake-unreadable]" in why
    assert (by_variable, by_setting) == (True, True)
    assert output.split() == ["count(*)", "3"]


def move_away_as_told(lake: Written, capsys: pytest.CaptureFixture[str], *options: str) -> None:
    """Move the table away that `doctor` names."""
    lake.call("doctor", *options)
    report = capsys.readouterr().out
    named = re.search(r"move `(.+?)` away and run", report)
    assert named, report
    Path(named[1]).rename(lake.folder / "away")


def test_a_table_whose_log_is_damaged_is_made_again_as_the_doctor_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = write_lake(tmp_path / "shop")
    log = lake.log("customer_totals", 1)
    log.write_bytes(log.read_bytes()[:-40])

    refused, why = ask(lake, capsys, 'query "SELECT * FROM customer_totals"')
    move_away_as_told(lake, capsys)

    assert not refused
    assert "[table-unreadable]" in why
    assert "Run `strandline doctor`" in why
    assert ask(lake, capsys, "status")[0]
    assert ask(lake, capsys, "run")[0]


def test_a_damaged_file_is_settled_as_the_deep_doctor_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = write_lake(tmp_path / "shop")
    (file, *_) = lake.files("customer_totals")
    add_checksum(file)
    flip(file)

    refused, why = ask(lake, capsys, 'query "SELECT * FROM customer_totals"')
    move_away_as_told(lake, capsys, "--deep")

    assert not refused
    assert "[file-damaged]" in why
    assert "Run `strandline doctor --deep`" in why
    assert ask(lake, capsys, "run")[0]


@pytest.mark.parametrize("dataset", ["orders_facts", "order_events"])
def test_what_cannot_be_adopted_is_settled_as_the_message_says(
    tmp_path: Path, dataset: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = write_lake(tmp_path / "shop")
    table = DeltaTable(str(lake.table(dataset)))
    table.delete("id = 1")

    refused, why = ask(lake, capsys, f"doctor --adopt {dataset}")

    assert not refused
    assert "[cannot-adopt]" in why
    if dataset == "order_events":
        assert "Restore the table to version 1, from before someone else wrote it." in why
        table.restore(1)
    else:
        assert "Run `strandline run`: it rebuilds `orders_facts` from its inputs." in why
        assert "orders_facts" in ask(lake, capsys, "plan")[1]
    assert ask(lake, capsys, "run")[0], why
