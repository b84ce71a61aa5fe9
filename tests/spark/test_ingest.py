"""Files of every format are received once, with positions, and nothing is lost (L1, L10).

Rows that do not fit are quarantined.
"""

import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.harness import TestProject, result_of
from tests.spark.counts import assert_conserved, count

pytestmark = pytest.mark.spark

Make = Callable[[str], TestProject]

CSV = """
    project: files
    sources:
      people: {files: "people/*.csv"}
    datasets:
      person:
        from: people
        columns: {age: {type: int}, version: {type: bigint}, called: Name}
        record_set: {key: [id], order_by: [version]}
"""

PEOPLE = """id,Name,note,age,version
1,"Ann ""A"" Lee",,41,1
2,"Bo, Jr.","",12,1

3,short
4,x,y,5,1,long
5,Eve,n,old,1
,Nul,n,1,1
6,last,n,7,1"""


def positions(project: TestProject, source: str, *columns: str) -> list[tuple[object, ...]]:
    """(file, revision, place, columns...) of each received row, in the order of the source."""
    rows = project.query(f"select _source_position, {', '.join(columns)} from {source}")
    return sorted(((*at, *rest) for at, *rest in rows), key=str)


def test_csv_rows_keep_what_was_written_and_what_is_broken_goes_to_the_quarantine(make_project: Make) -> None:
    project = make_project(CSV)
    project.write("people/1.csv", PEOPLE)

    first = project.run()

    assert project.rows("person", "id", "called", "note", "age") == {
        ("1", 'Ann "A" Lee', None, 41),
        ("2", "Bo, Jr.", "", 12),
    }
    assert result_of(first, "people").counts == {"received": 6, "unfinished": 1}
    assert positions(project, "people", "id")[0][:3] == ("people/1.csv", 0, 1)
    refused = project.query("select slug, payload from person_quarantine order by payload")
    assert sorted(slug for slug, _ in refused) == ["does-not-fit", "null-key", "type-changed", "type-changed"]
    assert ("type-changed", "3,short") in refused
    assert ("type-changed", "4,x,y,5,1,long") in refused

    # The file grows by whole lines and the half line is completed. A later file has one more column and
    # another order.
    with (project.folder / "people/1.csv").open("a") as out:
        out.write("\n7,grown,n,8,1\n")
    project.write("people/2.csv", "version,id,city,Name,age,note\n2,1,Delft,Ann,42,\n1,8,Oslo,Ola,9,\n")
    project.run()

    assert project.rows("person", "id", "called", "age", "city") == {
        ("1", "Ann", 42, "Delft"),
        ("2", "Bo, Jr.", 12, None),
        ("6", "last", 7, None),
        ("7", "grown", 8, None),
        ("8", "Ola", 9, "Oslo"),
    }
    assert assert_conserved(project, "person")["person"] == {
        "offered": 10, "accepted": 6, "duplicates": 0, "quarantined": 4, "passed_over": 0, "derived": 0,
    }  # fmt: skip
    places = [place for path, _, place, _ in positions(project, "people", "id") if path == "people/1.csv"]
    assert len(places) == len(set(places)) == 8
    project.assert_verified()


def test_a_rewritten_file_fails_its_source_alone_until_its_next_revision_is_asked_for(
    make_project: Make,
) -> None:
    also = """
      other: {files: "other/*.jsonl"}
    datasets:
      thing: {from: other, columns: {id: id}}
"""
    yaml = CSV.replace("    datasets:\n", also.removeprefix("\n"))
    project = make_project(yaml)
    project.write("people/1.csv", "id,Name,age,version\n1,a,1,1\n2,b,2,1\n")
    project.lines("other/1.jsonl", {"id": "x"})
    project.run()

    project.write("people/1.csv", "id,Name,age,version\n1,A,1,2\n")
    project.lines("other/2.jsonl", {"id": "y"})
    refused = project.run(ok=False)

    assert refused.exit_code == 1
    assert result_of(refused, "people").slug == "file-rewritten"
    assert {r.node: str(r.status) for r in refused.results if r.node.startswith("person")} == {
        "person_facts": "blocked", "person_quarantine": "blocked", "person": "blocked",
    }  # fmt: skip
    assert project.rows("person", "id", "called") == {("1", "a"), ("2", "b")}
    assert project.rows("thing", "id") == {("x",), ("y",)}

    project.declare(yaml.replace('"people/*.csv"', '"people/*.csv", on_rewrite: offer_again'))
    project.run()

    assert project.rows("person", "id", "called") == {("1", "A"), ("2", "b")}
    assert [p[1:] for p in positions(project, "people", "id")] == [(0, 1, "1"), (0, 2, "2"), (1, 1, "1")]
    assert_conserved(project, "person", "thing")
    project.assert_verified()


def test_packed_multi_line_and_headless_csv_lose_no_row(make_project: Make) -> None:
    project = make_project(
        """
        project: files
        sources:
          packed: {files: "packed/*.csv.gz"}
          long: {files: "long/*.csv", options: {multiLine: true}}
          bare: {files: "bare/*.csv", options: {header: false, sep: ";"}}
        datasets:
          p: {from: packed}
          l: {from: long}
          b: {from: bare}
        """
    )
    for folder in ("packed", "long", "bare"):
        (project.folder / folder).mkdir()
    (project.folder / "packed/1.csv.gz").write_bytes(gzip.compress(b"id,name\n1,no newline at the end"))
    (project.folder / "long/1.csv").write_text('id,text\n1,"two\nlines"\n2,one\n')
    (project.folder / "bare/1.csv").write_text("1;a\n2;b\n")

    outcome = project.run()

    assert project.rows("p") == {("1", "no newline at the end")}
    assert project.rows("l") == {("1", "two\nlines"), ("2", "one")}
    assert project.rows("b") == {("1", "a"), ("2", "b")}
    assert [result_of(outcome, name).counts["received"] for name in ("packed", "long", "bare")] == [1, 2, 2]
    assert_conserved(project, "p", "l", "b")
    project.assert_verified()


PARQUET = """
    project: files
    sources:
      trades: {files: "trades/*.parquet"}
    datasets:
      trade:
        from: trades
        columns: {traded_at: {type: timestamp}}
        event_stream: {identity: [id]}
"""


def write_parquet(project: TestProject, path: str, **columns: pa.Array) -> None:
    target = project.folder / path
    target.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), target)


def test_parquet_types_are_widened_zoneless_times_are_utc_and_a_changed_type_is_quarantined(
    make_project: Make,
) -> None:
    project = make_project(PARQUET)
    noon = datetime(2024, 1, 13, 12, 0)  # noqa: DTZ001 - the file's own, without a zone
    write_parquet(
        project, "trades/1.parquet",
        ID=pa.array([1, 2], pa.int32()), qty=pa.array([1.5, 2.5], pa.float32()),
        traded_at=pa.array([noon, noon], pa.timestamp("us")), nothing=pa.nulls(2),
    )  # fmt: skip

    first = project.run()

    assert result_of(first, "trade_facts").counts["accepted"] == 2
    assert project.rows("trade", "id", "qty", "traded_at") == {
        (i, i + 0.5, noon.replace(tzinfo=UTC)) for i in (1, 2)
    }

    # A wider integer is accepted, a new column is added, and a repeated fact counts once. Rows of another
    # type are quarantined.
    write_parquet(
        project, "trades/2.parquet", id=pa.array([2, 3], pa.int64()), qty=pa.array([2.5, 3.5], pa.float64()),
        traded_at=pa.array([noon, noon], pa.timestamp("us")), venue=pa.array([None, "X"]),
    )  # fmt: skip
    write_parquet(
        project, "trades/3.parquet", id=pa.array(["4", "5"]), qty=pa.array([4.5, 5.5]),
        traded_at=pa.array([noon, noon], pa.timestamp("us")), broker=pa.array(["b", "c"]),
    )  # fmt: skip
    project.run()

    assert project.rows("trade", "id", "qty", "venue") == {(1, 1.5, None), (2, 2.5, None), (3, 3.5, "X")}
    assert assert_conserved(project, "trade")["trade"] == {
        "offered": 6, "accepted": 3, "duplicates": 1, "quarantined": 2, "passed_over": 0, "derived": 0,
    }  # fmt: skip
    refused = [
        json.loads(str(payload))
        for (payload,) in project.query("select payload from trade_quarantine where slug = 'type-changed'")
    ]
    assert sorted((r["id"], r["qty"], r["broker"]) for r in refused) == [("4", 4.5, "b"), ("5", 5.5, "c")]
    assert [p[:3] for p in positions(project, "trades", "qty")] == [
        (f"trades/{file}.parquet", 0, row) for file in (1, 2, 3) for row in (1, 2)
    ]
    project.assert_verified()


def test_json_documents_arrays_and_packed_ones_are_messages_with_their_own_text(make_project: Make) -> None:
    project = make_project(
        """
        project: files
        sources:
          notes: {files: "notes/*.json*", format: json}
        datasets:
          note: {from: notes, columns: {id: id, amount: {path: amount, type: "decimal(20,2)"}}, require: [id]}
        """
    )
    project.write("notes/1.json", '  {"id": "doc",\n "amount": 1.10}\n')
    project.write(
        "notes/2.json", '[ {"id": "a", "amount": "2"}, {"id": "b]", "x": [1, {"y": "},{"}]},\n 7, null ]'
    )
    project.write("notes/3.json", '[{"id": "half"}')
    project.write("notes/4.json", "[]")
    (project.folder / "notes/5.json.gz").write_bytes(gzip.compress(b'[{"id": "z"}, {"amount": 1}]'))

    first = project.run()

    assert {(i, str(a) if a is not None else None) for i, a in project.rows("note")} == {
        ("doc", "1.10"), ("a", "2.00"), ("b]", None), ("z", None),
    }  # fmt: skip
    assert result_of(first, "notes").counts == {"received": 8}
    assert positions(project, "notes", "_payload") == [
        ("notes/1.json", 0, 1, '{"id": "doc",\n "amount": 1.10}'),
        ("notes/2.json", 0, 1, '{"id": "a", "amount": "2"}'),
        ("notes/2.json", 0, 2, '{"id": "b]", "x": [1, {"y": "},{"}]}'),
        ("notes/2.json", 0, 3, "7"),
        ("notes/2.json", 0, 4, "null"),
        ("notes/3.json", 0, 1, '[{"id": "half"}'),
        ("notes/5.json.gz", 0, 1, '{"id": "z"}'),
        ("notes/5.json.gz", 0, 2, '{"amount": 1}'),
    ]
    assert sorted(slug for (slug,) in project.query("select slug from note_quarantine")) == [
        "not-json"
    ] * 3 + ["required-missing"]
    assert_conserved(project, "note")
    project.assert_verified()


def test_a_growing_jsonl_file_and_a_copy_of_it_are_received_once(make_project: Make) -> None:
    project = make_project(
        """
        project: files
        sources:
          events: {files: "in/*.jsonl"}
        datasets:
          event: {from: events, columns: {n: {path: n, type: int}}}
        """
    )
    project.write("in/a.jsonl", '{"n":1}\r\n\r\n{"n":2}')
    project.run()
    (project.folder / "in/b.jsonl").write_bytes((project.folder / "in/a.jsonl").read_bytes())
    with (project.folder / "in/a.jsonl").open("a") as out:
        out.write('\n{"n":3}\n{"n":')

    second = project.run()

    assert result_of(second, "events").counts == {"received": 1, "unfinished": 1}
    assert positions(project, "events", "_payload") == [
        ("in/a.jsonl", 0, n, f'{{"n":{m}}}') for n, m in ((1, 1), (3, 2), (4, 3))
    ]

    third = project.run()

    assert result_of(third, "event_facts").counts["quarantined"] == 1
    assert count(project, "event") == 3
    assert project.run().results == ()
    assert_conserved(project, "event")
    project.assert_verified()
