"""A class-data archive: Spark's classes as the JVM has them in memory, so that it starts in half the time.

Made once, by `make setup`, from a process that does what a run does. A JVM that does not fit the archive ignores it.
"""

import hashlib
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from strandline.model.project import Settings

from .jars import JARS, find_java_home, jar_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def archive_path(java_home: Path) -> Path:
    """Where the archive for this Java, this Spark and these jars is, or would be."""
    release = java_home / "release"
    known = [str(java_home), release.read_text() if release.exists() else "", version("pyspark"), *(jar.sha256 for jar in JARS)]
    return jar_folder() / f"classes-{hashlib.sha256(chr(0).join(known).encode()).hexdigest()[:16]}.jsa"


def java_options(java_home: Path) -> str:
    """The JVM's options that use the archive, if there is one. Its complaints are turned off: they would go to standard output."""
    path = archive_path(java_home)
    return f"-XX:SharedArchiveFile={path} -Xshare:auto -Xlog:disable" if path.exists() else ""


def make_archive() -> None:
    """Do what a run does, once, and let the JVM keep its classes when it ends."""
    home = find_java_home()
    if home is None or archive_path(home).exists():
        return
    from .session import start_session

    made = archive_path(home).with_suffix(".making")
    session = start_session(
        Settings(lake="", catalog="", spark_master="local[2]", spark_conf={}), f"-XX:ArchiveClassesAtExit={made} -Xlog:disable"
    )
    scratch = tempfile.mkdtemp(prefix="strandline-archive-")
    try:
        _exercise(session, scratch)
        gateway = session.sparkContext._gateway
        process = gateway.proc  # type: ignore[union-attr]
        session.stop()
        gateway.shutdown()  # type: ignore[union-attr]
        process.stdin.close()
        process.wait(timeout=300)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if made.exists():
        made.replace(archive_path(home))


def _exercise(session: "SparkSession", folder: str) -> None:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    from .location import Lake
    from .staging import stage
    from .writes import Ticket, append, overwrite, replace_keys

    lake = Lake(root=folder)
    message = F.try_parse_json(F.concat(F.lit('[{"a":'), F.col("id").cast("string"), F.lit("}]")))
    rows = session.range(100).select(
        F.try_variant_get(message, "$[0].a", "string").try_cast("bigint").alias("a"),
        F.xxhash64("id").alias("_key"),
        F.lit(False).alias("_deleted"),
    )
    overwrite(rows, lake, Ticket(dataset="t", token=1, metadata="{}"))
    append(rows, lake, Ticket(dataset="t", token=2, metadata="{}"))
    best = rows.withColumn("n", F.row_number().over(Window.partitionBy("_key").orderBy(F.col("a").desc()))).where("n = 1").drop("n")
    staged = stage(best, f"{folder}/staged", {"rows": F.count(F.lit(1))})
    replace_keys(staged.read(session), lake, Ticket(dataset="t", token=3, metadata="{}"))
    session.read.format("delta").load(lake.table("t")).groupBy("_deleted").agg(F.sum("a")).collect()


if __name__ == "__main__":
    make_archive()
