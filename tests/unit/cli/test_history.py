"""`history` over tables that delta-rs wrote."""

from pathlib import Path

import pytest

from strandline.cli import main
from tests.unit.cli.builders import Shop, make_shop, order, printed
from tests.unit.declare.entities.builders import PROJECT

FIRST, CORRECTED, LATE = (
    order("A-1", "120.00", 9, 1),
    order("A-1", "100.00", 11, 4),
    order("A-1", "99.00", 8, 1, file="b.jsonl"),
)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    shop = make_shop(tmp_path)
    shop.write("orders_facts", [FIRST, CORRECTED, order("B-1", "80.00", 10, 3)])
    shop.write("orders_facts", [LATE])
    shop.write("orders", [CORRECTED])
    return shop


def test_facts_stand_lowest_rank_first_with_the_version_that_brought_them(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    code = shop.call("history", "orders", "A-1", "--output", "json")

    facts = printed(capsys)["facts"]
    assert code == 0
    assert [(f["row"]["amount"], f["table_version"], f["won"]) for f in facts] == [
        ("99.00", 1, False),
        ("120.00", 0, False),
        ("100.00", 0, True),
    ]
    assert facts[2] == {
        "source_at": "2024-01-12T11:00:00.000000Z",
        "source_ts": 1705057200000000,
        "ingested_at": "2024-01-20T00:00:00.000000Z",
        "source_position": ["a.jsonl", 0, 4],
        "table_version": 0,
        "deleted": False,
        "won": True,
        "row": {
            "order_id": "A-1",
            "customer": "Asha",
            "amount": "100.00",
            "status": "PLACED",
            "changed_at": "2024-01-12T11:00:00.000000Z",
        },
    }


def test_the_winner_of_a_tie_stands_last(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    tied = [order("C-1", "1.00", 9, place) for place in (7, 8)]
    shop.write("orders_facts", tied)
    shop.write("orders", [tied[0]])

    shop.call("history", "orders", "C-1", "--output", "json")

    assert [(f["source_position"][2], f["won"]) for f in printed(capsys)["facts"]] == [(8, False), (7, True)]


def test_a_deleting_fact_can_win(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    cancelled = order("B-1", "80.00", 12, 9, status="CANCELLED")
    shop.write("orders_facts", [cancelled])
    shop.write("orders", [cancelled])

    shop.call("history", "orders", "B-1", "--output", "json")

    assert [(f["deleted"], f["won"]) for f in printed(capsys)["facts"]] == [(False, False), (True, True)]


def test_people_see_what_differs_and_what_is_the_same(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.call("history", "orders_facts", "A-1")

    output = capsys.readouterr().out
    assert output.splitlines()[0] == "3 facts about orders order_id = A-1, lowest rank first:"
    assert output.splitlines()[-3].startswith("won  2024-01-12 11:00:00")
    assert "The same in all: customer = Asha, status = PLACED." in output


def test_an_unknown_key_has_no_facts_and_ends_with_1(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    code = shop.call("history", "orders", "Z-9", "--output", "json")

    output = capsys.readouterr()
    assert code == 1
    assert '"facts": []' in output.out
    assert "no fact" in output.err


@pytest.mark.parametrize(
    ("words", "slug"),
    [
        (["orders", "A-1", "more"], "[wrong-key]"),
        (["customer_totals", "Asha"], "[no-facts]"),
        (["nope", "x"], "[unknown-name]"),
    ],
)
def test_a_wrong_call_says_what_the_key_is(
    shop: Shop, words: list[str], slug: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shop.call("history", *words) == 2
    assert slug in capsys.readouterr().err


def test_an_entity_has_no_facts_and_names_the_datasets_that_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "strandline.yaml").write_text(PROJECT)

    assert main(["history", "workspace", "w1", "--project", str(tmp_path)]) == 2

    told = capsys.readouterr().err
    assert "`workspace` is not decoded from a source, so there are no facts about its keys." in told
    assert "with a key of that: app_sources, app_tracks, contracts.  [no-facts]" in told


def test_a_dataset_without_facts_yet_was_never_built(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert make_shop(tmp_path).call("history", "orders", "A-1") == 2
    assert "[never-built]" in capsys.readouterr().err


def test_a_key_that_was_declared_after_the_table_was_written_is_refused(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    file = shop.folder / "strandline.yaml"
    file.write_text(file.read_text().replace("order_id", "number"))

    code = shop.call("history", "orders", "A-1")

    assert code == 2
    assert "no column `number`" in (told := capsys.readouterr().err)
    assert "[not-built]" in told
