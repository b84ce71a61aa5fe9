"""Messages are split by their own text: as many as there are, each exactly as it was written."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.ingest.posts import split_body
from strandline.ingest.splitting import LENIENT, split_json
from strandline.model.files import Content

BLANKS = st.text(" \t\r\n", max_size=3)
NUMBERS = st.one_of(
    st.integers().map(str), st.decimals(allow_nan=False, allow_infinity=False).map(lambda d: f"{d:f}")
)
SCALARS = st.one_of(
    NUMBERS, st.sampled_from(["true", "false", "null", "1e400", "-0", "1.0E+2"]), st.text().map(json.dumps)
)


@st.composite
def texts(draw: st.DrawFn, depth: int = 2) -> str:
    """A JSON value as somebody may write it: with any blanks, long numbers, and keys that occur twice."""
    kind = draw(st.sampled_from(["scalar", "list", "object"])) if depth else "scalar"
    if kind == "scalar":
        return draw(SCALARS)
    items = draw(st.lists(texts(depth - 1), max_size=3))
    if kind == "list":
        return "[" + ",".join(draw(BLANKS) + item + draw(BLANKS) for item in items) + "]"
    keys = [json.dumps(draw(st.sampled_from(["a", "b", 'c"', "ü"]))) for _ in items]
    return (
        "{"
        + ",".join(f"{draw(BLANKS)}{k}{draw(BLANKS)}: {v}" for k, v in zip(keys, items, strict=True))
        + "}"
    )


@given(st.lists(texts(), max_size=6), st.data())
def test_each_element_of_an_array_keeps_its_text_and_its_place(
    messages: list[str], data: st.DataObject
) -> None:
    body = "[" + ",".join(data.draw(BLANKS) + m + data.draw(BLANKS) for m in messages) + "]"
    body = data.draw(BLANKS) + body + data.draw(BLANKS)

    assert list(split_body(Content.JSON, body.encode())) == list(enumerate(messages, 1))


@given(texts().filter(lambda text: not text.startswith("[")), BLANKS, BLANKS)
def test_what_is_not_an_array_is_one_message(message: str, before: str, after: str) -> None:
    assert list(split_body(Content.JSON, (before + message + after).encode())) == [(1, message)]


@given(st.lists(texts().filter(lambda text: "\n" not in text and "\r" not in text) | st.just(""), max_size=6))
def test_each_line_has_its_number_and_blank_lines_count(messages: list[str]) -> None:
    expected = [(n, m) for n, m in enumerate(messages, 1) if m.strip()]

    for end, last in (("\n", "\n"), ("\r\n", ""), ("\n", "")):
        body = end.join(messages) + last
        assert list(split_body(Content.LINES, body.encode())) == expected


@pytest.mark.parametrize(
    "text",
    ["", " ", "[", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "[1]]", "[1] 2", "{} {}", "nul", '{"a"}', "]"],
)
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"char \d+"):
        list(split_json(text, LENIENT))


@given(st.text('[]{},:" 1an\\', max_size=12))
def test_exactly_what_python_takes_for_json_is_split(text: str) -> None:
    try:
        value = json.loads(text)
    except ValueError:
        with pytest.raises(ValueError, match=r".*"):
            list(split_json(text, LENIENT))
    else:
        messages = [json.loads(message) for _, message in split_json(text, LENIENT)]
        assert messages == (value if isinstance(value, list) else [value])
