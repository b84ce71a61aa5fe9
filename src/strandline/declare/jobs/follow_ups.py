"""Mistakes of a job that may only follow from a value or an input that was not understood."""

_APPENDING = ("append-without-cursor", "append-without-key", "unused-key")
_RELATIONS = ("input-relation-unknown", "partition-needs-by", "by-is-not-the-key", "order-not-total")
_MODES = ("keyed-without-key", "cursor-without-column", "partition-without-column", "key-not-in-output")

FOLLOW_UPS = {
    "incremental": (*_APPENDING, *_RELATIONS, *_MODES),
    "partition": (*_APPENDING, *_RELATIONS, *_MODES, "partition-size"),
    "update_strategy": _APPENDING,
    "sql": ("job-without-code", "sql-and-python"),
    "python": ("job-without-code", "sql-and-python"),
    "input_datasets": ("missing-key", "undeclared-input", "unknown-dataset", *_RELATIONS),
    "lookup_datasets": ("undeclared-input", *_RELATIONS),
    "config": ("unknown-parameter", "parameter-not-a-value", "final-after"),
}
"""By key of an entry: the slugs that may only follow from a value that was not understood."""

UNKNOWN_INPUT = (*_RELATIONS, "key-not-in-output")
"""The slugs that may only follow from an input whose columns are unknown."""
