"""The text of a key, and the way back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.model.key_text import key_text, split_key


@given(st.lists(st.none() | st.text(), min_size=1))
def test_the_values_of_a_key_come_back_from_its_text(values: list[str | None]) -> None:
    assert split_key(key_text(values)) == tuple(values)


@pytest.mark.parametrize("text", ["%", "a%zz", "x%00", "%0"])
def test_what_is_no_text_of_a_key_has_no_values(text: str) -> None:
    assert split_key(text) is None
