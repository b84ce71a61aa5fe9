"""Packages of npm for clients in JavaScript. They are installed once, into a cache."""

import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
_OUR_MISTAKES = ("EUSAGE", "EINTEGRITY", "EJSONPARSE", "ETARGET")
"""What npm says of a lock file that is wrong. A registry that cannot be reached has other codes."""


def install_packages() -> Path:
    """A folder with our scripts and the packages of package-lock.json. Skips where there is no npm."""
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("node or npm is missing")
    files = sorted([*HERE.glob("package*.json"), *HERE.glob("*.js")])
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
    cache = Path.home() / ".cache" / "strandline" / "npm" / digest
    if not (cache / "node_modules").exists():
        cache.mkdir(parents=True, exist_ok=True)
        for file in files:
            shutil.copy(file, cache)
        command = ["npm", "ci", "--no-audit", "--no-fund"]
        installed = subprocess.run(command, cwd=cache, capture_output=True, text=True, timeout=120)
        if installed.returncode:
            shutil.rmtree(cache)
            assert not any(code in installed.stderr for code in _OUR_MISTAKES), installed.stderr
            pytest.skip("npm cannot install its packages here")
    return cache


def run_script(folder: Path, script: str, given: object) -> Any:
    """What a script prints as JSON."""
    answer = subprocess.run(
        ["node", script],
        cwd=folder,
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=180,
        check=True,
    )
    return json.loads(answer.stdout)
