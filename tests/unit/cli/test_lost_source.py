"""A source that lost rows stops what is computed from it, and nothing else (L1)."""

from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.unit.cli.lake_builder import Written, write_lake

OTHER = """
  visits: {files: "data/visits/*.jsonl"}

datasets:
  visit:
    from: visits
    columns: {id: id}
"""


class SparkWasStartedError(Exception):
    pass


def start_spark(*_: object) -> None:
    raise SparkWasStartedError("it would run")


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Written:
    """Two sources: one lost received rows, the other has a new file."""
    lake = write_lake(tmp_path / "shop")
    project = lake.folder / "strandline.yaml"
    project.write_text(project.read_text().replace("\ndatasets:\n", OTHER, 1))
    (lake.folder / "data" / "visits").mkdir()
    (lake.folder / "data" / "visits" / "1.jsonl").write_text('{"id": "v"}\n')
    DeltaTable(str(lake.table("order_events"))).delete("id = 1")
    monkeypatch.setattr("strandline.app.run.open_lake", start_spark)
    return lake


@pytest.mark.parametrize("select", [(), ("--select", "orders"), ("--select", "orders+ visit")])
def test_what_is_computed_from_it_is_refused(
    lake: Written, select: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert lake.call("run", *select) == 3

    assert "[source-lost]" in capsys.readouterr().err


def test_what_is_not_goes_on(lake: Written, capsys: pytest.CaptureFixture[str]) -> None:
    assert lake.call("run", "--select", "+visit") == 3

    assert "it would run" in capsys.readouterr().err
