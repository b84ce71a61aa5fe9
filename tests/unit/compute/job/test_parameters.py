"""`:name` in a job's SQL."""

from datetime import UTC, datetime

from strandline.compute.job.code import spell
from strandline.sql.job_sql import fill_parameters


def test_only_parameters_are_written_out() -> None:
    sql = "select :as_of, ':as_of', v:as_of, :text, :count from t -- :as_of"
    values = {"as_of": datetime(2024, 1, 13, 8, 30, tzinfo=UTC), "text": "it's \\ so", "count": 3}

    bound = fill_parameters(sql, values, spell)

    assert (
        bound
        == "select TIMESTAMP '2024-01-13 08:30:00.000000+00:00', ':as_of', v:as_of, 'it\\'s \\\\ so', 3 "
        "from t -- :as_of"
    )
