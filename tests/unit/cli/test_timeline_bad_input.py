"""What is wrong with a timeline before anything is read is told by `check` and `run` alike. No Spark."""

from pathlib import Path

import pytest

from strandline.cli import main
from strandline.model.errors import OutsideError
from tests.unit.declare.builders import line_of
from tests.unit.declare.timelines.builders import FOLD, PROJECT, edited

PRICE = "        price:    {dataset: market_prices, on: [security_id], date: price_on}"
FOLDED = "    fold: folds.py:fifo"
CLOCK = "from datetime import datetime\n\n\ndef fifo(state, facts):\n    return {'at': datetime.now()}\n"
REACHED = "it comes to Spark"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project without a mistake. What comes to Spark is told, instead of starting it."""

    def start_spark(*_: object) -> None:
        raise OutsideError(REACHED)

    monkeypatch.setattr("strandline.spark.session.get_session", start_spark)
    (tmp_path / "strandline.yaml").write_text(PROJECT)
    (tmp_path / "folds.py").write_text(FOLD)
    return tmp_path


MISTAKES = {
    "no file": (
        (FOLDED, "    fold: fold.py:fifo"),
        FOLD,
        "there is no file `fold.py` in the project.\n  Did you mean `folds.py`?  [file-not-found]",
    ),
    "no function": (
        (FOLDED, "    fold: folds.py:fif"),
        FOLD,
        "`folds.py` has no function `fif` at its top level.\n  Did you mean `fifo`?  [function-not-found]",
    ),
    "clock": (
        (FOLDED, FOLDED),
        CLOCK,
        "`datetime.datetime.now` reads the wall clock.\n"
        "  Use the dates and times of the facts: the fold gives the same whenever it is called."
        "  [nondeterministic]",
    ),
    "no dataset": (
        (PRICE, PRICE.replace("market_prices", "market_price")),
        FOLD,
        "the reference `price` of the timeline `positions` reads `market_price`, which is not a dataset.\n"
        "  Did you mean `market_prices`?  [unknown-dataset]",
    ),
}


@pytest.mark.parametrize("verb", ["check", "run"])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_timeline_that_is_wrong_is_told_before_anything_is_made(
    mistake: str, verb: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit, fold, told = MISTAKES[mistake]
    yaml = edited(PROJECT, edit)
    (folder / "strandline.yaml").write_text(yaml)
    (folder / "folds.py").write_text(fold)

    code = main([verb, "--project", str(folder)])

    place = "folds.py:5" if mistake == "clock" else f"strandline.yaml:{line_of(yaml, edit[1])}"
    assert (code, capsys.readouterr().err) == (2, f"{place}: {told}\n")
    assert sorted(path.name for path in folder.iterdir()) == ["folds.py", "strandline.yaml"]


@pytest.mark.parametrize("number", ["0", "-1", "1.5", "all"])
def test_a_run_publishes_at_least_one_batch(
    number: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["run", f"--batches={number}", "--project", str(folder)])

    told = f"strandline run: argument --batches: `{number}` is not a whole number of at least 1.\n"
    assert (code, capsys.readouterr().err) == (
        2,
        f"{told}  `strandline run --help` shows how it is called.  [call]\n",
    )
    assert main(["run", "--batches=1", "--project", str(folder)]) == 3
    assert REACHED in capsys.readouterr().err
