"""Commit metadata as text: the `userMetadata` of a Delta commit. The catalog can be rebuilt from it (L6)."""

import json
from collections.abc import Mapping
from typing import TypeVar

from .commits import BuiltPartition, CommitMetadata, Invalidation, Operation, WrittenConfig
from .errors import CallError
from .files import FileRead
from .invalidations import from_columns
from .plan import Cursor
from .scope import Scope
from .scope_json import scope_from_json, scope_to_json

MARKER = "strandline"
FORMAT = 1

T = TypeVar("T")


def to_json(metadata: CommitMetadata) -> str:
    """The metadata as one line of JSON, the same text for equal values."""
    value = {
        MARKER: FORMAT,
        "run": metadata.run,
        "task": metadata.task,
        "node": metadata.node,
        "token": metadata.token,
        "operation": str(metadata.operation),
        "inputs": {
            name: {"table_id": cursor.table_id, "version": cursor.version}
            for name, cursor in metadata.inputs.items()
        },
        "scope": scope_to_json(metadata.scope),
        "cause": metadata.cause,
        "config": {"hash": metadata.config.hash, "parts": dict(metadata.config.parts)},
        "whole": metadata.whole,
        "as_of": metadata.as_of,
        "counts": dict(metadata.counts),
        "files": [file_to_dict(file) for file in metadata.files],
        "rows": metadata.rows,
        **_unless_empty("schema_hash", metadata.schema_hash),
        **_unless_empty("partitions", {p.partition_key: p.rows for p in metadata.partitions}),
        **_unless_empty("waiting", list(metadata.waiting)),
        **_unless_empty("invalidations", [_invalidation_to_dict(i) for i in metadata.invalidations]),
        **_unless_empty("readable_from", metadata.readable_from),
        **_unless_empty("adopted", list(metadata.adopted)),
        **_unless_empty("reshaped", metadata.reshaped),
        **({"onto": metadata.onto} if metadata.onto >= 0 else {}),
        **_unless_empty("published_to", list(metadata.published_to)),
    }
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def find_metadata(text: str | None) -> CommitMetadata | None:
    """The metadata of a commit. None if the commit is not ours: anyone may write anything there."""
    if not text or MARKER not in text:
        return None
    try:
        value = _mapping(json.loads(text))
        return _read(value) if _typed(value, MARKER, int) == FORMAT else None
    except (KeyError, TypeError, ValueError, RecursionError):
        return None


def _unless_empty(name: str, value: object) -> dict[str, object]:
    return {name: value} if value else {}


def _invalidation_to_dict(invalidation: Invalidation) -> dict[str, object]:
    return {
        "id": invalidation.id,
        "scope": scope_to_json(invalidation.scope),
        "reason": invalidation.reason,
        **_unless_empty("source_event", dict(invalidation.source_event)),
    }


def _invalidation(value: Mapping[str, object]) -> Invalidation:
    return Invalidation(
        id=_typed(value, "id", str),
        scope=_invalidated(value),
        reason=_typed(value, "reason", str),
        source_event=_mapping(value.get("source_event", {})),
    )


def _invalidated(value: Mapping[str, object]) -> Scope:
    """Older commits contain the columns of seed 001, in which `scope` is a word."""
    if not isinstance(value["scope"], str):
        return scope_from_json(value["scope"])
    partition_key = _typed({"partition_key": "", **value}, "partition_key", str)
    try:
        return from_columns(partition_key, _mapping(value["row_filter"]))
    except CallError as error:
        raise ValueError("not a filter") from error


def file_to_dict(file: FileRead) -> dict[str, object]:
    """The fields of a file. An optional field that has its default is left out."""
    required = {
        name: getattr(file, name)
        for name in ("path", "revision", "bytes", "rows", "digest", "size", "modified_ns")
    }
    return required | {
        name: value for name in ("seen_unchanged", "unfinished", "same_as") if (value := getattr(file, name))
    }


def file_from_dict(value: Mapping[str, object]) -> FileRead:
    """The inverse of `file_to_dict`. Raises KeyError or TypeError for anything else."""
    return FileRead(
        path=_typed(value, "path", str),
        revision=_typed(value, "revision", int),
        bytes=_typed(value, "bytes", int),
        rows=_typed(value, "rows", int),
        digest=_typed(value, "digest", str),
        size=_typed(value, "size", int),
        modified_ns=_typed(value, "modified_ns", int),
        seen_unchanged=_typed({"seen_unchanged": 0, **value}, "seen_unchanged", int),
        unfinished=_typed({"unfinished": 0, **value}, "unfinished", int),
        same_as=_typed({"same_as": "", **value}, "same_as", str),
    )


def _read(value: Mapping[str, object]) -> CommitMetadata:
    config = _mapping(value["config"])
    inputs = {name: _mapping(cursor) for name, cursor in _mapping(value["inputs"]).items()}
    return CommitMetadata(
        run=_typed(value, "run", str),
        task=_typed(value, "task", str),
        node=_typed(value, "node", str),
        token=_typed(value, "token", int),
        operation=Operation(_typed(value, "operation", str)),
        inputs={
            name: Cursor(table_id=_typed(cursor, "table_id", str), version=_typed(cursor, "version", int))
            for name, cursor in inputs.items()
        },
        scope=scope_from_json(value["scope"]),
        cause=_typed(value, "cause", str),
        config=WrittenConfig(hash=_typed(config, "hash", str), parts=_mapping_of(config["parts"], str)),
        whole=_typed(value, "whole", bool),
        as_of=_typed(value, "as_of", str),
        counts=_mapping_of(value["counts"], int),
        files=tuple(file_from_dict(_mapping(file)) for file in _typed(value, "files", list)),
        rows=_typed({"rows": -1, **value}, "rows", int),
        schema_hash=_typed({"schema_hash": "", **value}, "schema_hash", str),
        partitions=tuple(
            BuiltPartition(partition_key=k, rows=n)
            for k, n in sorted(_mapping_of(value.get("partitions", {}), int).items())  # as they are written
        ),
        waiting=tuple(str(name) for name in _typed({"waiting": [], **value}, "waiting", list)),
        invalidations=tuple(
            _invalidation(_mapping(i)) for i in _typed({"invalidations": [], **value}, "invalidations", list)
        ),
        readable_from=_typed({"readable_from": 0, **value}, "readable_from", int),
        adopted=tuple(
            _typed({"version": version}, "version", int)
            for version in _typed({"adopted": [], **value}, "adopted", list)
        ),
        reshaped=_typed({"reshaped": False, **value}, "reshaped", bool),
        onto=_typed({"onto": -1, **value}, "onto", int),
        published_to=tuple(str(name) for name in _typed({"published_to": [], **value}, "published_to", list)),
    )


def _typed(value: Mapping[str, object], name: str, expected: type[T]) -> T:
    content = value[name]
    # In Python a bool is an int; in JSON it is not.
    if not isinstance(content, expected) or (expected is int and isinstance(content, bool)):
        raise TypeError(f"{name} is not {expected.__name__}")
    return content


def _mapping(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise TypeError("not an object")
    return value


def _mapping_of(value: object, expected: type[T]) -> dict[str, T]:
    mapping = _mapping(value)
    return {name: _typed(mapping, name, expected) for name in mapping}
