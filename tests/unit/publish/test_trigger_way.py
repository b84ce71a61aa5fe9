"""Whether a trigger folds changes or compares rows, and when a revision begins."""

import pytest

from strandline.model.publishing import Existing
from strandline.publish.trigger.way import Way, choose_way

QUIET, DELIVER = Existing.QUIET, Existing.DELIVER


@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize("existing", [QUIET, DELIVER])
def test_a_comparison_begins_a_revision_where_the_log_has_a_reset(existing: Existing, asked: bool) -> None:
    way = choose_way(
        existing,
        starts=False,
        asked=asked,
        were_there=True,
        has_existing=lambda: True,
        has_reset=lambda: True,
    )

    compares = asked or existing is DELIVER
    assert way == Way(compares=compares, starts=compares)  # a fold begins it when it meets the RESET


@pytest.mark.parametrize(
    ("existing", "starts", "were_there", "has_existing", "compares"),
    [
        (DELIVER, True, True, False, True),
        (DELIVER, True, False, False, False),  # its first rows fire
        (DELIVER, False, True, False, False),
        (DELIVER, False, True, True, True),  # it was not declared for a while
        (QUIET, True, True, True, False),
    ],
)
def test_rows_that_were_there_are_compared_where_they_are_to_be_delivered(
    existing: Existing, starts: bool, were_there: bool, has_existing: bool, compares: bool
) -> None:
    way = choose_way(
        existing,
        starts=starts,
        asked=False,
        were_there=were_there,
        has_existing=lambda: has_existing,
        has_reset=lambda: False,
    )

    assert way == Way(compares=compares, starts=starts)
