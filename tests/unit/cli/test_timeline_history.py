"""`history` of a timeline, over tables that delta-rs wrote in the layout of ADR 14."""

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from strandline.model.commits import Operation
from tests.unit.cli.builders import no_spark, printed
from tests.unit.cli.timeline_builder import (
    WEEKDAYS,
    Portfolios,
    at,
    head,
    make_portfolios,
    on,
    row,
    superseded,
    transaction,
)

Output = pytest.CaptureFixture[str]
KEY = ("P1", "AAPL")
VALUED, FOLDED = "daily_position_snapshots", "position_history"
BOUGHT, SOLD = row("P1 AAPL", on(8), 100), row("P1 AAPL", on(10), 60)


@pytest.fixture
def portfolios(tmp_path: Path) -> Portfolios:
    """Two dates with facts, the second with two; valued on three business dates, in epoch 0."""
    portfolios = make_portfolios(tmp_path, valued=WEEKDAYS)
    facts = [
        transaction("t3", "P1 AAPL", on(10), -10, hour=11),
        transaction("t1", "P1 AAPL", on(8), 100),
        transaction("t2", "P1 AAPL", on(10), -30, hour=10),
        transaction("t9", "P1 MSFT", on(9), 5),
        {**transaction("t8", "P1 AAPL", on(9), 7), "_deleted": True},
    ]
    portfolios.commit("transactions", facts)
    portfolios.commit(FOLDED, [BOUGHT, SOLD, head("P1 AAPL", last_on=on(10), watermark_on=on(10))])
    valued = [row("P1 AAPL", on(8), 100), row("P1 AAPL", on(9), 100), row("P1 AAPL", on(10), 60)]
    portfolios.commit(VALUED, [*valued, head("P1 AAPL"), head("P1 MSFT")], as_of=at(10))
    return portfolios


def restate(
    portfolios: Portfolios, *rows: dict[str, Any], epoch: int = 1, cause: str = "new_input", day: int = 11
) -> int:
    """The commit of an epoch: these rows are put aside, and come back with another quantity."""
    dates = ", ".join(f"'{r['date']}'" for r in rows)
    remove = (
        f"portfolio_id = 'P1' AND security_id = 'AAPL' AND (_role = 'head' OR date IN ({dates or 'NULL'}))"
    )
    put = [{**r, "quantity": r["quantity"] + 1, "epoch": epoch} for r in rows]
    left = [superseded(r, epoch, at(day)) for r in rows]
    return portfolios.commit(
        VALUED,
        [*put, *left, head("P1 AAPL", epoch=epoch)],
        as_of=at(day),
        cause=cause,
        remove=f"{remove} AND _role <> 'epoch'",
    )


def read(portfolios: Portfolios, capsys: Output, *key: str, code: int = 0) -> dict[str, Any]:
    capsys.readouterr()
    assert portfolios.call("history", "positions", *(key or KEY), "--output", "json") == code
    answer: dict[str, Any] = printed(capsys)
    return answer


def test_facts_stand_in_folding_order_with_the_fields_after_their_date(
    portfolios: Portfolios, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    with no_spark(monkeypatch):
        answer = read(portfolios, capsys)

    assert answer["schema"] == "strandline/history/v1"
    assert (answer["timeline"], answer["dataset"]) == ("positions", VALUED)
    assert answer["key"] == {"portfolio_id": "P1", "security_id": "AAPL"}
    facts = [(f["date"], f["row"]["transaction_id"], f["fields"]["quantity"]) for f in answer["facts"]]
    assert facts == [
        ("2024-01-08", "t1", "100.0000000000"),
        ("2024-01-10", "t2", "60.0000000000"),
        ("2024-01-10", "t3", "60.0000000000"),
    ]
    assert answer["facts"][0]["row"] == {
        "transaction_id": "t1",
        "portfolio_id": "P1",
        "security_id": "AAPL",
        "transaction_on": "2024-01-08",
        "transaction_at": "2024-01-08T09:00:00.000000Z",
        "amount": "100.0000000000",
    }
    assert answer["epochs"] == []
    assert answer["state"] == {
        "epoch": 0,
        "watermark_on": "2024-01-10",
        "status": "CURRENT",
        "reason": None,
        "updated_at": "2024-01-12T17:00:00.000000Z",
    }


def test_facts_that_tie_are_ordered_by_all_their_columns(portfolios: Portfolios, capsys: Output) -> None:
    tied = [transaction("t5", "P2 AAPL", on(8), amount) for amount in (3, 1, 2)]
    portfolios.commit("transactions", tied)

    facts = read(portfolios, capsys, "P2", "AAPL")["facts"]

    assert [f["row"]["amount"][0] for f in facts] == ["1", "2", "3"]
    assert [f["fields"] for f in facts] == [None] * 3, "no run has folded them"


def test_a_fact_without_a_date_is_counted_and_a_date_without_facts_is_shown(
    portfolios: Portfolios, capsys: Output
) -> None:
    portfolios.commit("transactions", [transaction("t7", "P1 AAPL", None, 1)])
    portfolios.commit(FOLDED, [row("P1 AAPL", on(9), 50)])

    answer = read(portfolios, capsys)

    assert answer["unplaced"] == 1
    assert [(f["date"], f["row"] is None) for f in answer["facts"]][1] == ("2024-01-09", True)
    portfolios.call("history", "positions", *KEY)
    assert "Not folded, because it has no date: 1 fact." in capsys.readouterr().out


def test_an_epoch_tells_when_why_which_dates_and_how_many_rows(
    portfolios: Portfolios, capsys: Output
) -> None:
    portfolios.commit("transactions", [transaction("t4", "P1 AAPL", on(9), 1)])
    portfolios.commit(FOLDED, [head("P1 NVDA")])
    first = restate(portfolios, row("P1 AAPL", on(9), 100), row("P1 AAPL", on(10), 60))
    second = restate(portfolios, row("P1 AAPL", on(10), 61, epoch=1), epoch=2, cause="person", day=12)

    one, two = read(portfolios, capsys)["epochs"]

    assert one.pop("committed_at").endswith("Z")
    assert one == {
        "epoch": 1,
        "at": "2024-01-11T17:00:00.000000Z",
        "table_version": first,
        "cause": "new_input",
        "inputs": {FOLDED: {"after": 0, "upto": 1}},
        "from": "2024-01-09",
        "to": "2024-01-10",
        "rows": 2,
        "rows_now": 1,
    }
    assert (two["table_version"], two["cause"], two["inputs"]) == (second, "person", {})
    assert (two["from"], two["to"], two["rows"], two["rows_now"]) == ("2024-01-10", "2024-01-10", 1, 1)


def test_an_epoch_that_only_put_rows_is_found_by_the_files_of_these(
    portfolios: Portfolios, capsys: Output
) -> None:
    put = [row("P1 AAPL", on(5), 3, epoch=1), head("P1 AAPL", epoch=1)]
    remove = "_role = 'head' AND portfolio_id = 'P1' AND security_id = 'AAPL'"
    version = portfolios.commit(VALUED, put, as_of=at(11), cause="new_input", remove=remove)
    portfolios.commit(VALUED, [row("P1 AAPL", on(12), 3, epoch=1)], as_of=at(12), cause="clock")

    (epoch,) = read(portfolios, capsys)["epochs"]

    assert (epoch["table_version"], epoch["cause"]) == (version, "new_input")
    assert (epoch["at"], epoch["from"], epoch["to"]) == ("2024-01-11T17:00:00.000000Z", *["2024-01-05"] * 2)
    assert (epoch["rows"], epoch["rows_now"]) == (1, 2)


def test_of_two_batches_of_one_run_the_one_with_the_key_counts(
    portfolios: Portfolios, capsys: Output
) -> None:
    other = [superseded(row("P1 MSFT", on(9), 5), 1, at(11)), row("P1 MSFT", on(9), 6, epoch=1)]
    portfolios.commit(VALUED, other, as_of=at(11), cause="new_input")
    version = restate(portfolios, row("P1 AAPL", on(9), 100), cause="schedule")

    (epoch,) = read(portfolios, capsys)["epochs"]

    assert (epoch["table_version"], epoch["cause"]) == (version, "schedule")


def test_an_epoch_whose_commit_is_not_in_the_log_says_so(portfolios: Portfolios, capsys: Output) -> None:
    rows = [superseded(row("P1 AAPL", on(9), 100), 1, at(11)), head("P1 AAPL", epoch=1)]
    remove = "_role = 'head' AND portfolio_id = 'P1' AND security_id = 'AAPL'"
    portfolios.commit(VALUED, rows, as_of=at(11), operation=Operation.COMPACT, remove=remove)

    (epoch,) = read(portfolios, capsys)["epochs"]

    assert (epoch["cause"], epoch["table_version"], epoch["committed_at"]) == (None, None, None)
    assert (epoch["at"], epoch["rows"]) == ("2024-01-11T17:00:00.000000Z", 1)
    portfolios.call("history", "positions", *KEY)
    assert "the log does not tell any more" in capsys.readouterr().out


def test_people_see_facts_fields_and_epochs(portfolios: Portfolios, capsys: Output) -> None:
    portfolios.commit(FOLDED, [head("P1 NVDA")])
    restate(portfolios, row("P1 AAPL", on(9), 100), row("P1 AAPL", on(10), 60))
    capsys.readouterr()

    assert portfolios.call("history", "positions", *KEY) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (
        "positions portfolio_id = P1, security_id = AAPL: CURRENT, complete up to 2024-01-11, epoch 1."
    )
    assert lines[2] == "3 facts of `transactions` in folding order, with the fields after each date:"
    assert lines[4].split() == [
        *("date", "transaction_id", "transaction_at", "amount"),
        *("quantity", "after", "cost_basis", "after", "realised", "after"),
    ]
    assert lines[6].split()[:2] == ["2024-01-08", "t1"]
    assert "100.0000000000  " in lines[6]
    assert lines[7].split()[-1] == "-30.0000000000", "fields stand beside the last fact of a date"
    assert "60.0000000000" in lines[8]
    assert lines[-5] == "1 epoch of it in `daily_position_snapshots`:"
    assert "new rows: position_history  2024-01-09  2024-01-10     2         2" in lines[-1]


def test_a_failed_key_says_why_and_what_is_not_folded(portfolios: Portfolios, capsys: Output) -> None:
    portfolios.commit("transactions", [transaction("t6", "P1 NVDA", on(9), 1)])
    reason = "ValueError: oversold"
    portfolios.commit(VALUED, [head("P1 NVDA", "FAILED", reason=reason)], as_of=at(12))
    capsys.readouterr()

    portfolios.call("history", "positions", "P1", "NVDA")

    out = capsys.readouterr().out
    assert out.startswith(f"positions portfolio_id = P1, security_id = NVDA: FAILED, epoch 0: {reason}.")
    assert "2024-01-09  not folded" in out
    assert "was ever restated" in out


def test_a_key_that_lost_its_facts_is_known_and_a_strange_one_is_not(
    portfolios: Portfolios, capsys: Output
) -> None:
    portfolios.commit(VALUED, [head("P9 LOST", epoch=0)], as_of=at(12))

    assert read(portfolios, capsys, "P9", "LOST")["facts"] == []
    strange = read(portfolios, capsys, "P9", "STRANGE", code=1)
    assert (strange["facts"], strange["state"], strange["epochs"]) == ([], None, [])
    portfolios.call("history", "positions", "P9", "STRANGE")
    assert "There is no fact about portfolio_id = P9, security_id = STRANGE" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["positions", FOLDED, VALUED])
def test_an_output_means_its_timeline(portfolios: Portfolios, name: str, capsys: Output) -> None:
    capsys.readouterr()

    assert portfolios.call("history", name, *KEY, "--output", "json") == 0
    assert len(printed(capsys)["facts"]) == 3


def test_a_timeline_without_a_valuation_has_the_epochs_of_its_history(tmp_path: Path, capsys: Output) -> None:
    portfolios = make_portfolios(tmp_path, valued="")
    portfolios.commit("transactions", [transaction("t1", "P1 AAPL", on(8), 1)])
    portfolios.commit(
        FOLDED, [BOUGHT, superseded(BOUGHT, 1, at(12)), head("P1 AAPL", epoch=1, watermark_on=on(8))]
    )

    answer = read(portfolios, capsys)

    assert (answer["dataset"], answer["state"]["watermark_on"]) == (FOLDED, "2024-01-08")
    assert [(e["epoch"], e["rows"]) for e in answer["epochs"]] == [(1, 1)]


def test_before_the_valuation_is_built_the_facts_are_shown(tmp_path: Path, capsys: Output) -> None:
    portfolios = make_portfolios(tmp_path)
    portfolios.commit("transactions", [transaction("t1", "P1 AAPL", on(8), 1)])

    assert portfolios.call("history", "positions", *KEY) == 2
    assert "`position_history` has never been built." in capsys.readouterr().err

    portfolios.commit(FOLDED, [BOUGHT])

    assert read(portfolios, capsys)["state"] is None
    portfolios.call("history", "positions", *KEY)
    assert "not in `daily_position_snapshots` yet" in capsys.readouterr().out


def test_a_wrong_key_says_what_it_is(portfolios: Portfolios, capsys: Output) -> None:
    assert portfolios.call("history", "positions", "P1") == 2
    assert "history positions PORTFOLIO_ID SECURITY_ID" in capsys.readouterr().err


def test_csv_lists_the_facts(portfolios: Portfolios, capsys: Output) -> None:
    capsys.readouterr()

    portfolios.call("history", "positions", *KEY, "--output", "csv")

    assert capsys.readouterr().out.splitlines()[0] == "date,row,fields"


def test_rows_that_a_deletion_vector_hides_are_not_counted(portfolios: Portfolios, capsys: Output) -> None:
    restate(portfolios, row("P1 AAPL", on(9), 100))
    DeltaTable(portfolios.table(VALUED)).delete("date = '2024-01-09' AND _role = 'row'")

    (epoch,) = read(portfolios, capsys)["epochs"]

    assert (epoch["rows"], epoch["rows_now"]) == (1, 0)
