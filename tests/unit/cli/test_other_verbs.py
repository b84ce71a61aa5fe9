"""`init`, `check`, `status`, `explain`, `quarantine`, `doctor` and `verify`, where they do not need Spark."""

from pathlib import Path

import pyarrow as pa
import pytest

from strandline.cli import main
from strandline.cli.verify import parse_percent, render_verified
from strandline.model.errors import CallError
from strandline.model.verified import VerifiedDataset, VerifyOutcome
from strandline.spark import jars
from tests.unit.cli.builders import INSTANT, POSITION, at, make_shop, no_spark, order, printed

QUARANTINE = pa.schema(
    [
        ("slug", pa.string()),
        ("reason", pa.string()),
        ("payload", pa.string()),
        ("_source_position", POSITION),
        ("_ingested_at", INSTANT),
    ]
)


def test_init_writes_a_project_that_is_right_and_touches_nothing_that_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "My shop-2"

    made = main(["init", str(folder)])
    checked = main(["check", "--project", str(folder)])
    again = main(["init", str(folder)])

    output = capsys.readouterr()
    assert (made, checked, again) == (0, 0, 2)
    assert "`my_shop_2` is valid: 1 source, 1 fact dataset, 1 job." in output.out
    assert "[already-there]" in output.err


def test_init_copies_an_example_without_what_running_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = main(["init", str(tmp_path / "tax"), "--example", "property_tax"])
    unknown = main(["init", str(tmp_path / "other"), "--example", "property_tx"])

    assert (made, unknown) == (0, 2)
    assert (tmp_path / "tax" / "strandline.yaml").is_file()
    assert not (tmp_path / "tax" / "data").exists()
    assert "Did you mean `property_tax`?" in capsys.readouterr().err


def test_check_reports_every_mistake_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = make_shop(tmp_path)
    file = tmp_path / "strandline.yaml"
    file.write_text(
        file.read_text()
        .replace("timezone: UTC", "timezone: Mars/Base")
        .replace("from: order_events", "from: order_event")
    )

    code = shop.call("check", "--output", "json")

    output = capsys.readouterr()
    assert code == 2
    assert output.out.count('"slug"') >= 2
    assert "strandline.yaml:2" in output.err
    assert "strandline.yaml:9" in output.err


def test_check_counts_what_was_declared(capsys: pytest.CaptureFixture[str]) -> None:
    """The datasets that follow a chain are not jobs of the project."""
    code = main(["check", "--project", str(Path(__file__).parents[3] / "examples" / "chain")])

    assert code == 0
    assert capsys.readouterr().out == "`chain` is valid: 4 sources, 4 fact datasets, 1 chain, 5 jobs.\n"


def test_status_of_a_new_project_says_that_nothing_was_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = make_shop(tmp_path)

    with no_spark(monkeypatch):
        code = shop.call("status", "orders", "--output", "json")

    datasets = printed(capsys)["datasets"]
    assert code == 0
    assert [d["dataset"] for d in datasets] == ["orders_facts", "orders_quarantine", "orders"]
    assert datasets[2] | {"reason": ""} == {
        "dataset": "orders",
        "kind": "snapshot",
        "state": "never built",
        "since": None,
        "table_version": None,
        "rows": 0,
        "counts": {},
        "reason": "",
        "held_by": [],
    }


def test_explain_tells_what_a_change_leads_to_and_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = make_shop(tmp_path)

    code = shop.call("explain", "customer_totals", "--output", "json")

    node = printed(capsys)["nodes"][0]
    assert code == 0
    assert [(i["name"], i["relation"], i["strategy"]) for i in node["inputs"]] == [
        ("orders", "by", "recompute")
    ]
    assert "proved from the SQL" in node["inputs"][0]["why"]
    assert node["next"]["cause"] == "new_node"


def test_quarantine_lists_what_was_refused_in_the_order_it_came(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = make_shop(tmp_path)
    rows = [
        {
            "slug": "not-json",
            "reason": "No.",
            "payload": f"line {n}",
            "_source_position": {"name": "a", "part": 0, "place": n},
            "_ingested_at": at(9),
        }
        for n in (10, 9)
    ]
    shop.write("orders_quarantine", rows, QUARANTINE)

    code = shop.call("quarantine", "orders", "--output", "json")

    listed = printed(capsys)["rows"]
    assert code == 0
    assert [row["payload"] for row in listed] == ["line 9", "line 10"]
    assert listed[0] == {
        "source_position": ["a", 0, 9],
        "reason": "No.",
        "slug": "not-json",
        "payload": "line 9",
        "ingested_at": "2024-01-12T09:00:00.000000Z",
    }


def test_quarantine_counts_by_reason_with_three_examples_each_and_lists_as_many_as_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = make_shop(tmp_path)
    refused = [("misfit", n) for n in range(1, 41)] + [("null-key", n) for n in range(41, 46)]
    rows = [
        {
            "slug": slug,
            "reason": f"Row {n} is {slug}.",
            "payload": "x" * 1000 if n == 1 else f"line {n}",
            "_source_position": {"name": "a", "part": 0, "place": n},
            "_ingested_at": at(9),
        }
        for slug, n in reversed(refused)
    ]
    shop.write("orders_quarantine", rows, QUARANTINE)

    with no_spark(monkeypatch):
        shop.call("quarantine", "orders", "--limit", "2", "--output", "json")
        document = printed(capsys)
        shop.call("quarantine", "orders")
        text = capsys.readouterr().out
        shop.call("quarantine", "orders", "--output", "json")
        whole = printed(capsys)
        code = shop.call("quarantine", "orders", "--limit", "few")

    assert document["counts"] == {"misfit": 40, "null-key": 5}
    assert document["total"] == 45
    assert {
        slug: [row["source_position"][2] for row in rows] for slug, rows in document["examples"].items()
    } == {
        "misfit": [1, 2, 3],
        "null-key": [41, 42, 43],
    }
    assert [row["source_position"][2] for row in document["rows"]] == [1, 2]
    assert len(whole["rows"]) == 45
    assert text.startswith(
        "45 rows of orders in quarantine, for 2 reasons:\n\nmisfit: 40 rows (89 %)\n  a:1  Row 1 is misfit.\n"
    )
    assert "20 of 45 rows are listed; `--limit N` lists N." in text
    assert max(len(line) for line in text.split("null-key: 5 rows")[0].splitlines()) < 300
    assert code == 2
    assert "`few` is not a whole number" in capsys.readouterr().err


def test_an_empty_quarantine_is_no_error_and_a_job_has_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = make_shop(tmp_path)

    assert shop.call("quarantine", "orders") == 0
    assert shop.call("quarantine", "customer_totals") == 2
    assert "[no-quarantine]" in capsys.readouterr().err


def test_doctor_ends_with_1_when_something_needs_action(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = make_shop(tmp_path)
    monkeypatch.setenv("STRANDLINE_JARS", str(tmp_path / "none"))

    code = shop.call("doctor", "--output", "json")

    findings = {f["check"]: f for f in printed(capsys)["findings"]}
    assert code == 1
    assert findings["jars"]["result"] == "wrong"
    assert findings["jars"]["remedy"]
    assert findings["catalog"]["result"] == "ok"


def test_doctor_finds_commits_that_are_not_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = make_shop(tmp_path)
    monkeypatch.setattr("strandline.app.doctor.find_jars", lambda: jars.JARS)
    shop.write("orders", [order("A-1", "100.00", 11, 4)])

    code = shop.call("doctor")

    assert code == 1
    assert "`orders` has commits that are not Strandline's: version 0" in capsys.readouterr().out


def test_a_verification_for_people_shows_what_differs() -> None:
    equal = VerifiedDataset(
        dataset="a", result="equal", equal=True, compared_rows=1200, input_versions={"x": 3}, as_of=""
    )
    different = VerifiedDataset(
        dataset="b",
        result="different",
        equal=False,
        compared_rows=5,
        differing_rows=1,
        input_versions={},
        as_of="",
        examples=({"id": 7},),
    )

    text = render_verified(VerifyOutcome(datasets=(equal, different)))

    assert '  {"id": 7}' in text.splitlines()
    assert text.splitlines()[-1] == "2 datasets, 1,205 rows compared: 1 equal, 1 different."


def test_a_share_is_a_percentage() -> None:
    assert parse_percent("5%") == parse_percent(" 5 ") == 5.0
    for wrong in ("0%", "101%", "x", "nan%"):
        with pytest.raises(CallError):
            parse_percent(wrong)


@pytest.mark.parametrize("scope", [("--where", ""), ("--where", " "), ("--partitions", " , ")])
def test_a_backfill_of_an_empty_scope_is_not_one_of_everything(
    scope: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_shop(tmp_path)

    code = main(["backfill", "customer_totals", *scope, "--project", str(tmp_path)])

    assert code == 2
    assert "`--all` means" in capsys.readouterr().err
