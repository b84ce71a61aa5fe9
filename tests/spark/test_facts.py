"""Messages -> facts -> snapshots, each result confirmed by `verify`.

The tests cover values, defaults, lists, identities, changed declarations and the guard.
"""

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from textwrap import dedent, indent

import pytest

from strandline.app.planning import RunRequest
from tests.harness import TestProject, result_of
from tests.spark.counts import assert_conserved

pytestmark = pytest.mark.spark

Make = Callable[[str], TestProject]


def over_events(datasets: str) -> str:
    """A project file with these datasets over one source, `events`."""
    source = 'project: facts\nsources:\n  events: {files: "data/*.jsonl"}\n'
    return f"{source}datasets:\n{indent(dedent(datasets), '  ')}"


def test_values_are_exact_or_quarantined_with_the_reason(make_project: Make) -> None:
    project = make_project(
        over_events("""
        v:
          from: events
          where: "kind = 'v' and draft is null"
          columns:
            id: id
            whole: {path: whole, type: int}
            big: {path: big, type: bigint}
            money: {path: money, type: "decimal(30,10)"}
            ratio: {path: ratio, type: double}
            flag: {path: flag, type: boolean}
            day: {path: day, type: date}
            at: {path: at, type: timestamp}
            ms: {path: ms, type: timestamp_ms}
            us: {path: us, type: timestamp_us}
            body: {path: body, type: json}
            kept: {path: kept, type: int, default: 7}
            year: {sql: "financial_year(ms)"}
          source_at: ms
        """)
    )
    numbers = (
        '{"kind":"v","id":"numbers","whole":5,"big":9007199254740993,'
        '"money":12345678901234567890.0123456789,"ratio":0.1,"flag":true,'
    )
    strings = (
        '{"kind":"v","id":"strings","whole":"5","big":" 9007199254740993 ",'
        '"money":"12345678901234567890.0123456789","ratio":"0.1",'
    )
    same = (
        '"day":"2024-02-29","at":"2024-01-13T10:30:00+02:00","ms":1700000000123,'
        '"us":"1700000000123456","body":{"a":[1,"x"]}}'
    )
    misfits = {
        "whole": '"whole":5.5',
        "whole too big": '"whole":3000000000',
        "big": '"big":"1e30"',
        "money": '"money":"1234567890123456789012"',
        "ratio": '"ratio":"much"',
        "flag": '"flag":"maybe"',
        "day": '"day":"2024-02-30"',
        "at": '"at":"yesterday"',
        "ms": '"ms":"soon"',
        "kept": '"kept":"x"',
        "an object": '"whole":{"a":1}',
    }
    project.lines(
        "data/1.jsonl",
        numbers + same,
        strings + '"flag":"TRUE",' + same,
        '{"kind":"v","id":"absent"}',
        '{"kind":"v","id":"null","whole":null,"at":"2024-01-13 08:30","kept":null,"ms":"1.7E12"}',
        '{"kind":"v","id":"whole as 5.0","whole":5.0,"kept":"8"}',
        *(f'{{"kind":"v","id":"{name}",{text}}}' for name, text in misfits.items()),
        '{"kind":"other","id":"x","whole":"not looked at"}',
        '{"kind":"v","draft":1}',
        '{"id":"no kind"}',
        '{"kind":"v"} {"kind":"v"}',
        "[1]",
    )

    project.run()

    columns = ("whole", "big", "money", "ratio", "flag", "day", "at", "ms", "us", "kept", "year")
    rows = {row[0]: row[1:] for row in project.rows("v", "id", *columns)}
    assert rows["numbers"] == rows["strings"]
    assert rows["numbers"] == (
        5, 9007199254740993, Decimal("12345678901234567890.0123456789"), 0.1, True, date(2024, 2, 29),
        datetime(2024, 1, 13, 8, 30, tzinfo=UTC), datetime(2023, 11, 14, 22, 13, 20, 123000, tzinfo=UTC),
        datetime(2023, 11, 14, 22, 13, 20, 123456, tzinfo=UTC), 7, "2023-24",
    )  # fmt: skip
    assert rows["absent"] == (*[None] * 9, 7, None)
    assert (rows["null"][0], rows["null"][6], rows["null"][9]) == (
        None,
        datetime(2024, 1, 13, 8, 30, tzinfo=UTC),
        7,
    )
    assert (rows["whole as 5.0"][0], rows["whole as 5.0"][9]) == (5, 8)
    assert set(rows) == {"numbers", "strings", "absent", "null", "whole as 5.0"}
    refused = project.query("select slug, reason from v_quarantine")
    assert sorted(slug for slug, _ in refused) == ["does-not-fit"] * len(misfits) + ["not-json"] * 2
    assert ("does-not-fit", "`whole` = 5.5 does not fit int.") in refused
    assert {str(reason).split("`")[1] for slug, reason in refused if slug == "does-not-fit"} == {
        "whole", "big", "money", "ratio", "flag", "day", "at", "ms", "kept",
    }  # fmt: skip
    assert assert_conserved(project, "v")["v"]["passed_over"] == 3
    times = {row[0]: row[1:] for row in project.query("select id, _source_at, _source_ts from v")}
    assert times["numbers"] == (datetime(2023, 11, 14, 22, 13, 20, 123000, tzinfo=UTC), 1700000000123)
    assert times["absent"] == (None, None)
    project.assert_verified()


LISTS = """
    project: orders
    sources:
      orders: {files: "data/*.jsonl"}
    datasets:
      item:
        from: orders
        explode: items
        columns: {order: order, sku: item.sku, q: {path: item.q, type: int}, v: {path: v, type: int}}
        record_set: {key: [order, sku], order_by: [v], children: replace}
      line:
        from: orders
        explode: groups[].lines
        columns: {order: order, g: parent.g, n: {path: item.n, type: int}, v: {path: v, type: int}}
        record_set: {key: [order, g, n], order_by: [v]}
    jobs:
      - name: per_sku
        input_datasets: [item]
        output_dataset: per_sku
        incremental: {mode: keyed, key: [sku]}
        sql: select sku, sum(q) as q from item group by sku
"""


def order(name: str, v: int, **more: object) -> dict[str, object]:
    items = more.get("items")
    if isinstance(items, dict):
        more["items"] = [{"sku": sku, "q": q} for sku, q in items.items()]
    return {"order": name, "v": v, **more}


def test_the_newest_parent_is_the_whole_truth_about_its_children(make_project: Make) -> None:
    project = make_project(LISTS)
    groups = [
        {"g": "A", "lines": [{"n": 1}, {"n": 2}]},
        {"g": "B", "lines": []},
        {"g": "C", "lines": [{"n": 1}]},
    ]
    project.lines(
        "data/1.jsonl",
        order("o1", 10, items={"a": 1, "b": 2}, groups=groups),
        order("o2", 10, items={"c": 3}),
        order("o4", 10, items={"x": 1, "y": 1}),
    )

    first = project.run()

    assert project.rows("item", "order", "sku", "q") == {
        ("o1", "a", 1), ("o1", "b", 2), ("o2", "c", 3), ("o4", "x", 1), ("o4", "y", 1),
    }  # fmt: skip
    assert project.rows("line", "order", "g", "n") == {("o1", "A", 1), ("o1", "A", 2), ("o1", "C", 1)}
    assert result_of(first, "line_facts").counts["passed_over"] == 2

    # A removed child vanishes. An empty list removes all children, while an absent or null list changes
    # nothing. An older parent changes nothing.
    project.lines(
        "data/2.jsonl",
        order("o1", 20, items={"a": 5}, groups=[{"g": "A", "lines": [{"n": 1}]}]),
        order("o2", 20, items=[]),
        order("o3", 10, items=None),
        order("o1", 5, items={"z": 9}),
        order("o4", 10, items={"x": 2}),
    )
    second = project.run()

    one = {row for row in project.rows("item", "order", "sku", "q") if row[0] == "o4"}
    assert project.rows("item", "order", "sku", "q") - one == {("o1", "a", 5)}
    assert one in ({("o4", "x", 1), ("o4", "y", 1)}, {("o4", "x", 2)}), "a tie has one winner, never a mix"
    assert len(project.rows("line", "order", "g", "n")) == 3, "children: upsert forgets nobody"
    assert result_of(second, "item_facts").counts == {
        "offered": 5, "accepted": 3, "duplicates": 0, "quarantined": 0, "passed_over": 2, "derived": 1,
    }  # fmt: skip
    assert {sku for (sku,) in project.rows("per_sku", "sku")} == {"a"} | {str(sku) for _, sku, _ in one}
    project.assert_verified()

    project.lines(
        "data/3.jsonl",
        order("o1", 30),
        order("o2", 15, items={"c": 3}),
        order("o4", 10, items={"x": 1, "y": 1}),
        order("o1", 20, items={"a": 5}),
    )
    project.run()

    assert project.rows("item", "order", "sku", "q") == {("o1", "a", 5)} | one
    assert_conserved(project, "item", "line")
    project.assert_verified()


def test_null_ranks_lowest_and_latest_non_null_looks_back_as_far_as_the_last_deletion(
    make_project: Make,
) -> None:
    project = make_project(
        over_events("""
        person:
          from: events
          columns: {id: id, name: name, email: email, seq: {path: seq, type: int}, op: op}
          record_set: {key: [id], order_by: [seq], deleted: "op = 'D'", latest_non_null: [email]}
          source_at: {path: sent, type: timestamp_us}
        """)
    )

    def fact(id: str, seq: int | None, **more: object) -> dict[str, object]:
        return {"id": id, "seq": seq, **more}

    project.lines(
        "data/1.jsonl",
        fact("a", 10, name="n10", email="e10", sent=5),
        fact("a", 20, name="n20", sent="7"),
        fact("b", None, name="null"),
    )
    project.run()

    assert project.rows("person", "id", "name", "email") == {("a", "n20", "e10"), ("b", "null", None)}
    assert project.query("select _source_ts from person where id = 'a'") == [(7,)]
    assert project.query("select _source_ts from person_facts where seq = 10") == [(5,)]

    project.lines("data/2.jsonl", fact("a", 30, op="D"), fact("a", 40, name="n40"), fact("b", 1, name="one"))
    project.run()
    project.lines("data/3.jsonl", fact("b", None, name="late null", email="e"), fact("c", 1, op="D"))
    project.run()

    assert project.rows("person", "id", "name", "email") == {("a", "n40", None), ("b", "one", "e")}
    project.assert_verified()

    project.lines(
        "data/4.jsonl", fact("a", 35, email="e35"), fact("a", 25, email="e25"), fact("b", 2, op="D")
    )
    project.run()

    assert project.rows("person", "id", "name", "email") == {("a", "n40", "e35")}
    assert_conserved(project, "person")
    project.assert_verified()


def test_an_identity_counts_once_inside_a_batch_and_across_batches(make_project: Make) -> None:
    project = make_project(
        over_events("""
        trade:
          from: events
          columns:
            {id: id, leg: {path: leg, type: int}, price: {path: price, type: "decimal(10,2)"}, note: note}
          event_stream: {identity: [id, leg]}
        seen: {from: events, columns: {id: id}}
        """)
    )
    project.lines(
        "data/1.jsonl",
        {"id": "a", "leg": 1, "price": 1},
        {"id": "a", "leg": 1, "price": "1.00"},
        {"id": "a", "leg": 1, "price": 2},
        {"id": "a", "leg": 2, "price": 2},
        {"id": "b", "price": 2},
    )

    first = project.run()

    counts = {"offered": 5, "accepted": 2, "duplicates": 1, "quarantined": 2, "passed_over": 0, "derived": 0}
    assert result_of(first, "trade_facts").counts == counts
    assert result_of(first, "seen_facts").counts["accepted"] == 5, (
        "without identity only a repeated position is a duplicate"
    )

    project.lines(
        "data/2.jsonl",
        {"id": "a", "leg": 2, "price": 2, "unread": 1},
        {"id": "a", "leg": 2, "price": 2, "note": "x"},
        {"id": "c", "leg": 1},
    )
    second = project.run()

    assert result_of(second, "trade_facts").counts == {
        **counts,
        "offered": 3,
        "accepted": 1,
        "quarantined": 1,
    }
    prices = {(id, leg): str(price) for id, leg, price in project.rows("trade", "id", "leg", "price")}
    assert prices == {("a", 1): "1.00", ("a", 2): "2.00", ("c", 1): "None"}
    slugs = sorted(slug for (slug,) in project.query("select slug from trade_quarantine"))
    assert slugs == ["identity-conflict", "identity-conflict", "null-key"]
    assert_conserved(project, "trade", "seen")
    project.assert_verified()


def test_a_changed_declaration_is_filled_stale_or_frozen_and_a_backfill_settles_it(
    make_project: Make,
) -> None:
    yaml = over_events("""
        item:
          from: events
          columns: {tenant: tenant, id: id, v: {path: v, type: int}}
          record_set: {key: [tenant, id], order_by: [v]}
    """)
    project = make_project(yaml)
    project.lines(
        "data/1.jsonl",
        {"tenant": "t", "id": "a", "v": 1, "size": "3"},
        {"id": "b", "v": 1, "size": "4"},
        {"tenant": "t", "id": "c", "v": "x", "size": "5"},
    )
    project.run()

    # The next run fills a dataset that is added later. An added column makes the existing rows stale.
    yaml = yaml.replace("v: {path: v, type: int}}", "v: {path: v, type: int}, size: {path: size, type: int}}")
    yaml = yaml.rstrip() + "\n  log: {from: events, columns: {id: id}}\n"
    project.declare(yaml)
    project.lines("data/2.jsonl", {"tenant": "t", "id": "d", "v": 1, "size": 6})
    grown = project.run()

    assert result_of(grown, "log_facts").cause == "new_node"
    assert project.rows("log", "id") == {("a",), ("b",), ("c",), ("d",)}
    assert {h.node for h in project.plan().stale} == {"item_facts", "item_quarantine", "item"}
    assert project.rows("item", "id", "size") == {("a", None), ("d", 6)}
    by_dataset = {d.dataset: d for d in project.verify("item").datasets}
    assert (by_dataset["item_facts"].result, by_dataset["item_facts"].stale_rows) == ("stale", 2)

    project.run(RunRequest(backfill="item", only_stale=True))

    assert project.rows("item", "id", "size") == {("a", 3), ("d", 6)}
    assert project.plan().stale == ()
    project.assert_verified()

    # The corrected declaration lets the quarantined fact pass, in the same run as its readers.
    yaml = yaml.replace("tenant: tenant,", "tenant: {path: tenant, default: main},")
    project.declare(yaml)
    project.run(RunRequest(release="item"))

    assert project.rows("item", "tenant", "id", "size") == {("t", "a", 3), ("main", "b", 4), ("t", "d", 6)}
    assert [slug for (slug,) in project.query("select slug from item_quarantine")] == ["does-not-fit"]
    assert_conserved(project, "item", "log")
    project.run(RunRequest(release="item"))
    assert len(project.query("select id from item_facts")) == 3, "a release releases once"
    project.assert_verified("item", "log")

    # Another type freezes the dataset. What is published stays, although facts continue to arrive.
    yaml = yaml.replace("size: {path: size, type: int}", 'size: {path: size, type: "decimal(10,1)"}')
    project.declare(yaml)
    project.lines("data/3.jsonl", {"tenant": "t", "id": "a", "v": 2, "size": 9.5})
    frozen = project.run()

    assert {h.node for h in frozen.plan.frozen} == {"item_facts", "item"}
    assert not [r for r in frozen.results if r.node in ("item_facts", "item")]
    assert project.rows("item", "id", "size") == {("a", 3), ("b", 4), ("d", 6)}
    refused = project.run(RunRequest(release="item"), ok=False)
    assert (result_of(refused, "item_facts").slug, result_of(refused, "item_quarantine").status) == (
        "frozen",
        "blocked",
    )
    assert project.query("select slug from item_quarantine") == [("does-not-fit",)], (
        "it is released into nothing"
    )

    project.run(RunRequest(backfill="item"))

    assert {(i, str(s)) for i, s in project.rows("item", "id", "size")} == {
        ("a", "9.5"),
        ("b", "4.0"),
        ("d", "6.0"),
    }
    assert project.plan().frozen == project.plan().stale == ()
    assert_conserved(project, "item", "log")
    project.assert_verified()

    # Another key freezes it too.
    project.declare(yaml.replace("key: [tenant, id]", "key: [id]"))
    assert {h.node for h in project.plan().frozen} == {"item_facts", "item"}
    project.run(RunRequest(backfill="item"))
    project.assert_verified()


def test_the_guard_holds_back_a_snapshot_and_its_readers_until_it_is_accepted(make_project: Make) -> None:
    project = make_project(
        """
        project: guarded
        sources:
          events: {files: "data/*.jsonl"}
        datasets:
          item:
            from: events
            columns: {id: id, g: g, v: {path: v, type: int}, op: op}
            record_set: {key: [id], order_by: [v], deleted: "op = 'D'"}
            guard: {max_deleted: 50%, at_least: 3}
          log: {from: events, columns: {id: id}}
        jobs:
          - name: sizes
            input_datasets: [item]
            output_dataset: sizes
            incremental: {mode: keyed, key: [g]}
            sql: select g, count(*) as n from item group by g
        """
    )
    project.lines("data/1.jsonl", *({"id": i, "g": "x", "v": 1} for i in "abcde"))
    project.run()
    project.lines("data/2.jsonl", *({"id": i, "v": 2, "op": "D"} for i in "abc"))

    stopped = project.run(ok=False)

    assert stopped.exit_code == 1
    assert {r.node: str(r.status) for r in stopped.results} == {
        "events": "done", "item_facts": "done", "item_quarantine": "unchanged", "item": "guarded",
        "sizes": "blocked", "log_facts": "done", "log_quarantine": "unchanged",
    }  # fmt: skip
    assert "--accept-guard item" in result_of(stopped, "item").error
    assert project.query("select count(*) from item") == [(5,)]
    assert project.rows("sizes") == {("x", 5)}

    again = project.run(ok=False)

    assert str(result_of(again, "item").status) == "guarded", "the next run judges again"

    # The net change counts: one of them comes back before the guard decides again.
    project.lines("data/3.jsonl", {"id": "a", "g": "y", "v": 3})
    project.run()

    assert project.rows("sizes") == {("x", 2), ("y", 1)}
    project.lines("data/4.jsonl", *({"id": i, "v": 9, "op": "D"} for i in "ade"))
    assert project.run(ok=False).exit_code == 1
    project.run(RunRequest(accept_guard=("item",)))

    assert project.query("select count(*) from item") == [(0,)]
    assert project.rows("sizes") == set()
    assert_conserved(project, "item", "log")
    project.assert_verified()


def test_a_deleting_fact_needs_only_its_key_order_and_what_says_that_it_deletes(make_project: Make) -> None:
    project = make_project(
        over_events("""
        item:
          from: events
          columns:
            id: id
            at: {path: at, type: bigint}
            price: {path: price, type: int}
            note: note
            op: op
            rank: {sql: "at * 2"}
          require: [note]
          record_set: {key: [id], order_by: [rank], deleted: "op = 'D'"}
        """)
    )
    project.lines("data/1.jsonl", *({"id": i, "at": 1, "price": 1, "note": "n", "op": "U"} for i in "abcd"))
    project.lines(
        "data/2.jsonl",
        {"id": "a", "at": 2, "price": "not a number", "op": "D"},
        {"id": "b", "at": "never", "note": "n", "op": "D"},
        {"id": "c", "at": 2, "price": "not a number", "note": "n", "op": "U"},
        {"at": 2, "note": "n", "op": "D"},
    )

    project.run()

    assert project.rows("item", "id") == {("b",), ("c",), ("d",)}
    assert sorted(project.query("select slug, reason from item_quarantine")) == [
        ("does-not-fit", "`at` = never does not fit bigint."),
        ("does-not-fit", "`price` = not a number does not fit int."),
        ("null-key", "`id` is part of the key and is missing."),
    ]
    assert_conserved(project, "item")
    project.assert_verified()


def test_a_release_leaves_a_fact_neither_in_both_tables_nor_in_neither(make_project: Make) -> None:
    yaml = over_events("""
        trade:
          from: events
          columns: {id: id, price: {path: price, type: int}, venue: venue}
          require: [venue]
          event_stream: {identity: [id]}
    """)
    project = make_project(yaml)

    def where_they_are() -> tuple[set[object], set[object]]:
        """Positions (file, revision, line) in each table."""
        facts, aside = (
            project.query(f"select _source_position from trade_{t}") for t in ("facts", "quarantine")
        )
        return {tuple(at) for (at,) in facts}, {tuple(at) for (at,) in aside}

    project.lines(
        "data/1.jsonl",
        {"id": "a", "price": 1},
        {"id": "b", "price": 1},
        {"id": "c", "price": 1, "venue": "x"},
    )
    project.run()
    project.lines(
        "data/2.jsonl",
        {"id": "a", "price": 2, "venue": "x"},
        {"id": "c", "price": 3, "venue": "x"},
        {"id": "c", "price": 1},
    )
    project.run()
    facts, aside = where_they_are()
    assert (len(facts), len(aside)) == (2, 4)

    # The first fact of `a` passes now. It was received before the accepted one, so only a backfill can
    # decide.
    project.declare(yaml.replace("venue: venue", "venue: {path: venue, default: x}"))
    refused = project.run(RunRequest(release="trade"), ok=False)

    assert result_of(refused, "trade_facts").slug == "release-overtakes"
    assert "backfill trade --all" in result_of(refused, "trade_facts").error
    assert where_they_are() == (facts, aside)

    project.run(RunRequest(backfill="trade"))

    assert project.rows("trade", "id", "price") == {("a", 1), ("b", 1), ("c", 1)}
    facts, aside = where_they_are()
    assert (len(facts & aside), len(facts | aside)) == (0, 5), "one is a duplicate now"
    assert_conserved(project, "trade")
    project.assert_verified()

    # Without a conflict a release appends what passes. A fact that is now equal to another is a duplicate.
    project.lines("data/3.jsonl", {"id": "d", "price": "one"}, {"id": "b", "price": 7})
    project.run()
    project.run(RunRequest(release="trade"))

    facts, aside = where_they_are()
    assert (len(facts & aside), len(facts | aside)) == (0, 7)
    assert_conserved(project, "trade")
    project.assert_verified()


def test_complete_exports_ranked_by_their_position_delete_what_the_next_one_lacks(make_project: Make) -> None:
    project = make_project(
        """
        project: exports
        sources:
          register: {files: "exports/*.csv", complete: true}
        datasets:
          r:
            from: register
            columns: {v: {type: int}}
            record_set: {key: [k], order_by: [_source_position]}
            guard: off
        """
    )
    project.write("exports/1.csv", "k,v\na,1\nb,1\nc,1\n")
    project.run()
    project.write("exports/3.csv", "k,v\na,3\nc,a misfit\n")
    second = project.run()

    assert result_of(second, "r_facts").counts["derived"] == 1
    assert project.rows("r") == {("a", 3), ("c", 1)}, (
        "a key is in an export although another value of its row does not fit"
    )

    # A late export is compared with both neighbours. The newest lacks a key that only the quarantined row
    # had.
    project.write("exports/2.csv", "k,v\na,2\nd,2\n")
    project.write("exports/4.csv", "k,v\na,4\n")
    project.run()

    assert project.rows("r") == {("a", 4)}
    assert_conserved(project, "r")
    project.assert_verified()


def test_a_late_export_of_the_same_rank_takes_nothing_from_the_one_after_it(make_project: Make) -> None:
    project = make_project(
        """
        project: register
        sources:
          register: {files: "exports/*.csv", complete: true}
        datasets:
          entry:
            from: register
            record_set: {key: [id], order_by: [day]}
        """
    )
    project.write("exports/a.csv", "id,day\n1,1\n2,1\n")
    project.run()
    project.write("exports/c.csv", "id,day\n1,1\n2,1\n3,1\n")
    project.run()
    project.write("exports/b.csv", "id,day\n2,1\n")
    project.run()

    assert project.rows("entry", "id") == {("1",), ("2",), ("3",)}
    project.assert_verified()


def test_an_empty_list_inside_another_clears_the_element_around_it(make_project: Make) -> None:
    project = make_project(
        """
        project: houses
        sources:
          houses: {files: "data/*.jsonl"}
        datasets:
          room:
            from: houses
            explode: floors[].rooms
            columns: {house: house, floor: parent.floor, room: item, v: {path: v, type: int}}
            record_set: {key: [house, floor, room], order_by: [v], children: replace}
        """
    )
    project.lines(
        "data/1.jsonl", {"house": "h", "v": 1, "floors": [{"floor": f, "rooms": ["a", "b"]} for f in "123"]}
    )
    project.run()
    floors = [{"floor": "1", "rooms": []}, {"floor": "2", "rooms": None}, {"floor": "3", "rooms": ["c"]}]
    project.lines("data/2.jsonl", {"house": "h", "v": 2, "floors": floors})
    second = project.run()

    assert project.rows("room", "floor", "room") == {("2", "a"), ("2", "b"), ("3", "c")}
    counts = result_of(second, "room_facts").counts
    assert (counts["offered"], counts["accepted"], counts["derived"]) == (1, 1, 1)

    project.lines(
        "data/3.jsonl",
        {"house": "h", "v": 3, "floors": [{"floor": "2", "rooms": []}, {"floor": "3", "rooms": []}]},
    )
    third = project.run()

    assert project.rows("room") == set()
    assert result_of(third, "room_facts").counts["passed_over"] == 1
    assert_conserved(project, "room")
    outcome = project.verify()
    assert {d.result for d in outcome.datasets} == {"equal", "empty"}


def test_sql_over_the_payload_tells_paths_apart_that_look_alike(make_project: Make) -> None:
    project = make_project(
        over_events("""
        v:
          from: events
          where: "item.kind = 'message'"
          explode: items
          columns:
            case: {sql: "concat_ws(' ', userId, userid)"}
            steps: {sql: "concat_ws(' ', `a.b`, a.b)"}
            one: {sql: "a.b"}
            kind: {sql: "item.kind"}
        """)
    )
    message = {
        "userId": 1,
        "userid": 2,
        "a.b": 3,
        "a": {"b": 4},
        "item": {"kind": "message"},
        "items": [{"kind": "element"}],
    }
    project.lines("data/1.jsonl", message)
    project.run()

    assert project.rows("v", '"case"', "steps", "one", "kind") == {("1 2", "3 4", "4", "element")}
