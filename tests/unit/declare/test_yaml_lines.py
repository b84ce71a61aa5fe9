"""YAML as plain data that remembers its lines."""

import pytest

from strandline.declare.yaml_lines import Document, load_yaml
from strandline.model.report import Report


def read(text: str | bytes) -> tuple[Document | None, list[str]]:
    report = Report()
    document = load_yaml(text if isinstance(text, bytes) else text.encode(), "strandline.yaml", report)
    return document, [str(mistake) for mistake in report.mistakes]


def data(text: str) -> object:
    document, mistakes = read(text)
    assert document is not None
    assert mistakes == []
    return document.data


def test_keys_stay_as_written_where_yaml_1_1_makes_them_booleans() -> None:
    assert data("on: 1\nyes: 2\n1: 3\nnull: 4") == {"on": 1, "yes": 2, "1": 3, "null": 4}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("04-01", "04-01"),
        ("2024-01-13", "2024-01-13"),
        ("12:30", "12:30"),
        ("yes", "yes"),
        ("off", "off"),
        ("1_000", "1_000"),
        ("50%", "50%"),
        ("true", True),
        ("False", False),
        ("17", 17),
        ("-3", -3),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("~", None),
        ("", None),
        ('"17"', "17"),
        ("'true'", "true"),
    ],
)
def test_plain_values_follow_the_core_schema(text: str, value: object) -> None:
    assert data(f"a: {text}") == {"a": value}


def test_every_path_knows_its_line() -> None:
    document, _ = read("a:\n  b: 1\n  c:\n    - x\n    - d: 2\n")

    assert document is not None
    assert [
        document.place(*path).line
        for path in (("a",), ("a", "b"), ("a", "c"), ("a", "c", 1), ("a", "c", 1, "d"))
    ] == [1, 2, 3, 5, 5]


def test_a_path_that_is_missing_has_the_line_of_what_is_around_it() -> None:
    document, _ = read("x: 1\na:\n  b: 1\n")

    assert document is not None
    assert document.place("a", "missing", 3).line == 2


def test_a_line_inside_a_literal_block_has_its_own_place() -> None:
    document, _ = read("a: 1\nsql: |\n  select 1\n  from t\n")

    assert document is not None
    assert document.place_in_text(("sql",), 2).line == 4


def test_anchors_and_merge_keys_work_and_the_nearer_wins() -> None:
    text = "base: &base {a: 1, b: 2}\none: {<<: *base, b: 3}\ntwo: *base\n"

    assert data(text) == {"base": {"a": 1, "b": 2}, "one": {"a": 1, "b": 3}, "two": {"a": 1, "b": 2}}


def test_a_key_written_twice_is_told_with_both_lines() -> None:
    _, mistakes = read("a: 1\nb: 2\na: 3\n")

    assert mistakes == [
        (
            "strandline.yaml:3: the key `a` is written twice, in lines 1 and 3.\n"
            "  Keep one of them.  [duplicate-key]"
        )
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "a:\n\tb: 1",
            "strandline.yaml:2: this is not YAML: while scanning for the next token, found character '\\t'",
        ),
        ("a: [1, 2", "strandline.yaml:1: this is not YAML"),
        ("a: 1\n---\nb: 2", "Keep only one document in the file"),
        (b"a: 1\nb: \xff\n", "strandline.yaml:2: the file is not UTF-8: byte 0xff cannot be read."),
        (b"a: 1\nb: \x00\n", "strandline.yaml:2: the file contains the character U+0000"),
        ("a: &a [*a]", "aliases expand without end"),
        ("a: !!python/object:os.system x", "has no meaning here"),
        ("a: !x y", "the YAML tag `!x` has no meaning here."),
        ("? [a, b]\n: 1", "a key must be a word"),
        ("a: *nowhere", "this is not YAML"),
        ("[" * 1500, "strandline.yaml:1:"),
        ("a: {<<: 3}", "`<<` needs a mapping"),
    ],
)
def test_what_cannot_be_read_is_a_mistake_and_no_traceback(text: str | bytes, expected: str) -> None:
    _, mistakes = read(text)

    assert expected in "\n".join(mistakes)


def test_aliases_that_multiply_are_stopped() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]

    _, mistakes = read("\n".join(lines))

    assert "expand without end" in mistakes[0]


def test_an_empty_file_is_empty_data() -> None:
    assert data("") is None
    assert data("# nothing\n") is None
