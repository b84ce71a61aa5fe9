"""Every mistake of a timeline is told once, where it stands, with what to do."""

from pathlib import Path

import pytest

from tests.unit.declare.builders import line_of, report, slugs
from tests.unit.declare.timelines.builders import FILES, FOLDED, PROJECT, edited

OF = "of the timeline `positions`"
KEYED = "    key: [portfolio_id, security_id]"
DATED = "    date: transaction_on"
ORDERED = "    order_by: [transaction_at, transaction_id]"
FACTS = "    facts: transactions"
FIELDS = "    fields: {"
SECURITY = "        security: {dataset: securities, on: [security_id]}"
PRICE = "        price:    {dataset: market_prices, on: [security_id], date: price_on}"
FX = "        fx:       {dataset: fx_rates, on: {currency: security.currency}, date: rate_on, required: true}"
CALENDAR = "      calendar: {dataset: business_dates, date: business_on}"
VALUE = "        market_value: quantity * price.price * fx.rate"
WHERE = "      where: quantity <> 0"
NOT_IN = "which is not a column of the key, a field or a column of a reference above."

Told = tuple[str, str, str, str]
"""The line as it is written, and the line instead; what is told of it; the remedy with its slug."""

OF_FACTS: tuple[Told, ...] = (
    (
        FACTS,
        "    facts: transaction",
        "the timeline `positions` reads `transaction`, which is not a dataset.",
        "Did you mean `transactions`?  [unknown-dataset]",
    ),
    (
        KEYED,
        "    key: [portfolio, security_id]",
        f"`key` {OF} names `portfolio`, which is not a column of `transactions`.",
        "Did you mean `portfolio_id`?  [unknown-column]",
    ),
    (
        KEYED,
        "    key: [portfolio_id, security_id, _key]",
        f"`key` {OF} names the metadata column `_key`.",
        "Name another column of `transactions`.  [metadata-column]",
    ),
    (
        KEYED,
        "    key: [portfolio_id, security_id, Portfolio_id]",
        f"`Portfolio_id` occurs twice in `key` {OF}.",
        "Keep one of them.  [named-twice]",
    ),
    (
        DATED,
        "    date: transaction_o",
        f"`date` {OF} names `transaction_o`, which is not a column of `transactions`.",
        "Did you mean `transaction_on`?  [unknown-column]",
    ),
    (
        DATED,
        "    date: transaction_at",
        f"`date` {OF} names `transaction_at` of `transactions`, which is timestamp, not a date.",
        'Add `transaction_at_on: {sql: "local_date(transaction_at)"}` under `columns:` of the dataset, and'
        " name that.  [timeline-date]",
    ),
    (
        DATED,
        "    date: transaction_id",
        f"`date` {OF} names `transaction_id` of `transactions`, which is string, not a date.",
        "Give it the type under `columns:` of the dataset: `transaction_id: {type: date}`, beside its `path`"
        " if it has one.  [timeline-date]",
    ),
    (
        DATED,
        "    date: amount",
        f"`date` {OF} names `amount` of `transactions`, which is decimal(28,10), not a date.",
        "Name a date column.  [timeline-date]",
    ),
    (
        ORDERED,
        "    order_by: [transaction_a]",
        f"`order_by` {OF} names `transaction_a`, which is not a column of `transactions`.",
        "Did you mean `transaction_at`?  [unknown-column]",
    ),
    (
        ORDERED,
        "    order_by: [_ingested_at]",
        f"`order_by` {OF} names the metadata column `_ingested_at`.",
        "Name another column of `transactions`.  [metadata-column]",
    ),
    (
        "    together: [portfolio_id]",
        "    together: [portfolio_id, amount]",
        f"`together` {OF} names `amount`, which the key does not contain.",
        "Name columns of the key: `portfolio_id` and `security_id`.  [together-not-in-key]",
    ),
)
OF_FIELDS: tuple[Told, ...] = (
    (
        FIELDS,
        "    fields: {extra: money, ",
        "there is no type `money`.",
        "Known types: `string`, `int`, `bigint`, `double`, `decimal(18,2)`, `boolean`, `date`, `timestamp`,"
        " `timestamp_ms`, `timestamp_us`, `timestamp_ns`, `json`.  [unknown-type]",
    ),
    (
        FIELDS,
        "    fields: {seen_at: timestamp_ms, ",
        f"the field `seen_at` {OF} is `timestamp_ms`, which says how a payload writes a value. The fold"
        " returns the value itself.",
        "Write `timestamp`.  [field-type]",
    ),
    (
        FIELDS,
        "    fields: {lots: json, ",
        f"the field `lots` {OF} is `json`, which says how a payload writes a value. The fold returns the"
        " value itself.",
        "Write `string`.  [field-type]",
    ),
    (
        FIELDS,
        "    fields: {portfolio_id: string, ",
        f"the field `portfolio_id` {OF} has the name of a column of the key.",
        "Rename one of them: names are compared in lower case.  [timeline-name]",
    ),
    (
        FIELDS,
        "    fields: {Realised: double, ",
        f"the field `realised` {OF} has the name of another field.",
        "Rename one of them: names are compared in lower case.  [timeline-name]",
    ),
    (
        FIELDS,
        "    fields: {Date: date, ",
        f"the field `Date` {OF} has the name of a column that each timeline adds: the date of a row.",
        "Give it another name.  [timeline-name]",
    ),
    (
        FIELDS,
        "    fields: {epoch: bigint, ",
        f"the field `epoch` {OF} has the name of a column that each timeline adds: the epoch of a row.",
        "Give it another name.  [timeline-name]",
    ),
    (
        FIELDS,
        "    fields: {_head: bigint, ",
        "the column `_head` has the name of a metadata column.",
        "Give it another name; metadata columns exist without being declared.  [metadata-column]",
    ),
)
OF_REFERENCES: tuple[Told, ...] = (
    (
        PRICE,
        PRICE.replace("market_prices", "market_price"),
        f"the reference `price` {OF} reads `market_price`, which is not a dataset.",
        "Did you mean `market_prices`?  [unknown-dataset]",
    ),
    (
        PRICE,
        PRICE.replace("[security_id]", "[securty_id]"),
        "`on` of the reference `price` names `securty_id`, which is not a column of `market_prices`.",
        "Did you mean `security_id`?  [unknown-column]",
    ),
    (
        PRICE,
        PRICE.replace("[security_id]", "{security_id: security_i}"),
        f"`on` of the reference `price` names `security_i`, {NOT_IN}",
        "Did you mean `security_id`?  [reference-on]",
    ),
    (
        FX,
        FX.replace("{currency: security.currency}", "[currency]"),
        f"`on` of the reference `fx` names `currency`, {NOT_IN}",
        "Did you mean `security.currency`?  [reference-on]",
    ),
    (
        FX,
        FX.replace("security.currency", "security.curency"),
        "`on` of the reference `fx` names `security.curency`, which is not a column of `securities`.",
        "Did you mean `currency`?  [unknown-column]",
    ),
    (
        SECURITY,
        SECURITY.replace("[security_id]", "{security_id: price.security_id}"),
        f"`on` of the reference `security` names `price.security_id`, {NOT_IN}",
        "Move `price` above `security`: references are resolved top down.  [reference-on]",
    ),
    (
        PRICE,
        PRICE.replace("price_on", "priced_at"),
        "`date` of the reference `price` names `priced_at` of `market_prices`, which is timestamp, not a"
        " date.",
        'Add `priced_at_on: {sql: "local_date(priced_at)"}` under `columns:` of the dataset, and name that.'
        "  [timeline-date]",
    ),
    (
        PRICE,
        PRICE.replace("price_on", "pric_on"),
        "`date` of the reference `price` names `pric_on`, which is not a column of `market_prices`.",
        "Did you mean `price_on`?  [unknown-column]",
    ),
    (
        PRICE,
        PRICE.replace("on: [security_id]", "on: {security_id: quantity}"),
        "`on` of the reference `price` compares `security_id` of `market_prices`, which is string, with"
        " `quantity`, which is decimal(28,10).",
        "Give both one type: `security_id: {type: decimal(28,10)}` under `columns:` of `market_prices`,"
        " beside its `path` if it has one.  [reference-type]",
    ),
    (
        PRICE,
        PRICE.replace(", date: price_on", ""),
        f"the reference `price` {OF} may have several rows: nothing proves that `market_prices` has one row"
        " for each `security_id`.",
        "Match it on its whole key: `security_id` and `price_on`. A date column of the key is named by"
        " `date`.  [reference-not-unique]",
    ),
    (
        PRICE,
        PRICE.replace("market_prices", "market_prices_facts"),
        f"the reference `price` {OF} may have several rows: nothing proves that `market_prices_facts` has"
        " one row for each `security_id` and `price_on`.",
        "Look up a record set: `record_set: {key: [security_id, price_on], order_by: [<column>]}`."
        "  [reference-not-unique]",
    ),
    (
        VALUE,
        f"        quantity: {VALUE.split(': ')[1]}",
        f"the column `quantity` {OF} has the name of a field.",
        "Rename one of them: names are compared in lower case.  [timeline-name]",
    ),
    (
        VALUE,
        f"        fx: {VALUE.split(': ')[1]}",
        f"the column `fx` {OF} has the name of a reference.",
        "Rename one of them: names are compared in lower case.  [timeline-name]",
    ),
    (
        VALUE,
        f"        epoch: {VALUE.split(': ')[1]}",
        f"the column `epoch` {OF} has the name of a column that each timeline adds: the epoch of a row.",
        "Give it another name.  [timeline-name]",
    ),
)
OF_DATES: tuple[Told, ...] = (
    (
        CALENDAR,
        CALENDAR.replace("business_dates", "business_date"),
        f"the calendar {OF} reads `business_date`, which is not a dataset.",
        "Did you mean `business_dates`?  [unknown-dataset]",
    ),
    (
        CALENDAR,
        CALENDAR.replace("business_on", "busines_on"),
        f"`calendar` {OF} names `busines_on`, which is not a column of `business_dates`.",
        "Did you mean `business_on`?  [unknown-column]",
    ),
    (
        CALENDAR,
        CALENDAR.replace("business_on", "changed_at"),
        f"`calendar` {OF} names `changed_at` of `business_dates`, which is timestamp, not a date.",
        'Add `changed_at_on: {sql: "local_date(changed_at)"}` under `columns:` of the dataset, and name that.'
        "  [timeline-date]",
    ),
    (
        CALENDAR,
        "      calendar: weekday",
        "`calendar` is `weekday` in `timelines.positions.valuation`, which is not a valid value.",
        "Did you mean `weekdays`?  [unknown-value]",
    ),
    *(
        (
            '      due_at: "18:00"',
            f'      due_at: "{time}"',
            f"`due_at` {OF} is `{time}`, not a time of a day.",
            'Write it as HH:MM, such as "18:00".  [due-at]',
        )
        for time in ("24:00", "6pm", "9:00", "18:60", "18:00:00")
    ),
)
COLUMN = f"the column `market_value` {OF}"
OF_EXPRESSIONS: tuple[Told, ...] = (
    (
        WHERE,
        "      where: quantity <",
        f"the SQL of `where` {OF} is wrong after `<`, which follows `quantity`.",
        "Write it as Spark SQL takes it.  [sql-syntax]",
    ),
    (
        WHERE,
        "      where: qantity <> 0",
        f"`where` {OF} names `qantity`, which is not a column.",
        "Did you mean `quantity`?  [unknown-column]",
    ),
    (
        WHERE,
        "      where: epoch > 0",
        f"`where` {OF} names `epoch`, which is not a column.",
        "Known columns: `cost_basis`, `date`, `market_value`, `portfolio_id`, `quantity`, `realised`,"
        " `security_id`, `valuation_status`.  [unknown-column]",
    ),
    (
        VALUE,
        "        market_value: quantity * price",
        f"{COLUMN} names `price`, which is not a column.",
        "Name a column of that reference: `price.<column>`.  [unknown-column]",
    ),
    (
        VALUE,
        "        market_value: datediff(date, price_on)",
        f"{COLUMN} names `price_on`, which is not a column.",
        "Did you mean `price.price_on`?  [unknown-column]",
    ),
    (
        VALUE,
        "        market_value: quantity * prices.price",
        f"{COLUMN} names `prices.price`, which is not a column.",
        "Did you mean `price`?  [unknown-column]",
    ),
    (
        VALUE,
        "        market_value: quantity * fx.rat",
        f"{COLUMN} names `fx.rat`, which is not a column of `fx_rates`.",
        "Did you mean `rate`?  [unknown-column]",
    ),
    (
        VALUE,
        "        market_value: length(valuation_status)",
        f"{COLUMN} names `valuation_status`, which is not a column.",
        "Declare `valuation_status` above it: a column may use the columns above.  [unknown-column]",
    ),
    (
        VALUE,
        "        market_value: price._ingested_at",
        f"{COLUMN} names the metadata column `price._ingested_at`.",
        "Name another column of `market_prices`.  [metadata-column]",
    ),
    (
        VALUE,
        "        market_value: struct(price.*)",
        f"{COLUMN} uses `*`.",
        "Name each column that it needs.  [star-in-expression]",
    ),
    (
        VALUE,
        "        market_value: datediff(current_date, date)",
        f"{COLUMN}: `current_date` reads the wall clock.",
        "Use `date`, the date of the row.  [nondeterministic]",
    ),
    (
        VALUE,
        "        market_value: quantity * rand()",
        f"{COLUMN}: `rand` depends on chance.",
        "Derive it from the row, for example with `xxhash64(<key columns>)`.  [nondeterministic]",
    ),
    *(
        (
            VALUE,
            f'        market_value: "{sql}"',
            f"{COLUMN} uses {what}; it is computed from one row alone.",
            "Do this in a job.  [sql-not-row-wise]",
        )
        for sql, what in (
            ("sum(quantity)", "an aggregate"),
            ("rank() over (order by date)", "a window"),
            ("quantity * (select 1)", "a subquery"),
            ("quantity * :rate", "the parameter `:rate`"),
            ("explode(array(quantity))", "a function that makes several rows"),
        )
    ),
)
CASES = (*OF_FACTS, *OF_FIELDS, *OF_REFERENCES, *OF_DATES, *OF_EXPRESSIONS)


@pytest.mark.parametrize(
    ("line", "instead", "what", "remedy"), CASES, ids=[case[1].strip() for case in CASES]
)
def test_a_mistake_is_told_once_where_it_stands(
    line: str, instead: str, what: str, remedy: str, tmp_path: Path
) -> None:
    yaml = edited(PROJECT, (line, instead))

    reported = report(tmp_path, yaml, FILES)

    place = line_of(yaml, "realised: ") if "the field `realised`" in what else line_of(yaml, instead)
    assert reported == f"strandline.yaml:{place}: {what}\n  {remedy}"


@pytest.mark.parametrize("column", ["Date", "epoch"])
def test_the_columns_that_each_timeline_adds_are_not_part_of_a_key(column: str, tmp_path: Path) -> None:
    facts = ("      transaction_id: id\n", f"      transaction_id: id\n      {column}: there\n")
    yaml = edited(PROJECT, facts, (KEYED, KEYED.replace("]", f", {column}]")))

    reported = report(tmp_path, yaml, FILES)

    what = (
        f"`key` {OF} names `{column}`, the name of a column that each timeline adds:"
        f" the {column.lower()} of a row."
    )
    remedy = "Give the column another name in `transactions`, and use that.  [timeline-name]"
    assert reported == f"strandline.yaml:{line_of(yaml, '    key: [portfolio')}: {what}\n  {remedy}"


@pytest.mark.parametrize("name", ["quantity", "Portfolio_Id", "date", "Price"])
def test_a_reference_has_a_name_of_its_own(name: str, tmp_path: Path) -> None:
    yaml = edited(
        PROJECT,
        (SECURITY, f"        {name}: {{dataset: securities, on: [security_id]}}"),
        (FX, ""),
        (VALUE, "        market_value: quantity"),
    )

    assert slugs(tmp_path, yaml, FILES) == ["timeline-name"]


# The fold


@pytest.mark.parametrize(
    ("fold", "code", "expected"),
    [
        ("folds.py:fif", "", "`folds.py` has no function `fif` at its top level.\n  Did you mean `fifo`?"),
        ("fold.py:fifo", "", "there is no file `fold.py` in the project.\n  Did you mean `folds.py`?"),
        ("folds.py", "", "`fold: folds.py` does not name a function in a file.\n  Write, for example,"),
        ("folds.py:fifo", "fifo = 1", "`folds.py` has no function `fifo` at its top level."),
        (
            "folds.py:fifo",
            "def fifo(state): ...",
            "`fifo` must take exactly `(state, facts)`, and takes `(state)`.\n"
            "  Write `def fifo(state, facts):`.  [wrong-parameters]",
        ),
        (
            "folds.py:fifo",
            "def fifo(state, facts, config=None): ...",
            "`fifo` must take exactly `(state, facts)`, and takes `(state, facts, config)`.",
        ),
        ("folds.py:fifo", "def fifo(state, *facts): ...", "takes `(state, ...)`."),
        ("folds.py:fifo", "async def fifo(state, facts): ...", "[wrong-parameters]"),
        ("folds.py:fifo", "def fifo(state, facts: ...", "the file is not Python"),
        (
            "folds.py:fifo",
            "import datetime\ndef fifo(state, facts): return {'at': datetime.datetime.now()}",
            "folds.py:2: `datetime.datetime.now` reads the wall clock.\n  Use the dates and times of the"
            " facts: the fold gives the same whenever it is called.  [nondeterministic]",
        ),
        (
            "folds.py:fifo",
            "import random\ndef fifo(state, facts): return {}",
            "`random` depends on chance.\n  Derive it from the facts or the state.  [nondeterministic]",
        ),
        (
            "folds.py:fifo",
            "def fifo(state, facts): return {'rate': open('rate').read()}",
            "`open` reads what is not a fact or the state.\n  Put it into the facts, for example with a job"
            " that joins it, or write the value into the code.  [outside-input]",
        ),
        (
            "folds.py:fifo",
            "from rates import RATE\ndef fifo(state, facts): return {}",
            "rates.py:2: `time.time` reads the wall clock.",
        ),
        (
            "folds.py:fifo",
            "import importlib\ndef fifo(state, facts): return {}",
            "`importlib` imports code that cannot be followed.",
        ),
    ],
)
def test_a_fold_is_a_function_of_the_state_and_the_facts_alone(
    fold: str, code: str, expected: str, tmp_path: Path
) -> None:
    files: dict[str, str | bytes] = {
        "folds.py": f"{code}\n" if code else FILES["folds.py"],
        "rates.py": "import time\nRATE = time.time()\n",
    }

    reported = report(tmp_path, edited(PROJECT, ("folds.py:fifo", fold)), files)

    assert expected in reported
    assert reported.count("  [") == 1


def test_a_fold_names_its_parameters_as_it_likes(tmp_path: Path) -> None:
    assert report(tmp_path, PROJECT, {"folds.py": "def fifo(before, trades, /):\n    return before\n"}) == ""


# Names and shapes


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("output_dataset: position_history", "output_dataset: transactions", "[name-taken]"),
        ("output_dataset: position_history", "output_dataset: positions", "[name-taken]"),
        ("output_dataset: daily_position_snapshots", "output_dataset: position_history", "[name-taken]"),
        ("output_dataset: position_history", "output_dataset: position_epochs", "[reserved-name]"),
        ("  positions:\n", "  market_prices:\n", "[name-taken]"),
        ("    output_dataset: position_history\n", "", "`timelines.positions` lacks `output_dataset`."),
        ("    facts: transactions\n", "", "`timelines.positions` lacks `facts`."),
        ("    date: transaction_on\n", "", "`timelines.positions` lacks `date`."),
        ("    fold: folds.py:fifo\n", "", "`timelines.positions` lacks `fold`."),
        (f"{ORDERED}\n", "", "`timelines.positions` lacks `order_by`."),
        ("      output_dataset: daily_position_snapshots\n", "", "lacks `output_dataset`."),
        (f"{CALENDAR}\n", "", "`timelines.positions.valuation` lacks `calendar`."),
        (VALUE, "        market_value: 1", "`timelines.positions.valuation.columns.market_value` is `1`"),
        ("on: [security_id]}", "on: security_id}", "Write `[security_id]`."),
        ("required: true", "requird: true", "Did you mean `required`?"),
        ("    together:", "    togather:", "Did you mean `together`?"),
    ],
)
def test_a_wrong_name_or_shape_is_told_and_hides_nothing_else(
    old: str, new: str, expected: str, tmp_path: Path
) -> None:
    yaml = edited(PROJECT, (old, new))

    reported = report(tmp_path, yaml, FILES)
    with_another = report(tmp_path, edited(yaml, ('due_at: "18:00"', "due_at: evening")), FILES)

    assert expected in reported
    assert reported.count("  [") == 1
    assert with_another.count("  [") == 2
    assert "[due-at]" in with_another


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    yaml = edited(
        PROJECT,
        (DATED, "    date: transaction_at"),
        ("folds.py:fifo", "folds.py:lifo"),
        (FIELDS, "    fields: {date: date, "),
        ("together: [portfolio_id]", "together: [amount]"),
        (CALENDAR, CALENDAR.replace("business_on", "changed_at")),
        ('due_at: "18:00"', "due_at: evening"),
        (PRICE, PRICE.replace(", date: price_on", "")),
        (FX, FX.replace("security.currency", "security.money")),
        (VALUE, "        market_value: now() * quantities"),
        (WHERE, "      where: sum(amount) > 0"),
    )

    assert slugs(tmp_path, yaml, FILES) == [
        "timeline-date",
        "function-not-found",
        "timeline-name",
        "together-not-in-key",
        "timeline-date",
        "due-at",
        "reference-not-unique",
        "unknown-column",
        "nondeterministic",
        "unknown-column",
        "sql-not-row-wise",
        "unknown-column",
    ]


# What is read

JOB = """\
jobs:
  - name: moved
    input_datasets: [transactions]
    output_dataset: moved_transactions
    incremental: {mode: keyed, key: [transaction_id]}
    sql: select *, transaction_at as moved_at, transaction_id as code, local_date(transaction_at) as moved_on
      from transactions
"""


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        ("moved_on", ""),
        ("transaction_on", ""),
        ("moved_at", "Let the query that makes `moved_transactions` return `local_date(moved_at)`."),
        ("code", "Let the query that makes `moved_transactions` return `cast(code as date)`."),
    ],
)
def test_the_type_of_a_jobs_column_is_checked_where_it_is_known(
    date: str, expected: str, tmp_path: Path
) -> None:
    yaml = edited(PROJECT, (FACTS, "    facts: moved_transactions"), (DATED, f"    date: {date}")) + JOB

    reported = report(tmp_path, yaml, FILES)

    assert expected in reported
    assert bool(expected) == bool(reported)


def test_what_a_job_makes_has_no_position_in_a_source(tmp_path: Path) -> None:
    yaml = edited(
        PROJECT, (FACTS, "    facts: moved_transactions"), (ORDERED, "    order_by: [_source_position]")
    )

    assert slugs(tmp_path, yaml + JOB, FILES) == ["metadata-column"]


PYTHON_JOB = """\
jobs:
  - name: prices
    input_datasets: [market_prices]
    output_dataset: made_prices
    incremental: {mode: full}
    python: prices.py:prices
"""


def test_a_job_whose_rows_may_repeat_is_a_reference_once_its_key_is_declared(tmp_path: Path) -> None:
    files = {**FILES, "prices.py": "def prices(inputs, context):\n    return inputs['market_prices']\n"}
    yaml = edited(PROJECT, (PRICE, PRICE.replace("market_prices", "made_prices"))) + PYTHON_JOB
    key = "datasets:\n  made_prices: {key: [security_id, price_on]}\n"

    reported = report(tmp_path, yaml, files)

    assert "`made_prices: {key: [security_id, price_on]}`.  [reference-not-unique]" in reported
    assert report(tmp_path, edited(yaml, ("datasets:\n", key)), files) == ""


def test_an_event_stream_is_a_reference_only_by_its_identity(tmp_path: Path) -> None:
    records = "    record_set: {key: [security_id, price_on], order_by: [priced_at]}\n"
    by_identity = edited(PROJECT, (records, "    event_stream: {identity: [price_on, security_id]}\n"))

    assert report(tmp_path, by_identity, FILES) == ""
    assert slugs(tmp_path, edited(PROJECT, (records, "")), FILES) == ["reference-not-unique"]


def test_a_cycle_through_a_timeline_is_told(tmp_path: Path) -> None:
    job = JOB.replace("[transactions]", "[daily_position_snapshots]").replace(
        "from transactions", "from daily_position_snapshots"
    )
    through_job = edited(PROJECT, (FACTS, "    facts: moved_transactions")) + job
    itself = edited(PROJECT, (FACTS, "    facts: position_history"))

    assert (
        "these outputs depend on each other: `moved_transactions` reads `daily_position_snapshots` reads"
        " `position_history` reads `moved_transactions`." in report(tmp_path, through_job, FILES)
    )
    assert "what writes `position_history` also reads it." in report(tmp_path, itself, FILES)


@pytest.mark.parametrize(
    "edit",
    [
        (FACTS, "    facts: transaction"),
        (KEYED, "    key: [portfolio, security_id]"),
        (DATED, "    date: transaction_at"),
        ('realised: "decimal(28,10)"', "realised: money"),
        (PRICE, PRICE.replace("market_prices", "market_price")),
        (VALUE, "        market_value: quantity * prices.price"),
        ("folds.py:fifo", "folds.py:lifo"),
    ],
)
def test_reading_a_timeline_that_is_wrong_is_not_a_second_mistake(
    edit: tuple[str, str], tmp_path: Path
) -> None:
    job = """\
jobs:
  - name: totals
    input_datasets: [daily_position_snapshots, position_history]
    output_dataset: totals
    incremental: {mode: keyed, key: [portfolio_id]}
    sql: >
      select portfolio_id, sum(market_value) as value, max(h.realised) as most
      from daily_position_snapshots join position_history h using (portfolio_id, security_id, date)
      group by portfolio_id
"""

    assert slugs(tmp_path, PROJECT + job, FILES) == []
    assert len(slugs(tmp_path, edited(PROJECT, edit) + job, FILES)) == 1


def test_facts_that_are_wrong_are_one_mistake(tmp_path: Path) -> None:
    yaml = edited(PROJECT, ("    from: transaction_events", "    from: transaction_event"))

    assert slugs(tmp_path, yaml, FILES) == ["unknown-source"]


def test_the_columns_of_csv_files_may_be_unknown(tmp_path: Path) -> None:
    csv = """\
project: x
sources: {sheets: {files: "s/*.csv"}}
datasets:
  transactions:
    from: sheets
    columns: {transaction_on: {type: date}}
    record_set: {key: [transaction_id], order_by: [transaction_at]}
"""

    assert report(tmp_path, csv + FOLDED, FILES) == ""
    assert slugs(tmp_path, edited(csv, ("{type: date}", "{type: string}")) + FOLDED, FILES) == [
        "timeline-date"
    ]
