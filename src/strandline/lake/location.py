"""Addresses in the lake."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlparse

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq

INBOX = "_inbox"
"""The folder of the lake that holds what was posted and not received yet. No table has such a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lake:
    """The root of the lake: a folder, or any URI Spark can write."""

    root: str

    def table(self, name: str) -> str:
        """The address of a dataset's table, as Spark takes it."""
        return f"{self.root.rstrip('/')}/{name}"

    def staging(self, run: str) -> str:
        """Where a run keeps what it computed before it commits it. Removed when the run ends."""
        return f"{self.root.rstrip('/')}/_staging/{run}"

    def inbox(self, source: str) -> Path:
        """The folder of what was posted to a source. Only a lake on a disk has one."""
        assert self.local is not None
        return self.local / INBOX / source

    @property
    def local(self) -> Path | None:
        """The folder, for a lake on this machine's disk."""
        return (
            Path(urlparse(self.root).path if self.root.startswith("file:") else self.root)
            if self.is_local
            else None
        )

    @property
    def is_local(self) -> bool:
        return "://" not in self.root or self.root.startswith("file:")

    @property
    def one_writer(self) -> bool:
        """Delta's commit is safe on plain files, and on S3 without put-if-absent, only inside one JVM."""
        return self.is_local or self.root.startswith(("s3a:", "s3:"))


def open_folder(uri: str) -> tuple[pyarrow.fs.FileSystem, str]:
    """A file system and the path in it, for a table of any lake."""
    if "://" not in uri or uri.startswith("file:"):
        return pyarrow.fs.LocalFileSystem(), urlparse(uri).path if uri.startswith("file:") else uri
    from deltalake.fs import DeltaStorageHandler

    return pyarrow.fs.PyFileSystem(DeltaStorageHandler(for_delta_rs(uri))), ""


def write_parquet(rows: pa.Table, uri: str) -> None:
    """Write a file, and the folders it lies in."""
    file_system, path = open_folder(uri)
    file_system.create_dir(path.rsplit("/", 1)[0], recursive=True)
    pq.write_table(rows, path, filesystem=file_system)


def for_delta_rs(uri: str) -> str:
    """delta-rs says `s3://` where Spark says `s3a://`."""
    return uri.replace("s3a://", "s3://", 1) if uri.startswith("s3a://") else uri
