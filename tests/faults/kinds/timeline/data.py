"""What is sent about trades, and the timeline over them.

The declaration is given twice: as a piece of the project file, and as the model of timelines takes it.
"""

from datetime import date, timedelta
from textwrap import indent
from typing import TYPE_CHECKING, Any

from tests.faults.kinds.kind import Stream, Switches
from tests.property.timeline_world import Declaration, Reference, Values, fold

if TYPE_CHECKING:
    from tests.faults.world import World

HISTORY, DAILY = "stock_history", "stock_daily"
"""The outputs of the timeline: what is folded, and what is valued."""
KEY = ("portfolio", "security")
FIELDS = ("quantity", "book")
_FIRST_DAY = date(2023, 12, 26)

TRADES = Stream(
    folder="trades",
    source="fills",
    dataset="trade",
    columns={
        "trade": "string",
        "portfolio": "string",
        "security": "string",
        "traded_on": "date",
        "amount": "bigint",
        "at": "bigint",
        "op": "string",
    },
    required=("trade", "portfolio", "security", "amount", "at"),
    declared="""require: [portfolio, security, amount, at]
record_set: {key: [trade], order_by: [at], deleted: "op = 'D'"}""",
    key=("trade",),
)

FOLD = """\
def fold(state, facts):
    quantity, carry = (0, 0) if state is None else (state["quantity"], state["carry"])
    book = "xy"[carry % 2]
    for fact in facts:
        quantity += fact["amount"]
        carry = (2 * carry + fact["amount"]) % 3
    if quantity < 0:
        raise ValueError(f"{-quantity} sold that are not there")
    return {"quantity": quantity, "book": book, "carry": carry}
"""
"""The fold of the model, as users write it."""

_TIMELINE = """
stock:
  key: [portfolio, security]
  facts: trade
  date: traded_on
  order_by: [at, trade]
  fold: folds.py:fold
  fields: {quantity: bigint, book: string}
  output_dataset: stock_history
  together: [portfolio]
"""
_VALUATION = """
valuation:
  output_dataset: stock_daily
  calendar: {dataset: mark, date: business_on}
  due_at: "12:00"
  references:
    price: {dataset: mark, on: {what: security}, date: marked_on}
    rent: {dataset: mark, on: {what: book}, date: marked_on, required: true}
    issue: {dataset: trade, on: {trade: security}}
  columns:
    worth: quantity * price.value * rent.value * SCALE
    fresh: price.marked_on = date
    issued: issue.amount
  where: quantity <> 0
"""


def declare(switches: Switches) -> dict[str, str]:
    valuation = _VALUATION.replace("SCALE", str(switches["scale"]))
    return {"timelines": _TIMELINE + indent(valuation, "  ")}


def make_declaration(scale: int) -> Declaration:
    """The same for the model of timelines."""

    def columns(names: Values) -> Values:
        factors = (names["quantity"], names["price.value"], names["rent.value"], scale)
        fresh = None if names["price.on"] is None else names["price.on"] == names["date"]
        return {"worth": _multiply(*factors), "fresh": fresh, "issued": names["issue.amount"]}

    return Declaration(
        fold=fold,
        fields=FIELDS,
        references=(
            Reference(name="price", on=("security",), dated=True, columns=("value",)),
            Reference(name="rent", on=("book",), dated=True, required=True, columns=("value",)),
            Reference(name="issue", on=("security",), dated=False, columns=("amount",)),
        ),
        columns=columns,
        where=lambda names: names["quantity"] != 0,
        together=True,
    )


def _multiply(*factors: int | None) -> int | None:
    product = 1
    for factor in factors:
        if factor is None:
            return None
        product *= factor
    return product


def day(number: int) -> str:
    """Dates around the first run: 4 and 5 are a weekend, 6 and later are not due yet."""
    return (_FIRST_DAY + timedelta(days=number)).isoformat()


def trade(
    name: str, at: int, portfolio: str, security: str, on: int | None, amount: int, **more: Any
) -> dict[str, Any]:
    traded_on = None if on is None else day(on)
    return {
        "trade": name,
        "at": at,
        "portfolio": portfolio,
        "security": security,
        "traded_on": traded_on,
        "amount": amount,
        **more,
    }


def begin(world: "World") -> None:
    world.send(
        TRADES,
        trade("t1", 1, "P", "a", 0, 5),
        trade("t2", 1, "P", "b", 1, 3),
        trade("t3", 1, "Q", "a", 0, 2),
        trade("t4", 1, "R", "a", 1, 4),
        "broken",
    )


def ground(world: "World") -> None:
    """A back-dated trade, a later one, one of a new key, and one that moves."""
    world.send(
        TRADES,
        trade("t5", 2, "Q", "a", 2, 1),
        trade("t6", 2, "R", "b", 1, 2),
        trade("a", 2, "R", "a", 3, 1),
        trade("t4", 2, "R", "a", 2, 4),
    )
