"""Which rows of an input are read at all: those in the windows, by conditions that files are skipped by."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import DataFrame

from strandline.compute.entity.bands import find_section
from strandline.model.entity import Variable, Window
from strandline.model.errors import Place
from strandline.model.project import Calendar, Settings
from strandline.spark.session import get_session

pytestmark = pytest.mark.spark
AS_OF = datetime(2024, 5, 1, tzinfo=UTC)
DAYS = 400


def variable(name: str, column: str, days: int, where: str = "") -> Variable:
    window = Window(column=column, seconds=days * 86_400, text=f"{days} days")
    return Variable(
        name=name, place=Place(file="strandline.yaml", line=1), use="events", window=window, where=where
    )


def daily(folder: Path) -> DataFrame:
    """One row for each day before AS_OF."""
    session = get_session(Settings(lake="", catalog="", spark_master="local[2]", spark_conf={}))
    first = AS_OF - timedelta(days=DAYS)
    at = f"TIMESTAMP '{first:%Y-%m-%d} 00:00:00+00:00' + id * INTERVAL 1 DAY"
    made = session.range(DAYS).selectExpr("id", f"{at} AS sent_at", f"to_date({at}) AS sent_on")
    made.write.parquet(str(folder / "events"))
    return session.read.parquet(str(folder / "events"))


@pytest.mark.parametrize("column", ["sent_at", "sent_on"])
def test_a_section_reaches_from_the_longest_window_to_now(column: str, tmp_path: Path) -> None:
    variables = [variable("recent", column, 7), variable("lately", column, 90, where="id % 2 = 0")]

    section = find_section(daily(tmp_path), variables, AS_OF, Calendar(timezone="America/St_Johns"))

    assert {row.id for row in section.collect()} == set(range(DAYS - 90, DAYS))


def test_a_scan_of_a_section_is_told_the_windows_so_that_it_skips_files(tmp_path: Path) -> None:
    variables = [variable("recent", "sent_at", 7), variable("lately", "sent_at", 90)]

    section = find_section(daily(tmp_path), variables, AS_OF, Calendar(timezone="UTC"))

    scan = section._jdf.queryExecution().executedPlan().toString()
    assert "GreaterThanOrEqual(sent_at" in scan.split("PushedFilters: ")[1].split("\n")[0]


def test_a_variable_without_a_window_makes_every_row_be_read(tmp_path: Path) -> None:
    ever = Variable(name="ever", place=Place(file="strandline.yaml", line=1), use="events")

    section = find_section(
        daily(tmp_path), [variable("recent", "sent_at", 7), ever], AS_OF, Calendar(timezone="UTC")
    )

    assert section.count() == DAYS
