"""JSON as people have it: lines, documents, and numbers of every form."""

import codecs
import gzip
import json
from dataclasses import dataclass, field

_DEEP = 50


@dataclass(frozen=True)
class JsonFile:
    """A file and what is expected of it.

    `values` holds the text of `v` in each message that is read, `broken` the slugs of messages in the
    quarantine.
    """

    name: str
    data: bytes
    values: list[str | None] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    refused: str = ""


def _line(v: str) -> bytes:
    return b'{"v": ' + v.encode() + b"}\n"


_STRINGS = [
    r'"\ud83d\ude00"',
    r'"a\u0000b"',
    r'"\u0001"',
    r'"\u00015"',
    r'"\\u0001"',
    r'"\\\u00011.0"',
    r'"\"\\/\b\f\n\r\t"',
]

JSON_FILES = [
    JsonFile("bom.jsonl", codecs.BOM_UTF8 + _line('"bom"') + _line('"two"'), ["bom", "two"]),
    JsonFile("crlf.jsonl", b'{"v":"a"}\r\n\r\n{"v":"b"}\r\n', ["a", "b"]),
    JsonFile(
        "utf_16.jsonl",
        codecs.BOM_UTF16_LE + '{"v":"\u00e9\U0001f600"}\n'.encode("utf-16-le"),
        ["\u00e9\U0001f600"],
    ),
    JsonFile("packed.jsonl.gz", gzip.compress(_line('"gz"')), ["gz"]),
    JsonFile("deep.jsonl", _line("[" * _DEEP + "1.50" + "]" * _DEEP), ["[" * _DEEP + "1.50" + "]" * _DEEP]),
    JsonFile("escapes.jsonl", b"".join(map(_line, _STRINGS)), [json.loads(text) for text in _STRINGS]),
    JsonFile(
        "marks.jsonl",
        _line(r'{"a": "\u00011.0", "b": 1.0, "c": "\"\\u00011\"", "d": [1e5, "\u0001\u0001"]}'),
        [r'{"a":"\u00011.0","b":1.0,"c":"\"\\u00011\"","d":[1e5,"\u0001\u0001"]}'],
    ),
    JsonFile(
        "text_in_text.jsonl", _line(r'"{\"a\": \"\\u00011.0\"}"'), [json.loads(r'"{\"a\": \"\\u00011.0\"}"')]
    ),
    JsonFile("nothing.jsonl", _line("null") + b"{}\n" + b"\n \n", [None, None]),
    JsonFile("empty.jsonl", b""),
    JsonFile(
        "not_json.jsonl",
        b'{"v":1,"v":2}\n{"v":NaN}\n{"v":-Infinity}\n{\'v\':1}\n{"v":01}\n{"v":1.}\n{"v":.5}\n{"v":+1}\n'
        b'{"v":1,}\n{"v":"\\ud800"}\n'
        b'{"v":1} {"v":2}\n{"v":1}] {"v":2}\n{"v":1}}\n[{"v":1}]\n7\n{1:2.0}\n{"v":1.0,2:3.0}\n'
        b'{"v":"tab\there"}\n',
        broken=["not-json"] * 18,
    ),
    JsonFile(
        "large.jsonl", _line('"after"') + _line('"' + "x" * 20_000_001 + '"'), ["after"], broken=["too-large"]
    ),
    JsonFile(
        "bytes.jsonl", b'{"v":"caf\xe9"}\n{"v":"ok"}\n\xff\xfe{"v":"x"}\n', ["ok"], broken=["not-text"] * 2
    ),
    JsonFile("cut_off.jsonl.gz", gzip.compress(_line('"gz"') * 1000)[:-30], refused="file-unreadable"),
]
