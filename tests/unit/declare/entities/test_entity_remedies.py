"""The remedies of an entity's mistakes settle them: each mend follows the remedy's words."""

from pathlib import Path

import pytest

from tests.unit.declare.builders import report, slugs
from tests.unit.declare.entities.builders import edited

MENDS: tuple[tuple[str, str, str, str, str], ...] = (
    (
        "entity-by",
        "by: {app_sources: workspaceid}",
        "by: {contracts: workspace_id}",
        "Add `by: {app_sources: <column>}`. Did you mean `workspaceid`?",
        "by: {contracts: workspace_id, app_sources: workspaceid}",
    ),
    (
        "entity-id-type",
        "id: workspace_id",
        "id: {workspace_id: json}",
        "Write `string`.",
        "id: {workspace_id: string}",
    ),
    (
        "latest-without-order",
        "sum(live_sources)",
        "latest(live_sources)",
        "Name the order: `max_by(<column>, <order>)`",
        "max_by(live_sources, arr)",
    ),
    (
        "merge-refused",
        "default: 0",
        "merge: sum",
        "Remove `merge`: Strandline finds out",
        "default: 1",
    ),
    (
        "variable-select",
        '"sum(live_sources)"',
        '"live_sources + 1"',
        "Write it inside of one, such as `max`",
        '"max(live_sources) + 1"',
    ),
    (
        "window-length",
        "last: [7 days, 30 days]",
        "last: [7 days, 30 days, 1 year]",
        "Write days: `365 days`.",
        "last: [7 days, 30 days, 365 days]",
    ),
    (
        "window-type",
        "column: sent_at, last: [7",
        "column: user_id, last: [7",
        "Name a timestamp or date column",
        "column: sent_at, last: [7",
    ),
)


@pytest.mark.parametrize(
    ("slug", "right", "wrong", "remedy", "mended"), MENDS, ids=[mend[0] for mend in MENDS]
)
def test_what_a_mistake_of_an_entity_tells_to_write_settles_it(
    tmp_path: Path, slug: str, right: str, wrong: str, remedy: str, mended: str
) -> None:
    with_mistake = edited(right, wrong)
    assert slugs(tmp_path, with_mistake) == [slug]
    assert remedy in report(tmp_path, with_mistake)

    assert slugs(tmp_path, with_mistake.replace(wrong, mended)) == []
