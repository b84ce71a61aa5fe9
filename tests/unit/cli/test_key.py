"""`key`: a new access key and the line for the project file."""

from pathlib import Path

import pytest
import yaml

from strandline.cli import main
from strandline.declare import load_project
from strandline.model.serving import SHORTEST_KEY, Role, hash_key
from tests.unit.cli.builders import printed


def test_the_printed_line_declares_the_printed_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["key", "ci", "--role", "operate"]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    key, line = lines
    (tmp_path / "strandline.yaml").write_text(
        yaml.safe_dump({"project": "x", "settings": {"serve": {"keys": yaml.safe_load(line)}}})
    )

    access = load_project(tmp_path, {}).settings.serve.keys["ci"]

    assert len(key) >= SHORTEST_KEY
    assert access.sha256 == hash_key(key)
    assert access.role is Role.OPERATE
    assert key not in line


def test_each_key_is_another_one(capsys: pytest.CaptureFixture[str]) -> None:
    made = []
    for _ in range(2):
        assert main(["key", "ci", "--role", "read", "--output", "json"]) == 0
        made.append(printed(capsys)["keys"][0]["key"])

    assert made[0] != made[1]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (["key", "ci"], "--role"),
        (["key", "ci", "--role", "root"], "root"),
        (["key", "My Bot", "--role", "read"], "`my_bot`"),
    ],
)
def test_a_key_without_a_role_or_a_name_is_refused(
    call: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(call) == 2
    assert words in capsys.readouterr().err
