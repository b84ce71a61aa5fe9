"""How transactions make a position: what was bought first is sold first (FIFO)."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

NOTHING = Decimal(0)


def fifo(state: dict[str, Any] | None, facts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The position after the transactions of one more date.

    `lots` are the purchases that are still held, oldest first, each with its quantity and its price.
    """
    lots = state["lots"] if state else []
    realised = state["realised"] if state else NOTHING
    for fact in facts:
        if fact["side"] == "BUY":
            lots.append({"quantity": fact["quantity"], "price": fact["price"]})
        elif fact["side"] == "SELL":
            realised += sell(lots, fact)
        else:
            raise ValueError(f"{fact['transaction_id']} is neither BUY nor SELL: {fact['side']}")
    return {
        "lots": lots,
        "quantity": held(lots),
        "cost_basis": sum((lot["quantity"] * lot["price"] for lot in lots), NOTHING),
        "realised": realised,
    }


def held(lots: Sequence[Mapping[str, Decimal]]) -> Decimal:
    return sum((lot["quantity"] for lot in lots), NOTHING)


def sell(lots: list[dict[str, Decimal]], fact: Mapping[str, Any]) -> Decimal:
    """Take a sale from the oldest lots. Returns its profit, or its loss if negative.

    These portfolios may not be short. A sale of more than is held is a mistake of whoever booked it.
    """
    left, profit = fact["quantity"], NOTHING
    if left > held(lots):
        raise ValueError(f"{fact['transaction_id']} sells {left:f}, but only {held(lots):f} are held")
    while left > 0:
        oldest = lots[0]
        taken = min(left, oldest["quantity"])
        profit += taken * (fact["price"] - oldest["price"])
        left -= taken
        oldest["quantity"] -= taken
        if not oldest["quantity"]:
            del lots[0]
    return profit
