"""`query` against Spark over the same rows: each answer is equal, has a note, or one engine refuses."""

import json
import re
from pathlib import Path

import pytest

from strandline.model.json_values import json_value
from strandline.model.project import Settings
from strandline.spark.session import get_session
from strandline.sql.dialect import rewrite
from tests.spark.asked.chance import make_expressions
from tests.spark.asked.engines import Answer, Engines, make_engines
from tests.spark.asked.questions import EXPRESSIONS, ORDINARY, SHAPES

pytestmark = pytest.mark.spark
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "query.md"
SEED, RANDOM, TOGETHER = 19, 320, 40


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Engines:
    session = get_session(Settings(lake="", catalog="", spark_master="local[2]", spark_conf={}))
    return make_engines(session, tmp_path_factory.mktemp("asked"))


@pytest.mark.parametrize("queries", [ORDINARY, SHAPES], ids=["ordinary", "shapes"])
def test_an_answer_is_sparks_or_carries_a_note(engines: Engines, queries: list[str]) -> None:
    assert not [difference for sql in queries if (difference := engines.unexplained(sql))]


def test_an_expression_is_sparks_or_carries_a_note(engines: Engines) -> None:
    compared = [engines.compare_each(batch) for batch in _batches(EXPRESSIONS)]

    assert not [difference for _, differences in compared for difference in differences]
    assert sum(equal for equal, _ in compared) > 200


def test_random_expressions_of_what_is_equal_are_equal(engines: Engines) -> None:
    compared = [engines.compare_each(batch) for batch in _batches(make_expressions(SEED, RANDOM))]

    assert not [difference for _, differences in compared for difference in differences]
    assert sum(equal for equal, _ in compared) > RANDOM * 3 // 4


def test_the_differences_in_the_documentation_are_those(engines: Engines) -> None:
    lines = re.findall(r"^\| `(SELECT .*?)` \| (.*?) \| (.*?) \| (.*?) \|$", PAGE.read_text(), re.MULTILINE)

    for sql, alone, here, spark in lines:
        rewritten = rewrite(sql, {})
        answers = (engines.ask_datafusion(sql), engines.ask_datafusion(rewritten.sql), engines.ask_spark(sql))
        assert [_cell(answer) for answer in answers] == [alone, here, spark], sql
        assert here == spark or rewritten.notes, sql
    assert len(lines) > 25


def _cell(answer: Answer) -> str:
    """The first row as the documentation shows it."""
    if answer.values is None:
        return "refused"
    return (
        "`" + ", ".join(json.dumps(json_value(value), ensure_ascii=False) for value in answer.values[0]) + "`"
    )


def _batches(expressions: list[str]) -> list[list[str]]:
    return [expressions[i : i + TOGETHER] for i in range(0, len(expressions), TOGETHER)]
