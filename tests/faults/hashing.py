"""The hash of a row that breaks ties (L3), in plain Python."""

from collections.abc import Mapping

import xxhash


def hash_row(row: Mapping[str, object]) -> int:
    """As `compute/keys.py` has Spark do it: of the values that are not NULL, with their names and lengths."""
    text = ";".join(
        f"{name}={len(str(value))}:{value}" for name, value in sorted(row.items()) if value is not None
    )
    return int.from_bytes(xxhash.xxh64_digest(text.encode(), seed=42), signed=True)
