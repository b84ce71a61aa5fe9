"""New parts of a source's files: growing, half-written, rewritten and copied files. Starts no Spark."""

import gzip
import io
import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from strandline.ingest.listing import list_files
from strandline.ingest.messages import find_messages
from strandline.ingest.survey import Survey, leave_open, survey
from strandline.model.errors import Place, WorkError
from strandline.model.files import FileRead
from strandline.model.project import FileFormat, FileSource
from strandline.plan.sources import is_pending


@dataclass
class Reader:
    """A source over a folder, and what earlier runs have read from it."""

    folder: Path
    format: FileFormat = FileFormat.JSONL
    offer_again: bool = False
    complete: bool = False
    known: dict[str, FileRead] = field(default_factory=dict)

    @property
    def source(self) -> FileSource:
        place = Place(file="strandline.yaml", line=3)
        return FileSource(
            name="events",
            place=place,
            files=f"**/*.{self.format}*",
            format=self.format,
            complete=self.complete,
            offer_rewritten_again=self.offer_again,
            options={},
        )

    def write(self, name: str, text: str) -> None:
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_bytes(text.encode())
        self._tick(name)

    def add(self, name: str, text: str) -> None:
        with (self.folder / name).open("ab") as out:
            out.write(text.encode())
        self._tick(name)

    def _tick(self, name: str) -> None:
        """Make a write visible in the modification time, however fast the test is."""
        ticks = 1 + max((r.modified_ns for r in self.known.values()), default=1_700_000_000_000_000_000)
        os.utime(self.folder / name, ns=(ticks, ticks))

    def run(self) -> Survey:
        """Do what a run does: open pending files and remember the result."""
        listed = list_files(self.source.files, str(self.folder))
        pending = tuple(f for f in listed if is_pending(f, self.known.get(f.path)))
        surveyed = survey(self.source, str(self.folder), pending, self.known)
        self.known |= {p.read.path: p.read for p in surveyed.pieces} | {r.path: r for r in surveyed.seen}
        return surveyed

    def lines(self) -> list[tuple[str, int, int, str]]:
        """(path, revision, line, text) of each line that a run receives."""
        return [
            (p.read.path, p.read.revision, place, text)
            for p in self.run().pieces
            for place, text in find_messages(self.source, p)
        ]


def numbered(lines: list[tuple[str, int, int, str]]) -> list[tuple[int, str]]:
    return [(place, text) for _, _, place, text in lines]


def test_a_jsonl_file_that_grows_is_read_on_from_where_it_was(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    reader.write("a.jsonl", '{"n":1}\n{"n":2}\n')

    first, quiet = numbered(reader.lines()), reader.run()
    reader.add("a.jsonl", '{"n":3}\n')
    second = numbered(reader.lines())

    assert first == [(1, '{"n":1}'), (2, '{"n":2}')]
    assert quiet == Survey(pieces=(), seen=(), notes=())
    assert second == [(3, '{"n":3}')]


def test_blank_lines_count_as_lines_and_give_no_message(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    reader.write("a.jsonl", '\n{"n":1}\n\n   \n{"n":2}\n\n')

    first = numbered(reader.lines())
    reader.add("a.jsonl", '\n{"n":3}\n')

    assert first == [(2, '{"n":1}'), (5, '{"n":2}')]
    assert numbered(reader.lines()) == [(8, '{"n":3}')]


def test_crlf_ends_a_line_and_is_no_part_of_it(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    reader.write("a.jsonl", '{"n":1}\r\n\r\n{"n":2}\r\n')

    first = numbered(reader.lines())
    reader.add("a.jsonl", '{"n":3}\r\n')

    assert first == [(1, '{"n":1}'), (3, '{"n":2}')]
    assert numbered(reader.lines()) == [(4, '{"n":3}')]


@pytest.mark.parametrize("end", ["\n", "\r\n", "  \n"], ids=["lf", "crlf", "blanks"])
def test_a_last_jsonl_line_that_parses_is_read_and_its_newline_begins_no_line(
    tmp_path: Path, end: str
) -> None:
    reader = Reader(tmp_path)
    reader.write("a.jsonl", '{"n":1}\n{"n":2}')

    first = numbered(reader.lines())
    reader.add("a.jsonl", f'{end}{{"n":3}}\n{{"n":4}}')
    second = numbered(reader.lines())
    reader.add("a.jsonl", end)
    only_the_newline = numbered(reader.lines())
    reader.add("a.jsonl", '{"n":5}\n')

    assert first == [(1, '{"n":1}'), (2, '{"n":2}')]
    assert second == [(3, '{"n":3}'), (4, '{"n":4}')]
    assert only_the_newline == []
    assert numbered(reader.lines()) == [(5, '{"n":5}')]


def test_half_a_jsonl_line_waits_and_is_read_whole_once_it_is_finished(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    reader.write("a.jsonl", '{"n":1}\n{"n":')

    half = reader.run()
    reader.add("a.jsonl", "2}\n")

    assert [p.read.unfinished for p in half.pieces] == [1]
    assert half.notes == ("a.jsonl ends in a line without a newline: it waits (unfinished)",)
    assert numbered(reader.lines()) == [(2, '{"n":2}')]
    assert reader.known["a.jsonl"].unfinished == 0


def test_half_a_line_that_has_not_changed_in_the_next_run_is_read_as_it_is(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    reader.write("a.jsonl", '{"n":1}\n{"n":')

    first = numbered(reader.lines())
    reader.add("a.jsonl", "2")
    changed = numbered(reader.lines())
    unchanged = numbered(reader.lines())

    assert first == [(1, '{"n":1}')]
    assert changed == []
    assert unchanged == [(2, '{"n":2')]
    assert reader.run().pieces == ()


def test_a_last_csv_line_without_newline_waits_although_it_looks_whole(tmp_path: Path) -> None:
    reader = Reader(tmp_path, format=FileFormat.CSV)
    reader.write("a.csv", "id,name\n1,x\n2,y")

    first = reader.run().pieces[0]
    second = reader.run().pieces[0]
    reader.add("a.csv", "\n3,z\n")
    third = reader.run().pieces[0]

    assert (first.end, first.read.rows, first.read.unfinished) == (len("id,name\n1,x\n"), 2, 1)
    assert (second.start, second.first_place, second.read.unfinished) == (first.end, 3, 0)
    assert (third.first_place, third.read.rows) == (4, 4)


def test_a_csv_line_torn_by_its_writer_is_read_once_and_whole(tmp_path: Path) -> None:
    reader = Reader(tmp_path, format=FileFormat.CSV)
    reader.write("a.csv", "id,name\n1,x\n2,lo")
    reader.run()

    reader.add("a.csv", "ng\n")
    piece = reader.run().pieces[0]

    assert (tmp_path / "a.csv").read_bytes()[piece.start : piece.end] == b"2,long\n"
    assert piece.first_place == 3


@pytest.mark.parametrize("text", ['{"n":9}\n{"n":2}\n', '{"n":1}\n'], ids=["changed", "shorter"])
def test_a_file_whose_earlier_part_changed_is_refused_with_what_to_do(tmp_path: Path, text: str) -> None:
    reader = Reader(tmp_path)
    reader.write("a.jsonl", '{"n":1}\n{"n":2}\n')
    reader.run()

    reader.write("a.jsonl", text)
    with pytest.raises(WorkError) as refused:
        reader.run()

    assert refused.value.slug == "file-rewritten"
    assert "`a.jsonl`" in str(refused.value)
    assert "on_rewrite: offer_again" in str(refused.value)


def test_a_rewritten_file_is_its_next_revision_where_that_is_asked_for(tmp_path: Path) -> None:
    reader = Reader(tmp_path, offer_again=True)
    reader.write("a.jsonl", '{"n":1}\n{"n":2}\n')
    reader.run()

    reader.write("a.jsonl", '{"n":9}\n')
    again = reader.lines()
    reader.add("a.jsonl", '{"n":10}\n')

    assert again == [("a.jsonl", 1, 1, '{"n":9}')]
    assert reader.lines() == [("a.jsonl", 1, 2, '{"n":10}')]


def test_a_file_read_whole_is_refused_or_offered_again_when_it_changes(tmp_path: Path) -> None:
    reader = Reader(tmp_path, format=FileFormat.JSON)
    reader.write("a.json", '{"n":1}')
    first = reader.run().pieces[0]

    reader.write("a.json", '{"n":1}')  # saved again without a change
    touched = reader.run()
    reader.write("a.json", '{"n":2}')

    assert (first.whole, first.first_place) == (True, 1)
    assert touched.pieces == ()
    with pytest.raises(WorkError, match="file-rewritten"):
        reader.run()
    reader.offer_again = True
    assert [p.read.revision for p in reader.run().pieces] == [1]


def test_the_same_content_under_a_new_name_is_skipped_and_said(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    reader.write("a.jsonl", '{"n":1}\n')
    reader.run()

    reader.write("b.jsonl", '{"n":1}\n')
    reader.write("c.jsonl", '{"n":2}\n')
    reader.write("d.jsonl", '{"n":2}\n')
    received = reader.run()

    assert [p.read.path for p in received.pieces] == ["c.jsonl"]
    assert {r.path: r.same_as for r in received.seen} == {"b.jsonl": "a.jsonl", "d.jsonl": "c.jsonl"}
    assert len(received.notes) == 2
    assert "b.jsonl has the same content as a.jsonl and was skipped" in received.notes
    assert reader.run() == Survey(pieces=(), seen=(), notes=())


def test_a_skipped_copy_that_goes_its_own_way_is_read(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    reader.write("a.jsonl", '{"n":1}\n')
    reader.write("b.jsonl", '{"n":1}\n')
    reader.run()

    reader.add("b.jsonl", '{"n":2}\n')

    assert reader.lines()[-1] == ("b.jsonl", 0, 2, '{"n":2}')


def test_a_complete_export_is_taken_even_if_it_equals_an_earlier_one_or_is_empty(tmp_path: Path) -> None:
    reader = Reader(tmp_path, format=FileFormat.CSV, complete=True)
    reader.write("1.csv", "id\n1\n")
    reader.write("2.csv", "id\n1\n")
    reader.write("3.csv", "")

    assert [p.read.path for p in reader.run().pieces] == ["1.csv", "2.csv", "3.csv"]
    assert reader.run().pieces == ()


def test_an_empty_file_gives_nothing_until_it_grows(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    reader.write("a.jsonl", "")
    reader.write("b.jsonl", "")

    first = reader.run()
    reader.add("b.jsonl", '{"n":1}\n')

    assert (first.pieces, first.notes) == ((), ())
    assert reader.lines() == [("b.jsonl", 0, 1, '{"n":1}')]


def test_hidden_files_are_not_listed_and_paths_are_relative_to_the_project(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    for name in ("in/2024/a.jsonl", "in/.half.jsonl", "in/_tmp.jsonl"):
        reader.write(name, '{"n":1}\n')

    assert [f.path for f in list_files(reader.source.files, str(tmp_path))] == ["in/2024/a.jsonl"]


def test_a_file_that_cannot_be_read_is_refused_and_the_others_are_taken(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    reader.write("a.jsonl", '{"n":1}\n')
    (tmp_path / "b.jsonl.gz").write_bytes(b"not packed")
    (tmp_path / "gone.jsonl").symlink_to(tmp_path / "nowhere.jsonl")
    (tmp_path / os.fsdecode(b"caf\xe9.jsonl")).write_text('{"n":2}\n')

    received = reader.run()

    assert [p.read.path for p in received.pieces] == ["a.jsonl"]
    assert {path: error.slug for path, error in received.refused.items()} == dict.fromkeys(
        ("b.jsonl.gz", "caf\\xe9.jsonl"), "file-unreadable"
    )
    assert "b.jsonl.gz` cannot be unpacked" in str(received.refused["b.jsonl.gz"])
    assert reader.run().refused.keys() == received.refused.keys(), "they are looked into again"


def test_a_csv_file_that_ends_inside_quotes_waits_as_a_whole_record(tmp_path: Path) -> None:
    reader = Reader(tmp_path, format=FileFormat.CSV)
    reader.write("a.csv", 'k,v\na,1\n"b\n')
    (first,) = reader.run().pieces
    assert not first.final

    reader.known["a.csv"] = leave_open(first, 8).read
    (again,) = reader.run().pieces

    assert (again.start, again.end, again.final) == (8, 11, True), (
        "nothing came in the meantime: it is taken as it is"
    )
    reader.known["a.csv"] = leave_open(first, 8).read
    reader.add("a.csv", 'c",2\n')
    (grown,) = reader.run().pieces

    assert (grown.start, grown.end, grown.final) == (8, 16, False)


def test_a_file_that_was_empty_when_it_was_first_seen_is_not_rewritten_by_being_filled(
    tmp_path: Path,
) -> None:
    reader = Reader(tmp_path)
    (tmp_path / "a.jsonl.gz").write_bytes(b"")
    assert reader.run().pieces == ()

    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b'{"n":1}\n'))

    assert reader.lines() == [("a.jsonl.gz", 0, 1, '{"n":1}')]


@pytest.mark.parametrize("added", ['{"n": 3}\n', '{"n": 3}\n{"n": ', '{"n": 3}\n{"n": 4}'])
def test_each_byte_of_a_file_that_grew_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, added: str
) -> None:
    reader = Reader(tmp_path)
    reader.write("a.jsonl", '{"n": 1}\n{"n": 2}\n')
    reader.run()
    reader.add("a.jsonl", added)
    read: list[int] = []
    really = Path.open

    class Counting(io.BufferedReader):
        def read(self, size: int | None = -1, /) -> bytes:
            block = super().read(size)
            read.append(len(block))
            return block

    monkeypatch.setattr(
        Path, "open", lambda path, mode="r": Counting(io.FileIO(path)) if mode == "rb" else really(path, mode)
    )
    listed = list_files(reader.source.files, str(tmp_path))

    found = survey(reader.source, str(tmp_path), tuple(listed), reader.known)

    assert found.pieces[0].read.rows == 3 + added.endswith("}")
    peeked = 1 + 4  # the byte before the new part, and what tells the encoding
    assert sum(read) <= (tmp_path / "a.jsonl").stat().st_size + peeked
