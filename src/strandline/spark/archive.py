"""A class-data archive: Spark's classes in the JVM's own memory format, so that it starts in half the time.

`lake.warm_up` creates it once. A JVM that does not fit the archive ignores it.
"""

import hashlib
from importlib.metadata import version
from pathlib import Path

from .jars import JARS, jar_folder


def archive_path(java_home: Path) -> Path:
    """Where the archive for this Java, this Spark and these jars is, or would be."""
    release = java_home / "release"
    known = [
        str(java_home),
        release.read_text() if release.exists() else "",
        version("pyspark"),
        *(jar.sha256 for jar in JARS),
    ]
    return jar_folder() / f"classes-{hashlib.sha256(chr(0).join(known).encode()).hexdigest()[:16]}.jsa"


def java_options(java_home: Path) -> str:
    """JVM options that use the archive, if there is one.

    Its warnings are turned off: they would go to stdout.
    """
    path = archive_path(java_home)
    return f"-XX:SharedArchiveFile={path} -Xshare:auto -Xlog:disable" if path.exists() else ""
