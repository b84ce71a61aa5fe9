"""CSV files as people have them, each with the rows that Python's own csv reads, or what is expected."""

import codecs
import csv
import gzip
import io
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class CsvFile:
    """A file and what is expected of it.

    `rows` holds (k, v) of each row that is received and fits, `broken` the payloads of rows in the
    quarantine, `refused` the slug.
    """

    name: str
    data: bytes
    rows: list[tuple[str | None, str | None]] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    refused: str = ""


def read_by_python(data: bytes, encoding: str = "utf-8-sig") -> list[tuple[str | None, str | None]]:
    """The columns k and v, read by code that is not ours.

    It cannot distinguish an empty field from a quoted empty one.
    """
    csv.field_size_limit(1 << 30)
    header, *rows = [row for row in csv.reader(io.StringIO(data.decode(encoding), newline="")) if row]
    k, v = header.index("k"), header.index("v")
    return [(row[k] or None, row[v] or None) for row in rows]


def _plain(name: str, text: str, encode: Callable[[str], bytes] = str.encode) -> CsvFile:
    return CsvFile(name, encode(text), rows=read_by_python(text.encode()))


_ROWS = "k,v\none,1\ntwo,2\n"
LONG = "x" * 2_000_000

CSV_FILES = [
    _plain("plain.csv", _ROWS),
    _plain("bom.csv", _ROWS.replace("one", "bom"), lambda t: codecs.BOM_UTF8 + t.encode()),
    _plain(
        "utf_16_le.csv",
        _ROWS.replace("one", "\u00e9 \U0001f600 le"),
        lambda t: codecs.BOM_UTF16_LE + t.encode("utf-16-le"),
    ),
    _plain(
        "utf_16_be.csv",
        _ROWS.replace("one", "\u00e9 \U0001f600 be"),
        lambda t: codecs.BOM_UTF16_BE + t.encode("utf-16-be"),
    ),
    _plain("utf_32.csv", _ROWS.replace("one", "thirty-two"), lambda t: t.encode("utf-32")),
    _plain("crlf.csv", "k,v\r\ncrlf,1\r\ntwo,2\r\n"),
    _plain("lone_cr.csv", "k,v\ncr one,1\rcr two,2\ncr three,3\n"),
    _plain("only_cr.csv.gz", "k,v\rmac,1\rtwo,2\r", lambda t: gzip.compress(t.encode())),
    _plain(
        "quoted_newlines.csv",
        'k,v\n"two\nlines",1\n"win\r\ndows",2\n"a ""quoted""\nword","3\n\n4"\nplain,5\n',
    ),
    _plain("no_last_newline.csv.gz", "k,v\nlast,1", lambda t: gzip.compress(t.encode())),
    _plain("blank_lines.csv", "\n\nk,v\n\nblank,1\n\nlines,2\n\n"),
    _plain("quotes_inside.csv", 'k,v\n5" pipe,1\n6"" pipe,2\n"a, b",3\n'),
    _plain("\u00fcn\u00ef \U0001f600 100% #1.csv", _ROWS.replace("one", "odd name of a file")),
    _plain(
        "more_columns.csv", "v,k,first name,a(b),\U0001f600,a=b;c,select\n1,odd headers,Ann,x,smile,eq,sel\n"
    ),
    _plain("one_long_line.csv", f"k,v\nlong,{LONG}\n"),
    _plain("digits.csv", "k,v\ndigits,123456789012345678901234567890.1234567890\n"),
    _plain("same_as_nothing.csv", "k,v\n"),
    CsvFile("empty.csv", b""),
    CsvFile("only_blanks.csv", b"\n\n  \n"),
    CsvFile(
        "null_and_empty.csv",
        b'k,v\nempty,""\nnull,\nnul,\x00\n\x00first,1\n',
        rows=[("empty", ""), ("null", None), ("nul", "\x00"), ("\x00first", "1")],
    ),
    CsvFile(
        "ragged.csv", b"k,v\nshort\ngood,1\nlong,1,2\n", rows=[("good", "1")], broken=["short", "long,1,2"]
    ),
    CsvFile(
        "commas.csv", b"k,v\nfew,1\n" + b"," * 30_000 + b"\n", rows=[("few", "1")], broken=["," * 30_000]
    ),
    CsvFile(
        "latin_1.csv",
        b"k,v\ncaf\xe9,1\nback\\slash \xff,2\nok,3\n",
        rows=[("ok", "3")],
        broken=["caf\\xe9,1", "back\\\\slash \\xff,2"],
    ),
    CsvFile(
        "open_quote.csv.gz",
        gzip.compress(b'k,v\nbefore,1\n"never closed,2\nafter,3\n'),
        rows=[("before", "1"), ("after", "3")],
        broken=['"never closed,2'],
    ),
    CsvFile("twice.csv", b"k,v,V\n1,2,3\n", refused="columns-coincide"),
    CsvFile("coincide.csv", b"k,v,a b,a_b\n1,2,3,4\n", refused="columns-coincide"),
    CsvFile("reserved.csv", b"k,v,__strandline_slug\n1,2,3\n", refused="metadata-column"),
    CsvFile("cut_off.csv.gz", gzip.compress(_ROWS.encode() * 1000)[:-30], refused="file-unreadable"),
    CsvFile("not_packed.csv.gz", b"k,v\n1,2\n", refused="file-unreadable"),
    CsvFile(
        "half_utf_16.csv", codecs.BOM_UTF16_LE + "k,v\n".encode("utf-16-le") + b"\x00", refused="not-text"
    ),
    CsvFile("header.csv", b"k,v,caf\xe9\n1,2,3\n", refused="not-text"),
]
