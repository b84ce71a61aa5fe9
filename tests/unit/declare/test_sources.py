"""Sources: formats, options, and the columns that files have."""

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from strandline.declare.sources.files import find_columns, find_format
from strandline.model.errors import Place
from strandline.model.project import FileFormat, FileSource, HttpSource
from tests.unit.declare.builders import load, report


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ("d/*.jsonl", FileFormat.JSONL),
        ("d/*.ndjson", FileFormat.JSONL),
        ("d/*.jsonl.gz", FileFormat.JSONL),
        ("d/x.JSON", FileFormat.JSON),
        ("d/*.csv.gz", FileFormat.CSV),
        ("d/**/*.parquet", FileFormat.PARQUET),
        ("d/*", None),
        ("d/*.txt", None),
    ],
)
def test_the_ending_tells_the_format(files: str, expected: FileFormat | None) -> None:
    assert find_format(files) is expected


def test_a_source_takes_format_options_and_what_to_do_with_a_rewrite(tmp_path: Path) -> None:
    options = "options: {header: false, sep: ;}, complete: true, on_rewrite: offer_again"
    yaml = f"project: x\nsources: {{a: {{files: 'd/*.txt', format: csv, {options}}}}}"

    source = load(tmp_path, yaml).nodes[0].definition

    assert isinstance(source, FileSource)
    assert (source.format, source.complete, source.offer_rewritten_again) == (FileFormat.CSV, True, True)
    assert source.options == {"header": "false", "sep": ";"}


def source(files: str, **options: str) -> FileSource:
    file_format = find_format(files)
    assert file_format is not None
    return FileSource(
        name="a",
        place=Place(file="strandline.yaml", line=1),
        files=files,
        format=file_format,
        options=options,
    )


def test_the_header_of_every_csv_file_counts(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("\ufeffId;Name\n1;x\n", encoding="utf-8")
    (tmp_path / "b.csv").write_text('Id;"New;One"\n')

    assert find_columns(source("*.csv", sep=";"), tmp_path) == frozenset({"id", "name", "new_one"})


def test_a_csv_file_without_header_has_sparks_names(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,x\n")

    assert find_columns(source("*.csv", header="false"), tmp_path) == frozenset({"_c0", "_c1"})


def test_compressed_csv_and_parquet_are_looked_into(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"id,name\n"))
    pq.write_table(pa.table({"Id": [1], "At": [None]}), tmp_path / "a.parquet")

    assert find_columns(source("*.csv.gz"), tmp_path) == frozenset({"id", "name"})
    assert find_columns(source("*.parquet"), tmp_path) == frozenset({"id", "at"})


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"PAR1 not parquet"])
def test_a_file_that_cannot_be_read_leaves_its_columns_to_run_time(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(content)
    (tmp_path / "a.csv.gz").write_bytes(content)

    assert find_columns(source("*.parquet"), tmp_path) is None
    assert find_columns(source("*.csv.gz"), tmp_path) is None
    assert find_columns(source("none/*.csv"), tmp_path) is None


NATIVE = """
project: x
sources: {register: {files: "*.csv"}}
datasets:
  person:
    from: register
    columns: {name: full_name, born_on: {type: date}}
    record_set: {key: [person_id], order_by: [seq]}
"""


def test_columns_that_files_do_not_have_are_found_when_there_are_files(tmp_path: Path) -> None:
    reported = report(tmp_path, NATIVE, {"a.csv": "personid,fullname,born_on,seq\n"})

    assert "have no column `full_name`.\n  Did you mean `fullname`?" in reported
    assert (
        "`key` of `person` names `person_id`, which is not one of its columns.\n  Did you mean `personid`?"
        in reported
    )


def test_columns_are_left_to_run_time_when_there_are_no_files(tmp_path: Path) -> None:
    assert report(tmp_path, NATIVE) == ""


def test_columns_that_files_have_are_right(tmp_path: Path) -> None:
    assert report(tmp_path, NATIVE, {"a.csv": "person_id,Full_Name,born_on,seq\n"}) == ""


def test_a_renamed_column_has_only_its_new_name(tmp_path: Path) -> None:
    yaml = NATIVE.replace("key: [person_id]", "key: [full_name]")

    reported = report(tmp_path, yaml, {"a.csv": "person_id,full_name,born_on,seq\n"})

    assert "`key` of `person` names `full_name`, which is not one of its columns." in reported


def test_files_that_come_or_go_change_no_configuration(tmp_path: Path) -> None:
    before = load(tmp_path, NATIVE)
    after = load(tmp_path, NATIVE, {"a.csv": "person_id,full_name,born_on,seq\n"})

    assert [node.config for node in before.nodes] == [node.config for node in after.nodes]


def test_the_header_comes_after_comments_and_is_named_as_the_source_keeps_it(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("# made by hand\n\nFirst name,a(b),,__op,_KEY\n")

    assert find_columns(source("*.csv", comment="#"), tmp_path) == frozenset(
        {"first_name", "a_b_", "_c2", "__op", "__key"}
    )


@pytest.mark.parametrize("data", ["k,v\n".encode("utf-16"), b"k,caf\xe9\n", b'k,"two\nlines"\n', b""])
def test_an_odd_file_is_for_the_run_to_refuse(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.csv").write_bytes(b"k,v\n")
    (tmp_path / "b.csv").write_bytes(data)

    assert find_columns(source("*.csv"), tmp_path) is None


PUSHED = """
project: x
sources: {pushed: {http: {}}}
datasets: {item: {from: pushed, columns: {id: id, unit: item.id}, explode: units}}
"""


def test_an_http_source_is_declared_and_has_messages(tmp_path: Path) -> None:
    pushed = load(tmp_path, PUSHED).nodes[0]

    assert isinstance(pushed.definition, HttpSource)
    assert (pushed.kind, pushed.traits.inbox) == ("source", True)


@pytest.mark.parametrize(
    ("written", "slug", "mended"),
    [
        ("{http: {}, files: 'a.jsonl'}", "option-not-taken", "{http: {}}"),
        ("{http: {}, complete: true, format: json}", "option-not-taken", "{http: {}}"),
        ("{http: {port: 1}}", "unknown-key", "{http: {}}"),
        ("{http: true}", "wrong-type", "{http: {}}"),
        ("{complete: false}", "missing-key", "{http: {}}"),
        ("{}", "missing-key", "{files: 'a.jsonl'}"),
    ],
)
def test_what_an_http_source_cannot_have_is_refused(
    written: str, slug: str, mended: str, tmp_path: Path
) -> None:
    assert f"[{slug}]" in report(tmp_path, PUSHED.replace("{http: {}}", written))
    assert report(tmp_path, PUSHED.replace("{http: {}}", mended)) == ""


@pytest.mark.parametrize("lake", ["s3a://bucket/lake", "abfss://lake@account/there"])
def test_an_http_source_needs_a_lake_that_is_a_folder(lake: str, tmp_path: Path) -> None:
    reported = report(tmp_path, PUSHED, environ={"STRANDLINE_LAKE": lake})

    assert "strandline.yaml:3: `pushed` is an HTTP source" in reported
    assert "[inbox-not-local]" in reported
    for local in (str(tmp_path / "there"), f"file://{tmp_path}/lake"):
        assert report(tmp_path, PUSHED, environ={"STRANDLINE_LAKE": local}) == ""
