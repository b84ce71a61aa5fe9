"""`query` against Spark over the same rows: each answer is equal, carries a note, or is refused by one of the two."""

import pytest

from strandline.lake.session import get_session
from strandline.model.project import Settings
from tests.spark.asked.chance import make_expressions
from tests.spark.asked.engines import Engines, make_engines
from tests.spark.asked.questions import EXPRESSIONS, ORDINARY, SHAPES

pytestmark = pytest.mark.spark
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


def _batches(expressions: list[str]) -> list[list[str]]:
    return [expressions[i : i + TOGETHER] for i in range(0, len(expressions), TOGETHER)]
