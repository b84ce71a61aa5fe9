"""The least that any script would need: start Spark, and make the commits that a run made.

`python -m bench.floor BEFORE AFTER` is that script. AFTER is the lake that a run left, BEFORE a copy of it
from before the run. The rows of each commit are read from the files that it added, and committed to the copy
with the same settings, options and conditions, one commit after the other. Nothing is decided, compared or
recorded. It prints its measurements as one line of JSON.
"""

import json
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .measure import count_cpu_seconds, count_jobs

_COMMIT = re.compile(r"\d{20}\.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    seconds: float
    """Of the whole script, imports included."""
    cpu_seconds: float
    spark_seconds: float
    """Until Spark had started."""
    commits: int
    jobs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A commit of a run, as its log tells it."""

    table: str
    at: int
    files: tuple[Path, ...]
    predicate: str | None
    """For a replace: which rows it takes the place of."""
    by_key: bool
    """Whether it replaced the rows that agree with the new ones in `predicate`."""
    schema: str
    token: int
    metadata: str


def read_commits(before: Path, after: Path) -> Iterator[Commit]:
    """The commits of tables that were there before, in their order."""
    for log in sorted(before.rglob("_delta_log")):
        table = log.parent.relative_to(before)
        known = {file.name for file in log.glob("*.json")}
        schema = ""
        for file in sorted((after / table / "_delta_log").glob("*.json")):
            if not _COMMIT.fullmatch(file.name):
                continue
            actions = [json.loads(line) for line in file.read_text().splitlines()]
            schema = next((a["metaData"]["schemaString"] for a in actions if "metaData" in a), schema)
            if file.name not in known:
                yield _read_commit(after / table, str(table), actions, schema)


def _read_commit(folder: Path, table: str, actions: list[dict[str, Any]], schema: str) -> Commit:
    info = next(a["commitInfo"] for a in actions if "commitInfo" in a)
    parameters = info["operationParameters"]
    tokens = [a["txn"]["version"] for a in actions if "txn" in a]
    removed = {a["remove"]["path"] for a in actions if "remove" in a}
    condition = parameters.get("replaceOn") or parameters.get("predicate") or ""
    if condition.startswith("["):
        condition = " AND ".join(json.loads(condition))
    return Commit(
        table=table,
        at=info["inCommitTimestamp"],
        files=tuple(
            folder / a["add"]["path"] for a in actions if "add" in a and a["add"]["path"] not in removed
        ),
        predicate=condition or None,
        by_key="__here" in condition,
        schema=schema,
        token=max(tokens, default=0),
        metadata=info.get("userMetadata", ""),
    )


def main(words: list[str]) -> None:
    started = time.monotonic()
    from pyspark.sql.types import StructType

    from strandline.model.project import Settings
    from strandline.spark.session import fit_session, get_session

    before, after = map(Path, words)
    settings = Settings(lake="", catalog="", spark_master="local[2]", spark_conf={})
    session = get_session(settings)
    spark_seconds = time.monotonic() - started
    small = fit_session(session, settings, 0, own=False)
    commits = sorted(read_commits(before, after), key=lambda commit: commit.at)
    for commit in commits:
        schema = StructType.fromJson(json.loads(commit.schema))
        reader = small.read.schema(schema)
        files = [str(file) for file in commit.files]
        rows = reader.parquet(*files) if files else small.createDataFrame([], schema)
        writer = (
            rows.alias("__here")
            .write.format("delta")
            .option("txnAppId", commit.table)
            .option("txnVersion", commit.token)
            .option("userMetadata", commit.metadata)
        )
        if commit.predicate is None:
            writer = writer.mode("append")
        elif commit.by_key:
            writer = writer.mode("overwrite").option("replaceOn", commit.predicate)
            writer = writer.option("targetAlias", "__there")
        else:
            writer = writer.mode("overwrite").option("replaceWhere", commit.predicate)
        writer.save(str(before / commit.table))
    floor = Floor(
        seconds=time.monotonic() - started,
        cpu_seconds=count_cpu_seconds(),
        spark_seconds=spark_seconds,
        commits=len(commits),
        jobs=count_jobs(session),
    )
    print(json.dumps(asdict(floor)))


if __name__ == "__main__":
    main(sys.argv[1:])
