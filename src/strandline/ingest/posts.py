"""The task of an HTTP source: the messages that were posted and not received yet, with positions."""

from functools import partial

from pyspark.sql import functions as F

from strandline.lake.received import find_received
from strandline.lake.work import Prepared, Work, Write
from strandline.model.columns import INGESTED_AT, PAYLOAD, POSITION
from strandline.model.commits import Operation
from strandline.model.project import HttpSource
from strandline.model.scope import NOTHING, Rows

from .inbox import begin
from .staging import TextWriter
from .waiting import add_to_entry, find_entry, look


def receive_posts(work: Work, source: HttpSource) -> Prepared:
    inbox, entry, version = work.lake.inbox(source.name), find_entry(source, work.files), work.own_version
    if version is None:
        begin(inbox)
    find = None if version is None else partial(find_received, work.lake.table(source.name), version)
    waiting = look(source, inbox, work.task.files, entry, find)
    writer = TextWriter(f"{work.staging}/received/posts.parquet")
    count = 0
    for post in waiting.new:
        for place, text in post.read():
            writer.add(post.head.key, post.part, place, text)
            count += 1
    read = add_to_entry(entry, waiting.new, count)
    refused = next(iter(waiting.refused.values()), None)
    rows = writer.read(work.session)
    if not count and version is not None:
        return Prepared(
            write=None,
            live_rows=work.live_rows,
            files=(read,) if waiting.new else (),
            posts=waiting.paths,
            notes=waiting.notes,
            refused=refused,
            scope=NOTHING,
        )
    messages = rows.select(F.col("text").alias(PAYLOAD), F.struct("name", "part", "place").alias(POSITION))
    return Prepared(
        write=Write(
            operation=Operation.APPEND if count else Operation.COUNTS,
            rows=messages.withColumn(INGESTED_AT, F.lit(work.now)),
            received=True,
        ),
        rows_read=count,
        rows_written=count,
        rows_full=work.live_rows + count,
        live_rows=work.live_rows + count,
        counts={"received": count},
        whole=False,
        files=(read,),
        posts=waiting.paths,
        scope=Rows(count=len(waiting.new), of="posts"),
        notes=waiting.notes,
        refused=refused,
    )
