"""Files as people have them are read correctly, or refused one by one with a remedy.

One project holds them all, and one run reads them.
"""

from collections import defaultdict

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from strandline.app.run import RunOutcome
from strandline.cli.entry import main
from tests.files.csv_files import CSV_FILES, CsvFile
from tests.files.json_files import JSON_FILES, JsonFile
from tests.files.parquet_files import PARQUET_FILES, ParquetFile
from tests.harness import TestProject, result_of
from tests.spark.counts import assert_conserved

pytestmark = pytest.mark.spark

PROJECT = """
    project: nasty
    sources:
      tables: {files: "tables/*", format: csv}
      remarks: {files: "remarks/*.csv", options: {comment: "#", sep: ";", encoding: latin-1}}
      lines: {files: "lines/*", format: jsonl}
      columns: {files: "columns/*.parquet"}
      cdc: {files: "cdc/*.csv"}
      raw: {files: "cdc/*.csv"}
    datasets:
      t: {from: tables, columns: {given: {path: "first name"}}}
      r: {from: remarks, record_set: {key: [k], order_by: [v]}}
      l: {from: lines, columns: {v: v}}
      c: {from: columns}
      change: {from: cdc, where: "__op <> 'r'", columns: {op: {path: __op}, code: {path: _KEY}, o: __outcome}}
      lost: {from: raw}
"""


@pytest.fixture(scope="module")
def nasty(tmp_path_factory: pytest.TempPathFactory) -> tuple[TestProject, RunOutcome]:
    project = TestProject.create(tmp_path_factory.mktemp("nasty"), PROJECT)
    for folder in ("tables", "remarks", "lines", "columns", "cdc"):
        (project.folder / folder).mkdir()
    for table in CSV_FILES:
        (project.folder / "tables" / table.name).write_bytes(table.data)
    for lines in JSON_FILES:
        (project.folder / "lines" / lines.name).write_bytes(lines.data)
    for file in PARQUET_FILES:
        file.write(project.folder / "columns" / f"{file.name}.parquet")
    project.write("remarks/1.csv", "# a remark\nk;v\n# another\na;1\n")
    project.write("cdc/1.csv", "id,ts,__op,v,_key,__outcome\n1,1,c,5,x,q\n2,2,r,6,y,q\n")
    return project, project.run(ok=False)


def by_file(project: TestProject, sql: str) -> dict[str, list[tuple[object, ...]]]:
    """Rows by their file, in the order of the file."""
    rows_by_file: dict[str, list[tuple[object, ...]]] = defaultdict(list)
    for position, *rest in sorted(project.query(sql), key=lambda row: tuple(row[0])):
        name, *_ = position
        rows_by_file[name.rpartition("/")[2]].append(tuple(rest))
    return rows_by_file


def test_every_csv_file_gives_the_rows_that_python_reads_from_it(
    nasty: tuple[TestProject, RunOutcome],
) -> None:
    project, _ = nasty

    rows_by_file = by_file(project, "select _source_position, k, v from t")
    aside = by_file(project, "select _source_position, payload from t_quarantine")

    assert rows_by_file == {f.name: f.rows for f in CSV_FILES if f.rows}
    assert aside == {f.name: [(text,) for text in f.broken] for f in CSV_FILES if f.broken}
    odd = 'select k, given, a_b_, "\U0001f600", a_b_c, "select" from t where k = \'odd headers\''
    assert project.query(odd) == [("odd headers", "Ann", "x", "smile", "eq", "sel")]
    assert {s for (s,) in project.query("select slug from t_quarantine where payload like '%\\\\x%'")} == {
        "not-text"
    }


def test_every_json_file_gives_the_text_that_stands_in_it(nasty: tuple[TestProject, RunOutcome]) -> None:
    project, _ = nasty

    rows_by_file = by_file(project, "select _source_position, v from l")
    aside = by_file(project, "select _source_position, slug from l_quarantine")

    assert rows_by_file == {f.name: [(v,) for v in f.values] for f in JSON_FILES if f.values}
    assert aside == {f.name: [(slug,) for slug in f.broken] for f in JSON_FILES if f.broken}


def test_every_parquet_type_keeps_its_values(nasty: tuple[TestProject, RunOutcome]) -> None:
    project, _ = nasty
    files = [f for f in PARQUET_FILES if f.expected]

    names = ", ".join(f'"{f.name}"' for f in files)
    rows_by_file = by_file(project, f"select _source_position, {names} from c")

    for index, file in enumerate(files):
        assert [row[index] for row in rows_by_file[f"{file.name}.parquet"]] == file.expected, file.name
    ((nested, plain),) = by_file(project, "select _source_position, odd_name, a_b from c")[
        "odd_names.parquet"
    ]
    assert plain == 1
    assert "in_ner_" in str(nested)


def test_a_file_that_cannot_be_read_is_refused_alone_with_what_to_do(
    nasty: tuple[TestProject, RunOutcome],
) -> None:
    project, outcome = nasty

    results = {name: result_of(outcome, name) for name in ("tables", "lines", "columns")}

    assert {r.status for r in results.values()} == {"failed"}
    assert outcome.exit_code == 1
    for name, files in (("tables", CSV_FILES), ("lines", JSON_FILES), ("columns", PARQUET_FILES)):
        for file in files:
            mentioned = f"`{name}/{file.name}" in results[name].error
            assert mentioned == bool(file.refused), (file.name, results[name].error)
            assert file.refused in results[name].error
    assert {r.node for r in outcome.results if str(r.status) == "blocked"} == {"lost_quarantine"}
    assert result_of(outcome, "lost_facts").slug == "metadata-column"
    assert (
        "columns: {op: {path: __op}, key: {path: __key}, outcome: {path: __outcome}}"
        in result_of(outcome, "lost_facts").error
    )
    assert project.rows("change", "id", "ts", "v", "op", "code", "o") == {("1", "1", "5", "c", "x", "q")}


def test_a_verb_that_only_looks_works_beside_odd_files(
    nasty: tuple[TestProject, RunOutcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    project, _ = nasty
    monkeypatch.chdir(project.folder)

    codes = {
        verb: main(verb.split())
        for verb in ("plan", "status", "doctor", "check", "rebuild-catalog", "quarantine t")
    }

    assert set(codes.values()) <= {0, 1}, codes
    assert codes["plan"] == codes["check"] == codes["rebuild-catalog"] == 0


def test_files_that_grow_go_on_where_they_were_and_mended_ones_are_taken(
    nasty: tuple[TestProject, RunOutcome],
) -> None:
    project, _ = nasty
    grown = {
        "lone_cr.csv": "later,9\n",
        "quoted_newlines.csv": '"later\n',
        "blank_lines.csv": "\nlater,9\n",
        "ragged.csv": "later,9\n",
    }
    for name, text in grown.items():
        with (project.folder / "tables" / name).open("a", newline="") as out:
            out.write(text)
    with (project.folder / "remarks/1.csv").open("a") as out:
        out.write(
            "# more\nb;\u00e9\n",
        )
    every: list[CsvFile | JsonFile | ParquetFile] = [*CSV_FILES, *JSON_FILES, *PARQUET_FILES]
    refused = [f for f in every if f.refused]
    for folder in ("tables", "lines", "columns"):
        for path in (project.folder / folder).iterdir():
            if any(path.name.startswith(f.name) for f in refused):
                path.unlink()
    pq.write_table(pa.table({"int8": pa.array([5], pa.int8())}), project.folder / "columns/no_bytes.parquet")
    project.write("tables/twice.csv", "k,v,w\nmended,2,3\n")
    project.declare(
        PROJECT.replace("lost: {from: raw}", "lost: {from: raw, columns: {op: __op, k: _key, o: __outcome}}")
    )

    project.run()

    rows_by_file = by_file(project, "select _source_position, k, v from t")
    assert {
        name: rows_by_file[name][-1] for name in ("lone_cr.csv", "blank_lines.csv", "ragged.csv")
    } == dict.fromkeys(("lone_cr.csv", "blank_lines.csv", "ragged.csv"), ("later", "9"))
    assert rows_by_file["quoted_newlines.csv"][-1] == ("plain", "5"), (
        "its last record waits for the closing quote"
    )
    assert by_file(project, 'select _source_position, "int8" from c')["no_bytes.parquet"] == [(5,)]
    assert rows_by_file["twice.csv"] == [("mended", "2")]
    assert project.rows("r") == {("a", "1"), ("b", "\u00c3\u00a9")}
    assert project.rows("lost", "id", "op", "k", "o") == {("1", "c", "x", "q"), ("2", "r", "y", "q")}

    with (project.folder / "tables/quoted_newlines.csv").open("a", newline="") as out:
        out.write('line",7\n')
    project.run()

    assert by_file(project, "select _source_position, k, v from t")["quoted_newlines.csv"][-1] == (
        "later\nline",
        "7",
    )
    assert_conserved(project, "t", "r", "l", "c", "change", "lost")
    project.assert_verified()
