"""The remedies of errors in tasks settle them.

One project contains every mistake. One run meets them all, and the next run follows the remedies.
"""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from strandline.app.planning import RunRequest
from strandline.app.run import RunOutcome
from strandline.cli import main
from strandline.compute.job import partitioned as partitions
from strandline.ingest import receive
from strandline.ingest import survey as surveying
from strandline.lake import staging
from strandline.model.plan import TaskResult
from tests.harness import TestProject, result_of

pytestmark = pytest.mark.spark

PROJECT = """
    project: remedies
    sources:
      events: {files: "events/*.jsonl"}
      tables: {files: "tables/*.csv"}
      columns: {files: "columns/*.parquet"}
      coded: {files: "coded/*.csv", options: {encoding: klingon}}
      exports: {files: "exports/*.csv", complete: true}
      lacking: {files: "lacking/*.parquet"}
      links: {files: "links/*.parquet"}
    datasets:
      item:
        from: events
        columns: {id: id, k: k, v: {path: v, type: bigint}, at: {path: at, type: bigint}}
        record_set: {key: [id], order_by: [at]}
      export:
        from: exports
        columns: {day: {type: date}}
        record_set: {key: [id], order_by: [day]}
      lack: {from: lacking, record_set: {key: [id], order_by: [at]}}
      link: {from: links}
      twice: {key: [k]}
    chains:
      canonical: {from: link, number: number, hash: hash, parent: parent, head: longest}
    jobs:
      - name: refused
        output_dataset: refused
        input_datasets: [item]
        incremental: {mode: full}
        sql: select k, no_such(v) as n from item
      - {name: raised, output_dataset: raised, input_datasets: [item], incremental: {mode: full},
         python: "jobs/code.py:raised"}
      - {name: maps, output_dataset: maps, input_datasets: [item], incremental: {mode: full},
         sql: "select id, k, map(k,v) as m from item"}
      - name: ranked
        output_dataset: ranked
        input_datasets: [maps]
        incremental: {mode: full}
        sql: select id, row_number() over (partition by k order by struct(*)) as n from maps
      - {name: returned, output_dataset: returned, input_datasets: [item], incremental: {mode: full},
         python: "jobs/code.py:returned"}
      - {name: coincide, output_dataset: coincide, input_datasets: [item], incremental: {mode: full},
         python: "jobs/code.py:coincide"}
      - name: keyless
        output_dataset: keyless
        input_datasets: [item]
        incremental: {mode: keyed, key: [k], inputs: {item: whole}}
        python: "jobs/code.py:keyless"
      - name: mapped
        output_dataset: mapped
        input_datasets: [item]
        incremental: {mode: keyed, key: [m], inputs: {item: whole}}
        sql: select map(k, v) as m, count(*) as n from item group by k, v
      - {name: twice, output_dataset: twice, input_datasets: [item], incremental: {mode: full},
         sql: "select k, v from item"}
      - name: large
        output_dataset: large
        input_datasets: [item]
        incremental: {mode: full}
        config: {large: BIG}
        sql: select k, :large as large from item
      - name: typed
        output_dataset: typed
        input_datasets: [link]
        incremental: {mode: partition}
        partition: {column: number, size: 10}
        sql: select * from link
      - name: many
        output_dataset: many
        input_datasets: [item]
        incremental: {mode: partition}
        partition: {column: v, size: 1}
        sql: select * from item
""".replace("BIG", "1" + "0" * 39)
CODE = """\
from pyspark.sql import functions as F


def raised(inputs, context):
    return inputs["item"].select(context.config["nothing"])


def returned(inputs, context):
    return ["item"]


def coincide(inputs, context):
    return inputs["item"].select("k", F.col("v").alias("K"))


def keyless(inputs, context):
    return inputs["item"].groupBy("k").agg(F.sum("v").alias("v")).drop("k")
"""
MENDS: dict[str, tuple[str, str, str, str]] = {
    # node: its slug, words of the remedy, and an edit of the project or the code that follows them
    "refused": ("sql-refused", "Correct the SQL.", "no_such(v)", "abs(v)"),
    "raised": ("python-raised", "Correct the function.", 'context.config["nothing"]', '"k"'),
    "returned": ("python-result", "Return a Spark DataFrame.", '["item"]\n', 'inputs["item"]\n'),
    "coincide": ("columns-coincide", "Give each a name of its own with `AS`.", 'alias("K")', 'alias("v")'),
    "keyless": ("key-not-in-result", "Add it, or name another key: the columns are v.", '.drop("k")', ""),
    "mapped": (
        "key-type",
        "`map_entries(...)`, sorted",
        "map(k, v) as m",
        "array_sort(map_entries(map(k, v))) as m",
    ),
    "twice": (
        "key-not-unique",
        "or the key of `twice` under `datasets:`",
        "twice: {key: [k]}",
        "twice: {key: [k, v]}",
    ),
    "large": ("parameter-type", "a number of at most 38 digits", "1" + "0" * 39, "1" + "0" * 36),
    "ranked": (
        "sql-refused",
        "Correct the SQL.",
        "struct(*)",
        "struct(* EXCEPT (m), array_sort(map_entries(m)))",
    ),
    "typed": (
        "partition-type",
        "Give the column a type where it is declared and backfill that dataset with `--all`",
        "link: {from: links}",
        "link: {from: links, columns: {number: {type: bigint}}}",
    ),
    "canonical": (
        "chain-types",
        "of `link` and run `strandline backfill link --all`",
        "",
        "",
    ),  # the same edit
    "many": ("too-many-partitions", "Make them larger", "size: 1}", "size: 100}"),
    "coded": (
        "unknown-encoding",
        "Write `options: {encoding: utf-8}`",
        "encoding: klingon",
        "encoding: utf-8",
    ),
    "export_facts": (
        "export-not-one-rank",
        "or by [_source_position]",
        "order_by: [day]",
        "order_by: [_source_position]",
    ),
    "lack_facts": (
        "missing-column",
        "or map it under `columns:`",
        "{from: lacking, ",
        "{from: lacking, columns: {at: {path: when}}, ",
    ),
}
FILES = {
    # refused file: its slug, words of the remedy
    "tables/coincide.csv": ("columns-coincide", "Rename one of them in the file."),
    "tables/header.csv": ("not-text", "Write the file again as UTF-8 with one line of column names"),
    "tables/wide.csv": ("too-many-columns", "Write fewer columns"),
    "columns/damaged.parquet": ("file-unreadable", "Write it again, or move it out of the source's folder."),
    "columns/digits.parquet": (
        "type-not-kept",
        "Write them as another type: text, say, or a decimal of at most 38 digits.",
    ),
}


def write_wrong(project: TestProject) -> None:
    """Write every file. Some of them are refused."""
    project.write("jobs/code.py", CODE)
    project.lines(
        "events/1.jsonl", *({"id": str(n), "k": "ab"[n % 2], "v": n // 2, "at": 1} for n in range(8))
    )
    project.write("tables/right.csv", "a,b\n1,2\n")
    project.write("tables/coincide.csv", "a,A\n1,2\n")
    (project.folder / "tables/header.csv").write_bytes(b"a,\xff\n1,2\n")
    project.write("tables/wide.csv", ",".join(f"c{i}" for i in range(20_001)) + "\n")
    project.write("coded/1.csv", "a\n1\n")
    project.write("exports/1.csv", "id,day\n1,2024-01-01\n2,2024-01-02\n")
    for folder in ("columns", "links", "lacking"):
        (project.folder / folder).mkdir()
    pq.write_table(pa.table({"id": ["1"], "when": [5]}), project.folder / "lacking/1.parquet")
    project.write("lacking/damaged.parquet", "so `check` cannot tell the columns")
    pq.write_table(pa.table({"a": [1]}), project.folder / "columns/right.parquet")
    project.write("columns/damaged.parquet", "PAR1 and no more")
    digits = pa.array([10**45], pa.decimal256(50, 0))
    pq.write_table(pa.table({"a": digits}), project.folder / "columns/digits.parquet")
    blocks = pa.table({"number": [1.0, 2.0], "hash": ["a", "b"], "parent": ["", "a"]})
    pq.write_table(blocks, project.folder / "links/1.parquet")


def write_right(project: TestProject) -> None:
    """Write the refused files as the messages say."""
    project.write("tables/coincide.csv", "a,b\n3,4\n")
    project.write("tables/header.csv", "a,ÿ\n5,6\n")
    project.write("tables/wide.csv", "a,b\n7,8\n")
    (project.folder / "lacking/damaged.parquet").rename(project.folder / "moved.parquet")
    pq.write_table(pa.table({"a": [2]}), project.folder / "columns/damaged.parquet")
    pq.write_table(pa.table({"a": [3]}), project.folder / "columns/digits.parquet")


def mend(text: str) -> str:
    for _, _, old, new in MENDS.values():
        text = text.replace(old, new) if old else text
    return text


@pytest.fixture(scope="module")
def mended(tmp_path_factory: pytest.TempPathFactory) -> "Mended":
    """The project, the run with every mistake, and the tasks after all mistakes were corrected."""
    project = TestProject.create(tmp_path_factory.mktemp("remedies") / "project", PROJECT)
    write_wrong(project)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partitions, "MOST_PARTITIONS", 2)
        wrong = project.run(ok=False)
        project.declare(mend(PROJECT))
        project.write("jobs/code.py", mend(CODE))
        write_right(project)
        thawed = project.run(RunRequest(backfill="link"), ok=False)  # as the errors about its types say
        right = project.run(ok=False)
    return project, wrong, (*thawed.results, *right.results)


Mended = tuple[TestProject, RunOutcome, tuple[TaskResult, ...]]


@pytest.mark.parametrize("node", MENDS)
def test_a_task_that_failed_is_done_after_the_edit_that_its_error_tells(mended: Mended, node: str) -> None:
    _, wrong, right = mended
    slug, remedy, _, _ = MENDS[node]

    assert result_of(wrong, node).slug == slug, result_of(wrong, node).error
    assert remedy in result_of(wrong, node).error
    assert [(str(r.status), r.error) for r in right if r.node == node] == [("done", "")]


def test_files_that_were_refused_are_received_once_they_are_written_as_their_errors_tell(
    mended: Mended,
) -> None:
    project, wrong, right = mended
    errors = {source: result_of(wrong, source).error for source in ("tables", "columns")}

    for file, (slug, _) in FILES.items():
        assert f"`{file}`" in errors[file.partition("/")[0]]
        assert f"[{slug}]" in errors[file.partition("/")[0]]
    assert [r.error for r in right if r.node in errors] == ["", ""]
    assert sorted(project.rows("tables", "a")) == [("1",), ("3",), ("5",), ("7",)]
    assert sorted(project.rows("columns", "a")) == [(1,), (2,), (3,)]


def test_nothing_is_lost_by_what_went_wrong_before(mended: Mended) -> None:
    project, *_ = mended

    assert project.rows("many", "id") == project.rows("item", "id") == {(str(n),) for n in range(8)}
    assert project.rows("canonical", "hash") == project.rows("typed", "hash") == {("a",), ("b",)}
    assert project.rows("lack", "id", "at") == {("1", 5)}
    assert project.rows("export", "id") == {("1",), ("2",)}
    assert project.plan().tasks == ()
    assert project.rows("ranked", "id", "n") == {(str(n), n // 2 + 1) for n in range(8)}
    project.assert_verified("ranked")


SMALL = """
    project: small
    sources:
      events: {files: "events/*.jsonl"}
    datasets:
      item:
        from: events
        columns: {id: id, k: k, v: {path: v, type: bigint}}
        record_set: {key: [id], order_by: [v]}
    jobs:
      - name: tell
        input_datasets: [item]
        output_dataset: told
        incremental: {mode: cursor, cursor_column: v, unique_key: [id]}
        update_strategy: append
        sql: select id, v, k from item
"""


def test_what_is_told_to_be_run_is_run_and_settles_it(
    make_project: Callable[[str], TestProject],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    project = make_project(SMALL)
    project.lines("events/1.jsonl", *({"id": str(n), "k": "x", "v": n} for n in range(4)))

    def call(*words: str) -> tuple[int, str]:
        code = main([*words, "--project", str(project.folder)])
        return code, capsys.readouterr().err

    query, invalidate = (
        ("query", "select * from item"),
        ("invalidate", "item", "--where", "v = 1", "--reason", "checked"),
    )
    assert "Run `strandline run` first.  [never-built]" in call(*query)[1]
    assert "Run `strandline run` first.  [not-built]" in call(*invalidate)[1]

    # A file that became shorter while it was read.
    survey = surveying.survey

    def shorten(*arguments: object) -> object:
        surveyed = survey(*arguments)  # type: ignore[arg-type]
        project.lines("events/1.jsonl", *({"id": str(n), "k": "x", "v": n} for n in range(3)))
        return surveyed

    monkeypatch.setattr(receive, "survey", shorten)
    outcome = project.run(ok=False)
    monkeypatch.undo()

    assert result_of(outcome, "events").slug == "file-changed"
    assert "Run again." in result_of(outcome, "events").error

    # Counts that Spark lost.
    find_counts = staging.find_counts
    lost: list[object] = []
    monkeypatch.setattr(staging, "find_counts", lambda o: find_counts(o) if lost else lost.append(o))
    outcome = project.run(ok=False)
    monkeypatch.undo()

    assert [
        (r.slug, "Run again." in r.error) for r in outcome.results if r.error and r.slug != "blocked"
    ] == [("counts-lost", True)]
    project.run()
    assert project.rows("told", "id") == {("0",), ("1",), ("2",)}

    # What was never built exists now.
    assert call(*query)[0] == call(*invalidate)[0] == 0
    assert "Write it as 5%, more than 0% and at most 100%.  [bad-share]" in call("verify", "--sample", "0")[1]
    assert call("verify", "item", "--sample", "5%")[0] in (0, 4)  # 4 is not a key of the sample
    spark = ("query", "select id from item lateral view explode(array(1)) e as x")
    assert "`--engine spark` uses Spark's.  [bad-sql]" in call(*spark)[1]
    assert call(*spark, "--engine", "spark")[0] == 0

    # The published rows of an appending job do not fit the new type of the column.
    project.declare(SMALL.replace("v, k from item", "v, length(k) as k from item"))
    outcome = project.run(RunRequest(backfill="tell"), ok=False)

    assert result_of(outcome, "told").slug == "published-does-not-fit"
    assert (
        "Give the column another name in the job, so that the old one is kept beside it"
        in result_of(outcome, "told").error
    )
    project.declare(SMALL.replace("v, k from item", "v, length(k) as letters from item"))
    project.lines("events/2.jsonl", {"id": "7", "k": "seven", "v": 7})
    project.run(RunRequest(backfill="tell"))
    project.run()
    assert project.rows("told", "id", "k", "letters") == {
        ("0", "x", None),
        ("1", "x", None),
        ("2", "x", None),
        ("7", None, 5),
    }
