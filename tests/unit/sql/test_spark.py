"""SQL that is parsed and written again means what it means to Spark."""

import pytest

from strandline.sql.job_sql import parse_known


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("'it''s'", r"'it\'s'"),
        (r"'it\'s'", r"'it\'s'"),
        ('"say ""hi"""', "'say \"hi\"'"),
        ("'a\"\"b'", "'a\"\"b'"),
        ("''", "''"),
        ("'it' 's'", "CONCAT('it', 's')"),
    ],
)
def test_a_quote_that_is_doubled_inside_a_text_is_one_quote(written: str, meant: str) -> None:
    assert parse_known(written).sql(dialect="spark") == meant
