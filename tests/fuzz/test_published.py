"""The part of `make fuzz` with Spark: published rows, and the law behind proofs, against recomputes."""

import random
from collections.abc import Callable

import pytest

from strandline.app.workspace import open_workspace
from strandline.spark.session import get_session
from tests.fuzz.laws import Duck, SparkRun, holds
from tests.fuzz.published import accepted_cases, compare, make_yaml
from tests.harness import TestProject

pytestmark = pytest.mark.spark
JOBS = 8


def test_random_jobs_publish_what_a_full_recompute_gives(
    make_project: Callable[[str], TestProject], say: Callable[[str], None]
) -> None:
    duck = Duck()
    cases = list(accepted_cases(1, JOBS, duck))
    project = make_project(make_yaml(cases))
    with open_workspace(project.folder) as workspace:
        spark = SparkRun(get_session(workspace.project.settings).newSession())

    compared = compare(project, cases, random.Random(1), {"spark": spark, "duckdb": duck}, times=2)

    assert not compared.wrong, "\n".join(compared.wrong)
    assert min(compared.compared["spark"], compared.compared["duckdb"]) >= JOBS
    assert all(holds(case, spark) for case in cases[:3])
    say(
        f"fuzz: jobs accepted {compared.jobs}, compared {sum(compared.compared.values())} times, "
        f"wrong {len(compared.wrong)}; make fuzz does more"
    )
