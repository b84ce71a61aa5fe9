"""A default must be a value of its variable. Where `check` cannot tell, the task does, before it computes."""

import pytest

from strandline.compute.entity.selecting import require_default
from strandline.model.entity import Variable
from strandline.model.errors import Place, WorkError
from strandline.model.typed_values import Scalar

PLACE = Place(file="strandline.yaml", line=7)


def variable(default: Scalar) -> Variable:
    return Variable(name="pace", place=PLACE, expr="a / b", default=default)


@pytest.mark.parametrize(
    ("default", "type_"),
    [
        (0, "bigint"),
        (0, "double"),
        (-1, "float"),
        ("unknown", "string"),
        (False, "boolean"),
        ("1.50", "decimal(18,2)"),
        ("2024-01-13", "date"),
        ("2024-01-13T08:30:00Z", "timestamp"),
        ("2024-01-13T08:30:00", "timestamp_ntz"),
        (0, "array<int>"),  # Spark says so
    ],
)
def test_a_value_of_the_type_is_accepted(default: Scalar, type_: str) -> None:
    require_default(variable(default), type_)


@pytest.mark.parametrize(
    ("default", "type_"),
    [
        ("abc", "bigint"),
        (1.5, "bigint"),
        (True, "int"),
        (0, "string"),
        (0, "boolean"),
        (0.125, "decimal(18,2)"),
        ("soon", "timestamp"),
    ],
)
def test_what_a_cast_would_change_is_refused_with_its_place(default: Scalar, type_: str) -> None:
    with pytest.raises(WorkError, match=rf"strandline\.yaml:7: the default {default!r} of `pace`") as refused:
        require_default(variable(default), type_)

    assert refused.value.slug == "default-does-not-fit"
