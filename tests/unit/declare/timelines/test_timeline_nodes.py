"""What a valid timeline gives: two nodes, their columns, inputs, traits and configurations."""

from datetime import timedelta
from pathlib import Path

import pytest

from strandline.model.columns import ColumnType, TypeName
from strandline.model.hashing import compare_configs
from strandline.model.node import By, Input, Matched, Node
from strandline.model.timeline import (
    BusinessDates,
    Field,
    FoldCode,
    Match,
    Reference,
    Timeline,
    Valuation,
)
from strandline.model.traits import OnClock, Writing
from tests.unit.declare.builders import load
from tests.unit.declare.timelines.builders import BASE, FILES, FOLD, FOLDED, PROJECT, edited

AMOUNT = ColumnType(name=TypeName.DECIMAL, precision=28, scale=10)
HISTORY, SNAPSHOTS = "position_history", "daily_position_snapshots"
KEY = ("portfolio_id", "security_id")


def node_of(folder: Path, name: str, *edits: tuple[str, str], more: str = "") -> Node:
    return load(folder, edited(PROJECT, *edits) + more, FILES).get(name)


def timeline_of(folder: Path, *edits: tuple[str, str], more: str = "") -> Timeline:
    definition = node_of(folder, HISTORY, *edits, more=more).definition
    assert isinstance(definition, Timeline)
    return definition


def valuation_of(folder: Path, *edits: tuple[str, str], more: str = "") -> Valuation:
    definition = node_of(folder, SNAPSHOTS, *edits, more=more).definition
    assert isinstance(definition, Valuation)
    return definition


def test_the_example_of_the_language_gives_the_fold_and_its_valuation(tmp_path: Path) -> None:
    project = load(tmp_path, PROJECT, FILES)

    assert [node.name for node in project.nodes[-2:]] == [HISTORY, SNAPSHOTS]
    assert project.names["positions"] == (HISTORY, SNAPSHOTS)
    assert (project.names[HISTORY], project.names[SNAPSHOTS]) == ((HISTORY,), (SNAPSHOTS,))
    assert (project.tables[HISTORY], project.tables[SNAPSHOTS]) == (HISTORY, SNAPSHOTS)
    assert project.declared["timeline"] == 1


def test_the_fold_is_taken_as_declared(tmp_path: Path) -> None:
    timeline = timeline_of(tmp_path)

    assert (timeline.name, timeline.output, timeline.facts) == ("positions", HISTORY, "transactions")
    assert (timeline.key, timeline.date, timeline.row_key) == (KEY, "transaction_on", (*KEY, "date"))
    assert timeline.order_by == ("transaction_at", "transaction_id")
    assert timeline.together == ("portfolio_id",)
    assert timeline.fold == FoldCode(file="folds.py", function="fifo", code=FOLD)
    assert timeline.fields == tuple(
        Field(name=name, type=AMOUNT) for name in ("quantity", "cost_basis", "realised")
    )


def test_the_valuation_is_taken_as_declared(tmp_path: Path) -> None:
    valuation = valuation_of(tmp_path)

    assert valuation.timeline == timeline_of(tmp_path)
    assert valuation.calendar == BusinessDates(
        dataset="business_dates",
        column="business_on",
        due_at=timedelta(hours=18),
        timezone="Europe/Berlin",
    )
    assert [column.name for column in valuation.columns] == ["market_value", "valuation_status"]
    assert valuation.columns[0].sql == "quantity * price.price * fx.rate"
    assert valuation.where == "quantity <> 0"
    assert valuation.references == (
        Reference(
            name="security",
            dataset="securities",
            on=(Match(theirs="security_id", ours="security_id"),),
            columns=("currency",),
        ),
        Reference(
            name="price",
            dataset="market_prices",
            on=(Match(theirs="security_id", ours="security_id"),),
            date="price_on",
            columns=("price", "price_on"),
        ),
        Reference(
            name="fx",
            dataset="fx_rates",
            on=(Match(theirs="currency", reference="security", ours="currency"),),
            date="rate_on",
            required=True,
            columns=("rate",),
        ),
    )


def test_both_outputs_have_their_columns_in_the_order_of_the_language(tmp_path: Path) -> None:
    project = load(tmp_path, PROJECT, FILES)

    fields = ("quantity", "cost_basis", "realised")
    assert project.get(HISTORY).columns == (*KEY, "date", *fields, "epoch")
    valued = ("market_value", "valuation_status")
    assert project.get(SNAPSHOTS).columns == (*KEY, "date", *fields, *valued, "epoch")


def test_each_dataset_is_one_input_and_no_change_of_one_widens_to_everything(tmp_path: Path) -> None:
    again = (
        "      columns:\n        market",
        "        other:    {dataset: market_prices, on: {security_id: "
        "security_id}, date: price_on}\n      columns:\n        rank: other.priced_at\n        market",
    )

    folded, valued = node_of(tmp_path, HISTORY).inputs, node_of(tmp_path, SNAPSHOTS, again).inputs

    assert folded == (Input(name="transactions", dataset="transactions", relation=By(columns=KEY)),)
    assert valued == (
        Input(name=HISTORY, dataset=HISTORY, relation=By(columns=KEY)),
        Input(
            name="business_dates",
            dataset="business_dates",
            relation=Matched(columns=("business_on",)),
            reads=frozenset({"business_on"}),
        ),
        Input(
            name="securities",
            dataset="securities",
            relation=Matched(columns=("security_id",)),
            reads=frozenset({"security_id", "currency"}),
        ),
        Input(
            name="market_prices",
            dataset="market_prices",
            relation=Matched(columns=("security_id",)),
            reads=frozenset({"security_id", "price_on", "price", "priced_at"}),
        ),
        Input(
            name="fx_rates",
            dataset="fx_rates",
            relation=Matched(columns=("currency",)),
            reads=frozenset({"currency", "rate_on", "rate"}),
        ),
    )


def test_a_history_that_its_own_valuation_looks_up_is_one_input(tmp_path: Path) -> None:
    own = (
        "      columns:\n        market",
        "        first: {dataset: position_history, on: [portfolio_id, security_id], date: date}\n"
        "      columns:\n        cost_before: first.cost_basis\n        market",
    )

    inputs = node_of(tmp_path, SNAPSHOTS, own).inputs

    assert [i.dataset for i in inputs].count(HISTORY) == 1
    assert inputs[0].relation == By(columns=KEY)


def test_traits_say_how_both_are_kept(tmp_path: Path) -> None:
    project = load(tmp_path, PROJECT, FILES)

    for node in (project.get(HISTORY), project.get(SNAPSHOTS)):
        traits = node.traits
        assert traits.key == (*KEY, "date")
        assert (traits.writing, traits.drawn_under) == (Writing.REPLACES, "timelines")
        assert traits.partitioned
        assert traits.keeps_deleted
        assert traits.answers_invalidations
        assert traits.runs_code
        assert not traits.range_column
    clocks = [(n.traits.clock, n.traits.business_dates) for n in project.nodes[-2:]]
    assert clocks == [(OnClock.NOTHING, None), (OnClock.SCOPE, valuation_of(tmp_path).calendar)]


def test_names_and_words_are_taken_in_lower_case(tmp_path: Path) -> None:
    timeline = timeline_of(
        tmp_path,
        ("key: [portfolio_id, security_id]", "key: [Portfolio_Id, SECURITY_ID]"),
        ("date: transaction_on", "date: Transaction_On"),
        ("{quantity:", "{Quantity:"),
        ("together: [portfolio_id]", "together: [PORTFOLIO_ID]"),
    )
    valuation = valuation_of(
        tmp_path,
        ("on: {currency: security.currency}", "on: {Currency: Security.Currency}"),
        ("quantity * price.price * fx.rate", "QUANTITY * Price.PRICE * fx.rate"),
        ("        security: {", "        Security: {"),
    )

    assert timeline == timeline_of(tmp_path)
    assert valuation.references == valuation_of(tmp_path).references


def test_a_timeline_without_a_valuation_has_one_output_which_may_have_its_name(tmp_path: Path) -> None:
    yaml = edited(BASE + FOLDED, ("output_dataset: position_history", "output_dataset: positions"))

    project = load(tmp_path, yaml, FILES)

    assert project.names["positions"] == ("positions",)
    assert isinstance(project.get("positions").definition, Timeline)


def test_weekdays_need_no_dataset_and_are_due_at_midnight(tmp_path: Path) -> None:
    valuation = valuation_of(
        tmp_path,
        ("{dataset: business_dates, date: business_on}", "weekdays"),
        ('      due_at: "18:00"\n', ""),
    )

    assert valuation.calendar == BusinessDates(timezone="Europe/Berlin")


def test_an_event_stream_is_read_as_its_facts(tmp_path: Path) -> None:
    stream = (
        "    record_set: {key: [transaction_id], order_by: [transaction_at]}",
        "    event_stream: {identity: [transaction_id]}",
    )

    node = node_of(tmp_path, HISTORY, stream)

    assert timeline_of(tmp_path, stream).facts == "transactions_facts"
    assert (node.inputs[0].name, node.inputs[0].dataset) == ("transactions", "transactions_facts")


def test_only_what_a_source_wrote_has_a_position_to_order_by(tmp_path: Path) -> None:
    edit = ("[transaction_at, transaction_id]", "[transaction_at, _source_position]")

    assert timeline_of(tmp_path, edit).order_by == ("transaction_at", "_source_position")


JOBS = """\
jobs:
  - name: totals
    input_datasets: [daily_position_snapshots]
    output_dataset: portfolio_totals
    incremental: {mode: keyed, key: [portfolio_id, date]}
    sql: select portfolio_id, date, sum(market_value) as value from daily_position_snapshots group by 1, 2
  - name: dated
    input_datasets: [transactions]
    output_dataset: dated_transactions
    incremental: {mode: keyed, key: [transaction_id]}
    sql: select *, local_date(transaction_at) as day from transactions
  - name: highs
    input_datasets: [position_history]
    output_dataset: highs
    incremental: {mode: keyed, key: [portfolio_id, security_id]}
    sql: select portfolio_id, security_id, max(quantity) as most from position_history group by 1, 2
"""


def test_jobs_and_timelines_read_each_other_in_one_order(tmp_path: Path) -> None:
    edits = (
        ("facts: transactions", "facts: dated_transactions"),
        ("date: transaction_on", "date: day"),
        (
            "      columns:\n        market",
            "        high: {dataset: highs, on: [portfolio_id, security_id]}\n"
            "      columns:\n        most: high.most\n        market",
        ),
    )

    project = load(tmp_path, edited(PROJECT, *edits) + JOBS, FILES)

    order = [node.name for node in project.nodes[-5:]]
    assert order == ["dated_transactions", HISTORY, "highs", SNAPSHOTS, "portfolio_totals"]
    by = {i.relation for i in project.get("portfolio_totals").inputs if i.proved}
    assert by == {By(columns=("portfolio_id", "date"))}


@pytest.mark.parametrize(
    ("edit", "history", "snapshots"),
    [
        (("key: [portfolio_id, security_id]", "key: [security_id, portfolio_id]"), {"key"}, {"key"}),
        (("date: transaction_on", "date: paid_on"), {"date"}, set()),
        (("[transaction_at, transaction_id]", "[transaction_id]"), {"order_by"}, set()),
        (("folds.py:fifo", "folds.py:average"), {"function"}, set()),
        (("folds.py:fifo", "others.py:fifo"), {"fold"}, set()),
        (("folds.py:fifo", "importing.py:fifo"), {"fold", "modules"}, set()),
        (("realised: ", "gained: "), {"fields"}, {"fields"}),
        (("    together: [portfolio_id]\n", ""), {"together"}, {"together"}),
        (("{dataset: business_dates, date: business_on}", "weekdays"), set(), {"business_dates"}),
        (('due_at: "18:00"', 'due_at: "18:01"'), set(), {"due_at"}),
        ((", required: true", ""), set(), {"references"}),
        (("quantity * price.price", "price.price * quantity"), set(), {"columns"}),
        (("quantity <> 0", "quantity > 0"), set(), {"where"}),
        (("timezone: Europe/Berlin", "timezone: Europe/Paris"), set(), {"timezone"}),
        (("quantity <> 0", "Quantity <> 0 -- none"), set(), {"where"}),
        (("CASE WHEN", "case  when"), set(), set()),
    ],
)
def test_every_change_of_the_declaration_or_the_code_freezes(
    edit: tuple[str, str], history: set[str], snapshots: set[str], tmp_path: Path
) -> None:
    base = edited(
        PROJECT, ("transaction_on: {", "paid_on: {path: paid, type: date}\n      transaction_on: {")
    )
    files = {
        "folds.py": FOLD + "\n\ndef average(state, facts):\n    return state\n",
        "others.py": FOLD,
        "importing.py": f"import others\n\n{FOLD}",
    }
    before, after = load(tmp_path, base, files), load(tmp_path, edited(base, edit), files)

    for name, parts in ((HISTORY, history), (SNAPSHOTS, snapshots)):
        changed, freezes = compare_configs(before.get(name).config.parts, after.get(name).config)
        assert set(changed) == parts
        assert freezes == bool(parts)
