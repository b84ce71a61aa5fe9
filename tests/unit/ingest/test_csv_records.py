"""Where a CSV record ends, against Python's csv, for whole files and for pieces. Starts no Spark."""

import csv
import io
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.ingest.csv_records import LONGEST_QUOTED, Dialect, Record, split_records
from strandline.ingest.text import decode_line
from strandline.model.errors import Place
from strandline.model.project import FileFormat, FileSource

FIELDS = st.text(st.sampled_from('ab",;\n\r\u00e9\U0001f600 #\\'), max_size=6)


def dialect(**options: str) -> Dialect:
    place = Place(file="strandline.yaml", line=1)
    return Dialect(FileSource(name="a", place=place, files="*.csv", format=FileFormat.CSV, options=options))


def split(data: bytes, *, block: int = 7, more_to_come: bool = False, **options: str) -> list[Record]:
    blocks = [data[i : i + block] for i in range(0, len(data), block)]
    return list(split_records(blocks, dialect(**options), "utf-8", more_to_come=more_to_come))


@settings(max_examples=300)
@given(
    st.lists(st.lists(FIELDS, min_size=2, max_size=3), max_size=8),
    st.sampled_from(["\n", "\r\n"]),
    st.integers(1, 40),
)
def test_what_a_writer_wrote_is_split_into_its_rows(rows: list[list[str]], ending: str, block: int) -> None:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator=ending, quoting=csv.QUOTE_ALL).writerows(rows)

    records = split(out.getvalue().encode(), block=block)

    assert [next(csv.reader(io.StringIO(r.text, newline=""))) for r in records] == rows
    assert all(r.sound for r in records)


@settings(max_examples=300)
@given(st.text(st.sampled_from('ab",\n\r'), max_size=40), st.data())
def test_nothing_is_lost_and_a_file_read_in_pieces_gives_the_same_records(
    text: str, data: st.DataObject
) -> None:
    whole = split(text.encode())

    cut = data.draw(st.sampled_from([0, *(i + 1 for i, c in enumerate(text) if c == "\n")]))
    first = split(text[:cut].encode(), more_to_come=True)
    end = first[-1].start if first and first[-1].waits else cut
    pieces = [r.text for r in first if not r.waits] + [r.text for r in split(text[end:].encode())]

    assert pieces == [r.text for r in whole]
    kept = "".join(r.text for r in whole)
    assert sorted(c for c in kept if c not in "\r\n") == sorted(c for c in text if c not in "\r\n")


def test_comments_blank_lines_and_lone_carriage_returns() -> None:
    data = b'# a\nk,v\n\n  \n# b\na,1\rb,2\r\n"# no comment",3\n'

    assert [r.text for r in split(data, comment="#")] == ["k,v", "a,1", "b,2", '"# no comment",3']
    assert [r.text for r in split(b"a;'x\ny';1\nb;2", sep=";", quote="'")] == ["a;'x\ny';1", "b;2"]
    assert [r.text for r in split(b'"a\\"\nb",1\n', escape="\\")] == ['"a\\"\nb",1']


def test_a_quote_that_nothing_closes_breaks_its_own_line_alone() -> None:
    far = b'x,"open\n' + b"y,1\n" * (LONGEST_QUOTED // 4 + 1) + b'z,"closed"\n'

    records = split(far, block=1 << 16)

    assert [r.text for r in records if not r.sound] == ['x,"open']
    assert len(records) == LONGEST_QUOTED // 4 + 3
    assert [(r.text, r.start, r.waits) for r in split(b'a,1\nx,"open\ny,2\n', more_to_come=True)] == [
        ("a,1", 0, False), ('x,"open', 4, True),
    ]  # fmt: skip


def test_bytes_that_are_not_text_are_shown_and_can_be_told_from_text() -> None:
    assert decode_line(b"caf\xc3\xa9", "utf-8") == ("caf\u00e9", True)
    assert decode_line(b"caf\xe9 \\xe9", "utf-8") == ("caf\\xe9 \\\\xe9", False)
    assert decode_line(b"caf\xe9", "latin-1") == ("caf\u00e9", True)
    assert not split(b"a,\xff\n")[0].sound


def test_a_large_file_is_split_quickly(tmp_path: Path) -> None:
    """Quotes in every line, none of them closed: the work stays proportional."""
    assert len(split(b'x,"a\n' * 20_000, block=1 << 16)) == 10_000


def test_a_row_of_empty_fields_is_a_row_and_blanks_before_a_quote_may_be_skipped() -> None:
    assert [r.text for r in split(b"a\tb\n\t\n4\t\n", sep="\t")] == ["a\tb", "\t", "4\t"]
    assert [r.text for r in split("a\n\u3000\n \t\n".encode())] == ["a", "\u3000"]
    assert [r.text for r in split(b'1, "a\n2, b"\n3, c\n', ignoreLeadingWhiteSpace="true")] == [
        '1, "a\n2, b"',
        "3, c",
    ]
    assert [r.text for r in split(b'1, "a\n2, b"\n')] == ['1, "a', '2, b"']
