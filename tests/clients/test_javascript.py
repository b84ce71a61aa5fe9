"""The library of Standard Webhooks for JavaScript verifies what we sign."""

import base64
import hashlib
import json
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from strandline.model.webhook_signatures import make_headers, parse_secret

HERE = Path(__file__).parent
SECRETS = ["whsec_" + base64.b64encode(bytes(range(size))).decode() for size in (24, 64)]
BODIES = ['{"data":{"quantity":15000}}', '{"data":{"name":"größe 日本 😀 \\u2028"}}', '{"data":{}}\n']


@pytest.fixture(scope="module")
def folder() -> Path:
    """A folder with the packages of package-lock.json. They are installed once, into a cache."""
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("node or npm is missing")
    files = [HERE / name for name in ("package.json", "package-lock.json", "verify.js")]
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
            pytest.skip("npm cannot install its packages here")
    return cache


def verify(folder: Path, messages: list[dict[str, object]]) -> list[object]:
    answer = subprocess.run(
        ["node", "verify.js"],
        cwd=folder,
        input=json.dumps(messages),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    results: list[object] = json.loads(answer.stdout)
    return results


def test_a_receiver_in_javascript_verifies_our_messages_and_no_others(folder: Path) -> None:
    secrets, now = [parse_secret(secret) for secret in SECRETS], int(time.time())
    messages: list[dict[str, object]] = [
        {"secret": secret, "headers": make_headers(secrets, "acf6", now, body.encode()), "body": body}
        for body in BODIES
        for secret in SECRETS
    ]
    changed = [{**message, "body": f"{message['body']} "} for message in messages]

    results = verify(folder, [*messages, *changed])

    assert results[: len(messages)] == [True] * len(messages)
    assert True not in results[len(messages) :]
