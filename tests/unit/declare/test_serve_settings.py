"""`settings.serve`: what is taken, and every mistake with the line and a remedy that settles it."""

from datetime import date, timedelta
from pathlib import Path

import pytest

from strandline.model.errors import CallError
from strandline.model.serving import AccessKey, Role, hash_key, read_key_hash
from tests.unit.declare.builders import load, report

KEY = "k" * 32
OTHER = "o" * 32
PROJECT = """\
project: x
sources:
  pushed: {{files: "d/*.jsonl"}}
settings:
  serve:
    keys:
      ci: {key}
"""


def with_key(text: str) -> str:
    return PROJECT.format(key=text)


def test_keys_hosts_origins_and_intervals_are_taken_as_declared(tmp_path: Path) -> None:
    yaml = """
project: x
sources:
  pushed: {files: "d/*.jsonl"}
settings:
  serve:
    keys:
      dashboards: {role: read, key: "${READ_KEY}"}
      feeds: {role: ingest, key: "${FEED_KEY}", sources: [pushed]}
      ci: {role: operate, sha256: "HASH", expires: 2027-01-01}
    hosts: [Pipe.example]
    origins: ["https://dashboards.example:8443"]
    clock: 1 day
    poll: 1 s
""".replace("HASH", hash_key(KEY).upper())

    settings = load(tmp_path, yaml).settings.serve

    assert settings.keys == {
        "dashboards": AccessKey(name="dashboards", role=Role.READ, key="${READ_KEY}"),
        "feeds": AccessKey(name="feeds", role=Role.INGEST, key="${FEED_KEY}", sources=("pushed",)),
        "ci": AccessKey(name="ci", role=Role.OPERATE, sha256=hash_key(KEY), expires_on=date(2027, 1, 1)),
    }
    assert settings.hosts == ("pipe.example",)
    assert settings.origins == ("https://dashboards.example:8443",)
    assert (settings.clock, settings.poll) == (timedelta(days=1), timedelta(seconds=1))


def test_a_project_that_says_nothing_has_no_keys_an_hourly_clock_and_looks_every_five_seconds(
    tmp_path: Path,
) -> None:
    settings = load(tmp_path, "project: x").settings.serve

    assert (settings.keys, settings.hosts, settings.origins) == ({}, (), ())
    assert (settings.clock, settings.poll) == (timedelta(hours=1), timedelta(seconds=5))


GOOD = f"{{role: read, key: {KEY}}}"
HASH = hash_key(KEY)


def ingest(source: str, role: str = "ingest") -> str:
    return f"{{role: {role}, key: {KEY}, sources: [{source}]}}"


def and_key(name: str, text: str) -> str:
    return f"{GOOD}\n      {name}: {text}"


def and_setting(text: str) -> str:
    return f"{GOOD}\n    {text}"


SETTLED = [
    ("bad-access-key", "{role: read}", GOOD, "neither"),
    ("bad-access-key", f"{{role: read, key: {KEY}, sha256: '{HASH}'}}", GOOD, "both"),
    ("bad-access-key", f"{{role: read, key: {KEY[1:]}}}", GOOD, "32 characters"),
    ("bad-access-key", f"{{role: read, key: '{KEY} x'}}", GOOD, "blank"),
    ("bad-access-key", f"{{role: read, key: {'1' * 32}}}", f"{{role: read, key: '{'1' * 32}'}}", "not text"),
    ("bad-access-key", "{role: read, sha256: abc}", f"{{role: read, sha256: '{HASH}'}}", "64"),
    ("unknown-value", f"{{role: raed, key: {KEY}}}", GOOD, "Did you mean `read`?"),
    ("unknown-source", ingest("pushd"), ingest("pushed"), "Did you mean `pushed`?"),
    ("key-with-sources", ingest("pushed", "operate"), ingest("pushed"), "role: ingest"),
    (
        "wrong-type",
        f"{{role: read, key: {KEY}, expires: next year}}",
        f"{{role: read, key: {KEY}, expires: 2027-01-01}}",
        "not a date",
    ),
    (
        "same-access-key",
        and_key("bot", f"{{role: read, sha256: '{HASH}'}}"),
        and_key("bot", f"{{role: read, sha256: '{hash_key(OTHER)}'}}"),
        "`bot` and `ci`",
    ),
    (
        "bad-name",
        and_key("My-Bot", f"{{role: read, key: {OTHER}}}"),
        and_key("my_bot", f"{{role: read, key: {OTHER}}}"),
        "`my_bot`",
    ),
    (
        "bad-host",
        and_setting("hosts: ['https://a.example']"),
        and_setting("hosts: ['a.example']"),
        "without scheme",
    ),
    (
        "bad-origin",
        and_setting("origins: ['*']"),
        and_setting("origins: ['https://a.example']"),
        "https://",
    ),
    ("wrong-type", and_setting("clock: soon"), and_setting("clock: 1 hour"), "`1 hour`"),
    ("wrong-type", and_setting("poll: 0 s"), and_setting("poll: 5 s"), "`5 s`"),
]


@pytest.mark.parametrize(("slug", "wrong", "right", "words"), SETTLED)
def test_a_mistake_about_serving_is_told_once_with_its_line_and_its_remedy_settles_it(
    slug: str, wrong: str, right: str, words: str, tmp_path: Path
) -> None:
    reported = report(tmp_path, with_key(wrong))

    assert reported.count(f"[{slug}]") == reported.count("[") == 1
    assert reported.startswith(("strandline.yaml:7: ", "strandline.yaml:8: "))
    assert words in reported
    assert KEY[1:] not in reported
    assert "1" * 32 not in reported
    assert report(tmp_path, with_key(right)) == ""


def test_no_verb_needs_a_key_set_until_it_is_read(tmp_path: Path) -> None:
    access = load(tmp_path, with_key('{role: read, key: "${CI_KEY}"}')).settings.serve.keys["ci"]

    with pytest.raises(CallError) as unset:
        read_key_hash(access, {})
    with pytest.raises(CallError) as short:
        read_key_hash(access, {"CI_KEY": "s3cret"})

    assert unset.value.slug == "secret-not-set"
    assert short.value.slug == "bad-access-key"
    assert "s3cret" not in str(short.value)
    assert read_key_hash(access, {"CI_KEY": KEY}) == hash_key(KEY)


def test_a_key_is_never_part_of_what_settings_print(tmp_path: Path) -> None:
    settings = load(tmp_path, with_key(f"{{role: read, key: {KEY}}}")).settings

    assert KEY not in repr(settings)
