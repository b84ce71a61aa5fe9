"""Damage that disks and people do to files."""

import zlib
from pathlib import Path


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def flip(path: Path, place: int | None = None) -> None:
    """Flip one bit, by default in the middle."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2 if place is None else place] ^= 1
    path.write_bytes(data)


def add_checksum(path: Path) -> None:
    """The checksum file that Hadoop writes beside a file."""
    data = path.read_bytes()
    sums = b"".join(
        zlib.crc32(data[start : start + 512]).to_bytes(4, "big") for start in range(0, len(data), 512)
    )
    path.with_name(f".{path.name}.crc").write_bytes(b"crc\0" + (512).to_bytes(4, "big") + sums)
