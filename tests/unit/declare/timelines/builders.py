"""The project of LANGUAGE's section on timelines."""

BASE = """\
project: portfolios
timezone: Europe/Berlin
sources:
  transaction_events: {files: "t/*.jsonl"}
  price_events: {files: "p/*.jsonl"}
  rate_events: {files: "r/*.jsonl"}
  date_events: {files: "d/*.jsonl"}
  security_events: {files: "s/*.jsonl"}
datasets:
  transactions:
    from: transaction_events
    columns:
      transaction_id: id
      portfolio_id: portfolio
      security_id: security
      transaction_on: {path: on, type: date}
      transaction_at: {path: at, type: timestamp}
      amount: {path: amount, type: "decimal(28,10)"}
    record_set: {key: [transaction_id], order_by: [transaction_at]}
  market_prices:
    from: price_events
    columns:
      security_id: security
      price_on: {path: on, type: date}
      price: {path: price, type: "decimal(28,10)"}
      priced_at: {path: at, type: timestamp}
    record_set: {key: [security_id, price_on], order_by: [priced_at]}
  fx_rates:
    from: rate_events
    columns:
      currency: currency
      rate_on: {path: on, type: date}
      rate: {path: rate, type: double}
      rated_at: {path: at, type: timestamp}
    record_set: {key: [currency, rate_on], order_by: [rated_at]}
  business_dates:
    from: date_events
    columns: {business_on: {path: on, type: date}, changed_at: {path: at, type: timestamp}}
    record_set: {key: [business_on], order_by: [changed_at]}
  securities:
    from: security_events
    columns: {security_id: id, currency: currency, sector: sector, changed_at: {path: at, type: timestamp}}
    record_set: {key: [security_id], order_by: [changed_at]}
"""
FOLDED = """\
timelines:
  positions:
    key: [portfolio_id, security_id]
    facts: transactions
    date: transaction_on
    order_by: [transaction_at, transaction_id]
    fold: folds.py:fifo
    fields: {quantity: "decimal(28,10)", cost_basis: "decimal(28,10)", realised: "decimal(28,10)"}
    output_dataset: position_history
    together: [portfolio_id]
"""
VALUED = """\
    valuation:
      output_dataset: daily_position_snapshots
      calendar: {dataset: business_dates, date: business_on}
      due_at: "18:00"
      references:
        security: {dataset: securities, on: [security_id]}
        price:    {dataset: market_prices, on: [security_id], date: price_on}
        fx:       {dataset: fx_rates, on: {currency: security.currency}, date: rate_on, required: true}
      columns:
        market_value: quantity * price.price * fx.rate
        valuation_status: "CASE WHEN price.price IS NULL THEN 'UNVALUED' WHEN price.price_on = date THEN \
'VALUED_CURRENT' ELSE 'VALUED_STALE' END"
      where: quantity <> 0
"""
PROJECT = BASE + FOLDED + VALUED
FOLD = "def fifo(state, facts):\n    return state\n"
FILES: dict[str, str | bytes] = {"folds.py": FOLD}


def edited(yaml: str, *edits: tuple[str, str]) -> str:
    for old, new in edits:
        assert yaml.count(old) == 1, f"{old!r} occurs {yaml.count(old)} times"
        yaml = yaml.replace(old, new)
    return yaml
