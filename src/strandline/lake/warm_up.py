"""Create the class-data archive: do once what a run does, and let the JVM save its classes when it ends.

`make setup` runs this module.
"""

import shutil
import tempfile

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

from strandline.model.project import Settings
from strandline.spark.archive import archive_path
from strandline.spark.jars import find_java_home
from strandline.spark.session import start_session

from .location import Lake
from .staging import stage
from .writes import Ticket, append, overwrite, replace_keys


def make_archive() -> None:
    """Do once what a run does, and let the JVM save its classes when it ends."""
    home = find_java_home()
    if home is None or archive_path(home).exists():
        return
    made = archive_path(home).with_suffix(".making")
    session = start_session(
        Settings(lake="", catalog="", spark_master="local[2]", spark_conf={}),
        f"-XX:ArchiveClassesAtExit={made} -Xlog:disable",
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


def _exercise(session: SparkSession, folder: str) -> None:
    lake = Lake(root=folder)
    message = F.try_parse_json(F.concat(F.lit('[{"a":'), F.col("id").cast("string"), F.lit("}]")))
    rows = session.range(100).select(
        F.try_variant_get(message, "$[0].a", "string").try_cast("bigint").alias("a"),
        F.xxhash64("id").alias("_key"),
        F.lit(False).alias("_deleted"),
    )
    overwrite(rows, lake, Ticket(dataset="t", token=1, metadata="{}"))
    append(rows, lake, Ticket(dataset="t", token=2, metadata="{}"))
    best = (
        rows.withColumn("n", F.row_number().over(Window.partitionBy("_key").orderBy(F.col("a").desc())))
        .where("n = 1")
        .drop("n")
    )
    staged = stage(best, f"{folder}/staged", {"rows": F.count(F.lit(1))})
    replace_keys(staged.read(session), lake, Ticket(dataset="t", token=3, metadata="{}"))
    session.read.format("delta").load(lake.table("t")).groupBy("_deleted").agg(F.sum("a")).collect()


if __name__ == "__main__":
    make_archive()
