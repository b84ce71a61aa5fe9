"""Small projects as text."""

import textwrap
from collections.abc import Mapping
from pathlib import Path

from strandline.declare import load_project
from strandline.model.errors import ProjectError
from strandline.model.hashing import compare_configs
from strandline.model.node import Project

HEAD = "project: small\n"

EVENTS = """
sources:
  events: {files: "data/*.jsonl"}
"""

PROPERTY = """
project: small
sources:
  events: {files: "data/*.jsonl"}
datasets:
  property:
    from: events
    columns:
      tenant_id: tenantId
      property_id: property.id
      status: property.status
      area: {path: property.area, type: "decimal(18,4)"}
      changed_at: {path: changedAt, type: timestamp_ms}
    record_set: {key: [tenant_id, property_id], order_by: [changed_at]}
"""


def write(folder: Path, yaml: str | bytes, files: Mapping[str, str | bytes] | None = None) -> Path:
    """A project on disk."""
    for name, content in {"strandline.yaml": yaml, **(files or {})}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else textwrap.dedent(content).encode())
    return folder


def load(
    folder: Path,
    yaml: str,
    files: Mapping[str, str | bytes] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Project:
    return load_project(write(folder, yaml, files), environ or {})


def report(
    folder: Path,
    yaml: str | bytes,
    files: Mapping[str, str | bytes] | None = None,
    environ: Mapping[str, str] | None = None,
) -> str:
    """The report of `check` on a project. It is empty if nothing is wrong."""
    try:
        load_project(write(folder, yaml, files), environ or {})
    except ProjectError as error:
        return str(error)
    return ""


def slugs(folder: Path, yaml: str | bytes, files: Mapping[str, str | bytes] | None = None) -> list[str]:
    try:
        load_project(write(folder, yaml, files), {})
    except ProjectError as error:
        return [mistake.slug for mistake in error.mistakes]
    return []


def line_of(yaml: str, words: str) -> int:
    """The number of the only line of a project that contains these words."""
    (number,) = [n for n, line in enumerate(yaml.splitlines(), 1) if words in line]
    return number


def config_change(folder: Path, yaml: str, node: str, *edits: tuple[str, str]) -> tuple[set[str], bool]:
    """Parts of a node's configuration that edits of a project change, and whether that freezes it."""
    edited = yaml
    for old, new in edits:
        assert old in edited, f"the project has no {old!r}"
        edited = edited.replace(old, new)
    before, after = load(folder, yaml).get(node).config, load(folder, edited).get(node).config
    parts, freezes = compare_configs(before.parts, after)
    assert (before.hash != after.hash) == bool(parts)
    return set(parts), freezes
