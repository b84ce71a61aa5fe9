"""The files that a Python job imports are followed and hashed, and exactly they run."""

from pathlib import Path

import pytest

from strandline.compute.python_modules import load_module
from strandline.model.project import Job
from tests.unit.declare.builders import load, report

YAML = """
project: small
sources: {e: {files: "d/*.jsonl"}}
datasets:
  item: {from: e, columns: {id: id}, record_set: {key: [id], order_by: [_source_position]}}
jobs:
  - name: j
    input_datasets: [item]
    output_dataset: out
    incremental: {mode: keyed, key: [id], inputs: {item: {by: [id]}}}
    python: jobs/py.py:job
"""
JOB = "\n\ndef job(inputs, context):\n    return inputs['item']\n"


def hashed(folder: Path, files: dict[str, str]) -> str:
    return load(folder, YAML, files).get("out").config.hash


def get_job(folder: Path, files: dict[str, str]) -> Job:
    definition = load(folder, YAML, files).get("out").definition
    assert isinstance(definition, Job)
    return definition


@pytest.mark.parametrize(
    ("statement", "file"),
    [
        ("import rates", "jobs/rates.py"),
        ("import rates", "rates.py"),
        ("import rates as r", "jobs/rates/__init__.py"),
        ("from rates import RATE", "jobs/rates.py"),
        ("from . import rates", "jobs/rates.py"),
        ("from .rates import RATE", "jobs/rates.py"),
        ("from jobs import rates", "jobs/rates.py"),
        ("import lib.rates", "lib/rates.py"),
        ("from lib.deep.rates import RATE", "lib/deep/rates.py"),
        ("from lib import rates", "jobs/lib/rates.py"),
        ("from lib import *", "lib/__init__.py"),
        ("def late():\n    import rates", "jobs/rates.py"),
        ("try:\n    import rates\nexcept ImportError:\n    rates = None", "jobs/rates.py"),
    ],
)
def test_a_change_in_a_file_that_a_job_imports_changes_its_configuration(
    statement: str, file: str, tmp_path: Path
) -> None:
    before = hashed(tmp_path, {"jobs/py.py": statement + JOB, file: "RATE = 10\n"})

    after = hashed(tmp_path, {file: "RATE = 1000\n"})

    assert before != after


def test_a_change_in_what_a_helper_imports_counts_and_one_in_what_nobody_imports_does_not(
    tmp_path: Path,
) -> None:
    files = {
        "jobs/py.py": "import a" + JOB,
        "jobs/a.py": "from lib import b\n",
        "lib/b.py": "from . import c\n",
        "lib/c.py": "X = 1\n",
    }
    before = hashed(tmp_path, {**files, "jobs/other.py": "X = 1\n"})

    assert hashed(tmp_path, {"jobs/other.py": "X = 2\n"}) == before
    assert hashed(tmp_path, {"lib/c.py": "X = 2\n"}) != before


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("import importlib", "importlib"),
        ("from importlib import import_module", "importlib"),
        ("rates = __import__('rates')", "__import__"),
        ("import sys\nsys.path.insert(0, 'lib')", "sys.path"),
        ("from sys import path", "sys.path"),
        ("exec('import rates')", "exec"),
        ("import runpy", "runpy"),
    ],
)
def test_what_cannot_be_followed_is_refused_with_what_to_write(line: str, named: str, tmp_path: Path) -> None:
    reported = report(tmp_path, YAML, {"jobs/py.py": line + JOB})

    assert "[import-not-followed]" in reported
    assert named in reported
    assert "Write" in reported


def test_a_helper_is_checked_like_the_job_itself(tmp_path: Path) -> None:
    reported = report(tmp_path, YAML, {"jobs/py.py": "import a" + JOB, "jobs/a.py": "import random\n"})

    assert "jobs/a.py:1" in reported
    assert "[nondeterministic]" in reported


def test_what_runs_is_the_text_that_was_read_and_never_an_older_helper(tmp_path: Path) -> None:
    code = (
        "import lib.rates\nfrom lib import rates as r\nimport json\n\ndef job(inputs, context):\n"
        "    from late import LATE\n"
    )
    code += "    return lib.rates.RATE, r.RATE, LATE, json.dumps(1)\n"
    first = get_job(
        tmp_path, {"jobs/py.py": code, "lib/rates.py": "RATE = 10\n", "jobs/late.py": "LATE = 1\n"}
    )
    second = get_job(tmp_path, {"lib/rates.py": "RATE = 1000\n", "jobs/late.py": "LATE = 2\n"})

    results = [load_module(job.name, job, str(tmp_path)).job({}, None) for job in (first, second, first)]

    assert results == [(10, 10, 1, "1"), (1000, 1000, 2, "1"), (10, 10, 1, "1")]


def test_modules_may_be_packages_import_each_other_and_hold_dataclasses(tmp_path: Path) -> None:
    files = {
        "jobs/py.py": (
            "import types\nfrom kinds import One\n\ndef job(inputs, context):\n"
            "    return One(n=types.MINE).n\n"
        ),
        "jobs/types.py": "import kinds\nMINE = 7\n",
        "jobs/kinds/__init__.py": "from .one import One\n",
        "jobs/kinds/one.py": "from __future__ import annotations\nimport dataclasses\nimport types\n\n"
        "@dataclasses.dataclass\nclass One:\n    n: int\n",
    }

    job = get_job(tmp_path, files)

    assert load_module(job.name, job, str(tmp_path)).job({}, None) == 7


def test_a_missing_module_is_named(tmp_path: Path) -> None:
    job = get_job(tmp_path, {"jobs/py.py": "from lib import nothing" + JOB, "lib/__init__.py": ""})

    with pytest.raises(ImportError, match="nothing"):
        load_module(job.name, job, str(tmp_path))
