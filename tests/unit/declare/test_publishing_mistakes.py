"""Mistakes in what is published: each told once, with its line, and settled by its remedy."""

from pathlib import Path

import pytest

from tests.unit.declare.publishing import edited, report_trades, slugs_of

Edit = tuple[str, str]

MISTAKES: list[tuple[str, Edit, str, str, Edit]] = [
    (
        "unknown-dataset",
        ("publish: [trades]", "publish: [trade]"),
        "`publish` names `trade`, which is not a dataset.",
        "Did you mean `trades`?",
        ("publish: [trade]", "publish: [trades]"),
    ),
    (
        "no-row-key",
        ("publish: [trades]", "publish: [raw]"),
        "a change log needs a row key, and nothing identifies the rows of `raw`.",
        "Describe its key: `key: [<columns>]` under `datasets:` for a job's output,"
        " `event_stream: {identity: [<columns>]}` or `record_set` for facts.",
        ("columns: {symbol: symbol}", "columns: {symbol: symbol}\n    event_stream: {identity: [symbol]}"),
    ),
    (
        "no-row-key",
        ("publish: [trades]", "publish: [totals]"),
        "a change log needs a row key, and nothing identifies the rows of `totals`.",
        "Describe its key: `key: [<columns>]` under `datasets:` for a job's output,"
        " `event_stream: {identity: [<columns>]}` or `record_set` for facts.",
        ("  raw:\n", "  totals: {key: [symbol]}\n  raw:\n"),
    ),
    (
        "double-in-row-key",
        ("publish: [trades]", "publish: [ticks]"),
        "a change log needs a row key without doubles, and that of `ticks` contains `ratio`.",
        "Give the column an exact type, such as a decimal or a string.",
        ("{symbol: symbol, ratio: {path: ratio, type: double}}", "{symbol: symbol, ratio: ratio}"),
    ),
    (
        "unknown-dataset",
        ("    from: trades\n    where", "    from: tradez\n    where"),
        "the view `large_trades` is made from `tradez`, which is not a dataset.",
        "Did you mean `trades`?",
        ("from: tradez", "from: trades"),
    ),
    (
        "view-of-view",
        ("endpoints:\n", "  larger: {from: large_trades}\nendpoints:\n"),
        "the view `larger` is made from `large_trades`, which is a view.",
        "Make it from the dataset of that view, and add its condition by `_and`.",
        ("{from: large_trades}", "{from: trades}"),
    ),
    (
        "unknown-column",
        ("where: {quantity", "where: {quantaty"),
        "`where` of the view `large_trades`: There is no column `quantaty`.",
        "Did you mean `quantity`?",
        ("where: {quantaty", "where: {quantity"),
    ),
    (
        "name-taken",
        ('{notional: "quantity', '{price: "quantity'),
        "the column `price` of the view `large_trades` has the name of a column of `trades`.",
        "Rename it.",
        ('{price: "quantity', '{notional: "quantity'),
    ),
    (
        "columns-coincide",
        ('{notional: "quantity', '{Notional: "price", notional: "quantity'),
        "the columns `Notional` and `notional` of `large_trades` are both `notional`: column names are"
        " lower-cased.",
        "Rename one of them.",
        ('Notional: "price", ', ""),
    ),
    (
        "star-in-expression",
        ('{notional: "quantity', '{everything: "struct(*)", notional: "quantity'),
        "the column `everything` of the view `large_trades` uses `*`.",
        "Name each column that it needs.",
        ("struct(*)", "struct(price)"),
    ),
    (
        "unknown-dataset",
        ("    from: trades\n    fire", "    from: trads\n    fire"),
        "the trigger `large_trade_alert` reads `trads`, which is not a dataset.",
        "Did you mean `trades`?",
        ("from: trads", "from: trades"),
    ),
    (
        "filter-unknown",
        ("clear: {quantity: {_lt: 9500}}", "clear: {quantity: {_less: 9500}}"),
        "`clear` of the trigger `large_trade_alert`: `_less` is not an operator (condition on `quantity`).",
        "",
        ("_less", "_lt"),
    ),
    (
        "filter-type",
        ("clear: {quantity: {_lt: 9500}}", "clear: {quantity: {_lt: many}}"),
        "`clear` of the trigger `large_trade_alert`: `quantity` has the type bigint, and 'many' is not a"
        " value of that type.",
        "Compare it with a whole number of 64 bits.",
        ("many", "9500"),
    ),
    (
        "missing-key",
        ("    fire: {quantity: {_gte: 10000}}\n    clear", "    clear"),
        "`triggers.large_trade_alert` lacks `fire`.",
        "Add `fire:`.",
        ("    clear", "    fire: {quantity: {_gte: 1}}\n    clear"),
    ),
    (
        "unknown-endpoint",
        ("    endpoint: ops\n", "    endpoint: opps\n"),
        "the trigger `large_trade_alert` tells `opps`, which is not an endpoint.",
        "Did you mean `ops`?",
        ("endpoint: opps", "endpoint: ops"),
    ),
    (
        "bad-secret",
        ('secret: "${OPS_SECRET}"', "secret: whsec_c2hvcnQ="),
        "the secret of the endpoint `ops` is not valid: it has 5 bytes, and 24 to 64 are allowed.",
        "Write `${NAME}`, and set it to `whsec_` and the base64 of 24 to 64 random bytes.",
        ("whsec_c2hvcnQ=", '"${OPS_SECRET}"'),
    ),
    (
        "bad-url",
        ("https://ops.example/hook", "https://me:hunter2@ops.example/hook"),
        "the URL of the endpoint `ops` contains a user or a password.",
        "Put credentials into `headers`, as `${NAME}`.",
        ("me:hunter2@", ""),
    ),
    (
        "bad-url",
        ("https://ops.example/hook", "https://${OPS_HOST}/hook"),
        "the URL of the endpoint `ops` refers to the environment, which only `secret` and `headers` may.",
        "Write, for example, `https://ops.example/hook`.",
        ("${OPS_HOST}", "ops.example"),
    ),
    (
        "bad-url",
        ("https://ops.example/hook", "http://ops.example/hook"),
        "the URL of the endpoint `ops` has the scheme http, which only a network in `allow` may have.",
        "Use https.",
        ("http://ops", "https://ops"),
    ),
    (
        "address-refused",
        ("http://10.1.2.3", "HTTP://8.8.8.8"),
        "the endpoint `desk` has the address 8.8.8.8, which a webhook may not reach.",
        'Use a public address, or allow the network if it is yours: `allow: ["8.8.8.8"]`.',
        ("HTTP:", "https:"),
    ),
    (
        "bad-url",
        ("https://ops.example/hook", "ftp://ops.example/hook"),
        "the URL of the endpoint `ops` has the scheme ftp, not https.",
        "Use https.",
        ("ftp:", "https:"),
    ),
    (
        "bad-url",
        ("https://ops.example/hook", "https://ops.example/hook#top"),
        "the URL of the endpoint `ops` contains a fragment, which is never sent.",
        "Remove what follows `#`, and `#` itself.",
        ("#top", ""),
    ),
    (
        "bad-url",
        ("https://ops.example/hook", "https:///hook"),
        "the URL of the endpoint `ops` has no host.",
        "Write, for example, `https://ops.example/hook`.",
        ("https:///hook", "https://ops.example/hook"),
    ),
    *(
        (
            "bad-url",
            ("https://ops.example/hook", f"https://{host}/hook"),
            "the URL of the endpoint `ops` has no valid host or port.",
            "Write, for example, `https://ops.example/hook`.",
            (host, "ops.example"),
        )
        for host in ("ops'example", "[v1.x]", "ops.example:port")
    ),
    (
        "address-refused",
        ("https://ops.example/hook", "https://0x7f.1/hook"),
        "the endpoint `ops` has the address 127.0.0.1, which a webhook may not reach.",
        'Use a public address, or allow the network if it is yours: `allow: ["127.0.0.1"]`.',
        ('secret: "${OPS_SECRET}"', 'secret: "${OPS_SECRET}"\n    allow: ["127.0.0.1"]'),
    ),
    (
        "address-refused",
        ("https://ops.example/hook", "https://[fe80::1]/hook"),
        "the endpoint `ops` has the address fe80::1, which a webhook may not reach.",
        "Use a public address.",
        ("[fe80::1]", "ops.example"),
    ),
    (
        "bad-network",
        ('allow: ["10.1.0.0/16"]', 'allow: ["10.1.0.0/16", "10.1/16"]'),
        "`allow` of the endpoint `desk` contains `10.1/16`, which is not a network.",
        "Write, for example, `10.1.0.0/16`.",
        (', "10.1/16"', ""),
    ),
    (
        "bad-header",
        ("x-team: risk", "webhook-id: risk"),
        "the endpoint `desk` sets the header `webhook-id`, which is reserved or not a header's name.",
        "Choose another name, such as `x-team`.",
        ("webhook-id", "x-team"),
    ),
    (
        "bad-header",
        ("x-team: risk", 'x-team: "a\\r\\nb"'),
        "the header `x-team` of the endpoint `desk` contains a character that no header may have.",
        "Write it in one line of text.",
        ('"a\\r\\nb"', "risk"),
    ),
    (
        "wrong-type",
        ("timeout: 5 s", "timeout: soon"),
        "`timeout` of the endpoint `desk` is `soon`, not a duration of at most 60 s.",
        "Write, for example, `15 s`.",
        ("soon", "15 s"),
    ),
    (
        "wrong-type",
        ("rate: 20\n", "rate: 0\n"),
        "`rate` is `0` in `endpoints.desk`.",
        "Input should be greater than 0.",
        ("rate: 0\n", "rate: 0.5\n"),
    ),
    (
        "wrong-type",
        ("retry: [1 s, 5 min]", "retry: [1 s, 99999999999999 d]"),
        "`retry` of the endpoint `desk` is `99999999999999 d`, not a duration.",
        "Write, for example, `15 s`.",
        ("99999999999999 d", "15 s"),
    ),
    (
        "wrong-type",
        ("max_body: 1 MiB", f"max_body: {'9' * 400} MiB"),
        f"`max_body` of the endpoint `desk` is `{'9' * 400} MiB`, not a size.",
        "Write, for example, `256 KiB`.",
        (f"{'9' * 400} MiB", "256 KiB"),
    ),
    (
        "wrong-type",
        ("max_body: 1 MiB", "max_body: much"),
        "`max_body` of the endpoint `desk` is `much`, not a size.",
        "Write, for example, `256 KiB`.",
        ("much", "256 KiB"),
    ),
]


@pytest.mark.parametrize(
    ("slug", "mistake", "what", "remedy", "settles"),
    MISTAKES,
    ids=[f"{m[0]}-{m[1][1][:30]}" for m in MISTAKES],
)
def test_a_mistake_is_told_once_with_its_line_and_its_remedy_settles_it(
    slug: str, mistake: Edit, what: str, remedy: str, settles: Edit, tmp_path: Path
) -> None:
    wrong = edited(mistake)

    told = report_trades(tmp_path, mistake)

    assert slugs_of(told) == [slug], told
    assert what in told
    assert remedy in told
    line = int(told.split(":")[1])
    words = mistake[1].splitlines()[0].strip()
    assert slug in ("missing-key", "view-of-view") or words in wrong.splitlines()[line - 1]
    assert report_trades(tmp_path, mistake, settles) == ""


def test_every_mistake_is_told_at_once(tmp_path: Path) -> None:
    told = report_trades(
        tmp_path,
        ("publish: [trades]", "publish: [trade, raw]"),
        ("where: {quantity: {_gte: 10000}}", "where: {quantaty: {_gte: 10000}, symbol: {_gt: 5}}"),
        ("    endpoint: ops\n", "    endpoint: opps\n"),
        ("timeout: 5 s", "timeout: soon"),
    )

    assert slugs_of(told) == [
        "unknown-dataset",
        "no-row-key",
        "unknown-column",
        "filter-type",
        "wrong-type",
        "unknown-endpoint",
    ]


def test_a_secret_or_a_password_is_in_no_report(tmp_path: Path) -> None:
    told = report_trades(
        tmp_path,
        ('secret: "${OPS_SECRET}"', "secret: whsec_aHVudGVyMg=="),
        ("https://ops.example/hook", "https://me:hunter2@ops.example/hook"),
    )

    assert slugs_of(told) == ["bad-url", "bad-secret"]
    assert "hunter2" not in told
    assert "aHVudGVyMg" not in told
