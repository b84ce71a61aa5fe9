"""Planner cases as text: a world described line by line, and the plan it must give.

    === a commit past the cursor makes its reader behind
    project small
    built
    commit sale replace_keys 1,200 rows
    ---
    pieces: recompute, because of new_input
      ...

The lines before `---` are commands of `World`, the lines after it the plan as `render` prints it.
"""

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import cast

from strandline.app.planning import RunRequest, plan_request
from strandline.app.workspace import Workspace
from strandline.declare import load_project
from strandline.model.catalog_records import CatalogView, NodeRecord, PartitionVersion
from strandline.model.commits import (
    CommitMetadata,
    CommitSummary,
    Invalidation,
    Operation,
    TableState,
    WrittenConfig,
)
from strandline.model.condition_json import from_row_filter
from strandline.model.condition_text import describe as describe_filter
from strandline.model.definitions import plan_columns
from strandline.model.files import FileRead, FileSeen
from strandline.model.node import Node, Project
from strandline.model.own_clock import ColumnRange
from strandline.model.plan import Cursor, Held, Plan, PlannedInput, Task
from strandline.model.project import FileSource, Quarantine
from strandline.model.scope import Rows, find_filter, find_partitions
from strandline.model.scope_text import describe
from strandline.plan import Observed, current_config, plan

FOLDER = Path(__file__).parent
CASES = FOLDER / "cases"
AS_OF = datetime(2024, 5, 1, tzinfo=UTC)
ROWS, ROW_BYTES = 500, 100
PARTITION_ROWS = 20


@dataclass(frozen=True)
class Case:
    title: str
    commands: tuple[str, ...]
    expected: str

    def text(self, plan_text: str) -> str:
        return "\n".join([f"=== {self.title}", *self.commands, "---", plan_text, ""])


def read_cases(file: Path) -> Iterator[Case]:
    for block in re.split(r"^=== ", file.read_text(), flags=re.MULTILINE)[1:]:
        commands, _, expected = block.partition("\n---\n")
        title, *lines = commands.splitlines()
        yield Case(title=title, commands=tuple(lines), expected=expected.strip("\n"))


@dataclass
class World:
    """What the planner knows, built up by commands."""

    yaml: str = ""
    records: dict[str, NodeRecord] = field(default_factory=dict)
    tables: dict[str, TableState] = field(default_factory=dict)
    listings: dict[str, dict[str, FileSeen]] = field(default_factory=dict)
    ranges: dict[tuple[str, str], list[ColumnRange]] = field(default_factory=dict)
    request: RunRequest = field(default_factory=lambda: RunRequest(as_of=AS_OF))

    def tell(self, line: str) -> None:
        verb, _, rest = line.strip().partition(" ")
        commands: dict[str, Callable[[str], None]] = {
            "project": self.take_project,
            "edit": self.edit,
            "job": self.add_job,
            "built": self.build,
            "refused": self.refuse,
            "commit": self.commit,
            "partitions": self.build_partitions,
            "waits": self.let_wait,
            "columns": self.give_columns,
            "file": self.list_file,
            "unfinished": self.leave_unfinished,
            "recreate": self.recreate,
            "restore": self.restore,
            "truncate": self.truncate,
            "clean": self.clean,
            "drop": self.drop,
            "range": self.give_range,
            "ask": self.ask,
        }
        if verb and not verb.startswith("#"):
            commands[verb](rest.strip())

    @property
    def project(self) -> Project:
        return _load(self.yaml)

    @property
    def observed(self) -> Observed:
        listings = {name: tuple(files.values()) for name, files in self.listings.items()}
        return Observed(
            view=CatalogView(nodes=self.records),
            tables=self.tables,
            listings=listings,
            ranges={key: tuple(files) for key, files in self.ranges.items()},
        )

    @property
    def workspace(self) -> Workspace:
        """Without catalog and lake: their answers are already observed, and any access to them fails."""
        return cast(Workspace, SimpleNamespace(project=self.project, observe=lambda: self.observed))

    def plan(self) -> Plan:
        observed = self.observed
        return plan(self.project, observed, plan_request(self.workspace, observed, self.request))

    def take_project(self, name: str) -> None:
        """`project small`: one of the projects beside the cases."""
        self.yaml = (FOLDER / "projects" / f"{name}.yaml").read_text()

    def edit(self, change: str) -> None:
        """`edit OLD => NEW`: change the project file; `\\n` starts a new line."""
        old, new = change.replace("\\n", "\n").split(" => ")
        assert old in self.yaml, f"the project has no {old!r}"
        self.yaml = self.yaml.replace(old, new)

    def add_job(self, flow: str) -> None:
        """`job {name: ..., ...}`: one more job, in YAML's flow style."""
        self.yaml += f"  - {flow}\n"

    def build(self, names: str) -> None:
        """`built` or `built sale_facts sale`: as a run with 500 rows for each left them."""
        wanted = names.split()
        for node in self.project.nodes:
            if not wanted or node.name in wanted:
                self._build(node)

    def _build(self, node: Node) -> None:
        files = {}
        if node.kind == FileSource.kind:
            files = {"data/first": _read_file("data/first")}
            self.listings.setdefault(node.name, {})["data/first"] = _listed("data/first")
        if node.kind != Quarantine.kind:  # nothing was refused, so it has no table
            operation = Operation.APPEND if node.kind == FileSource.kind else Operation.OVERWRITE
            commit = _commit(node.name, 0, operation, ROWS)
            size = ROWS * ROW_BYTES
            self.tables[node.name] = TableState(
                dataset=node.name,
                table_id=f"{node.name} table",
                version=0,
                rows=ROWS,
                bytes=size,
                commits=(commit,),
            )
        self.records[node.name] = NodeRecord(
            dataset=node.name,
            kind=node.kind,
            table_id=f"{node.name} table" if node.name in self.tables else "",
            table_version=0 if node.name in self.tables else -1,
            configs=(self._config(node),),
            as_of=AS_OF.isoformat(),
            row_count=ROWS if node.name in self.tables else 0,
            bytes=0,
            counts={},
            cursors={i.dataset: self._cursor(i.dataset) for i in node.inputs if i.dataset in self.tables},
            files=files,
        )

    def refuse(self, words: str) -> None:
        """`refused sale_quarantine 7 rows`: as a run with 7 refused rows left it."""
        name, rows, _ = words.split()
        commit = _commit(name, 0, Operation.OVERWRITE, int(rows))
        size = int(rows) * ROW_BYTES
        table = TableState(
            dataset=name, table_id=f"{name} table", version=0, rows=int(rows), bytes=size, commits=(commit,)
        )
        self.tables[name] = table
        self.records[name] = replace(
            self.records[name], table_id=table.table_id, table_version=0, row_count=int(rows)
        )

    def commit(self, words: str) -> None:
        """`commit sale replace_keys 1,200 rows`, `... x 1000`: recorded commits; or `foreign`, or `optimize`.

        `commit sale overwrite 500 rows unrecorded`: the catalog does not know of it.

        `commit sale invalidate because checked`, `commit sale replace_keys 22 rows because reorg`: it carries
        an invalidation.
        """
        match = re.fullmatch(
            r"(\w+) (\w+)(?: ([\d,]+) rows)?(?: because (\w+))?(?: x (\d+))?( unrecorded)?", words
        )
        assert match, words
        name, operation, rows = match[1], match[2], int((match[3] or "0").replace(",", ""))
        for _ in range(int(match[5] or 1)):
            table = self.tables[name]
            version = table.version + 1
            added = _commit(
                name,
                version,
                None if operation in ("foreign", "optimize") else Operation(operation),
                rows,
                match[4] or "",
            )
            if operation in ("foreign", "optimize"):
                added = replace(
                    added,
                    changes_rows=operation == "foreign",
                    operation="WRITE" if operation == "foreign" else "OPTIMIZE",
                )
            elif not match[6]:
                self._record(name, version, Operation(operation))
            self.tables[name] = replace(table, version=version, commits=(*table.commits, added))

    def _record(self, name: str, version: int, operation: Operation) -> None:
        record, config = self.records[name], self._config(self.project.get(name))
        configs = record.configs
        if operation is Operation.OVERWRITE:
            configs = (config,)
        elif operation.changes_rows and config.hash not in {c.hash for c in configs}:
            configs = (*configs, config)
        self.records[name] = replace(record, table_version=version, configs=configs)

    def build_partitions(self, words: str) -> None:
        """`partitions cold_blocks 0-10 10-20`: built by the current configuration, 20 rows each.

        The other partitions stay as they were.
        """
        name, *keys = words.split()
        self._record(name, self.tables[name].version, Operation.REPLACE_PARTITIONS)
        record = self.records[name]
        built = {
            key: PartitionVersion(
                dataset=name,
                partition_key=key,
                version=AS_OF,
                config_hash=self._config(self.project.get(name)).hash,
                schema_hash="",
                location="",
                row_count=PARTITION_ROWS,
                bytes=0,
                table_version=self.tables[name].version,
            )
            for key in keys
        }
        self.records[name] = replace(record, partitions={**record.partitions, **built})

    def let_wait(self, words: str) -> None:
        """`waits cold_blocks 20-30`: read, but not final yet."""
        name, *keys = words.split()
        self.records[name] = replace(self.records[name], waiting=tuple(keys))

    def give_columns(self, words: str) -> None:
        """`columns cold_blocks block_number:bigint block_hash:string`: columns that `--where` may name."""
        name, *columns = words.split()
        self.tables[name] = replace(
            self.tables[name], columns=tuple((c.split(":")[0], c.split(":")[1]) for c in columns)
        )

    def give_range(self, words: str) -> None:
        """`range tracks_facts sent_at 2024-01-01 2024-02-01`: of one more file; or `range ... unknown`.

        Each file has a hundred rows.
        """
        name, column, *ends = words.split()
        low_high = [datetime.fromisoformat(end).replace(tzinfo=UTC) for end in ends if end != "unknown"]
        low, high = low_high or (None, None)
        self.ranges.setdefault((name, column), []).append(ColumnRange(low=low, high=high, rows=100))

    def list_file(self, words: str) -> None:
        """`file sale_events data/second 5,000 bytes`: what the source's folder shows now."""
        match = re.fullmatch(r"(\w+) (\S+) ([\d,]+) bytes", words)
        assert match, words
        self.listings.setdefault(match[1], {})[match[2]] = FileSeen(
            path=match[2], size=int(match[3].replace(",", "")), modified_ns=2
        )

    def leave_unfinished(self, words: str) -> None:
        """`unfinished sale_events data/first`: its last line waits for a newline."""
        name, path = words.split()
        record = self.records[name]
        self.records[name] = replace(
            record,
            files={
                **record.files,
                path: replace(record.files[path], unfinished=1, bytes=ROWS * ROW_BYTES - 60),
            },
        )

    def recreate(self, name: str) -> None:
        """`recreate sale`: someone deleted the table and created another one in its place."""
        self.tables[name] = replace(
            self.tables[name], table_id=f"another {name} table", version=0, commits=()
        )

    def restore(self, words: str) -> None:
        """`restore sale to 2`: the table and its log were restored to an older state."""
        name, version = words.split(" to ")
        table = self.tables[name]
        kept = tuple(c for c in table.commits if c.version <= int(version))
        self.tables[name] = replace(table, version=int(version), commits=kept)

    def truncate(self, words: str) -> None:
        """`truncate sale to 7`: the log before version 7 is gone."""
        name, version = words.split(" to ")
        table = self.tables[name]
        kept = tuple(c for c in table.commits if c.version >= int(version))
        self.tables[name] = replace(table, earliest=int(version), commits=kept)

    def clean(self, words: str) -> None:
        """`clean sale to 7`: files that only versions before 7 need were removed, and the table says so."""
        name, version = words.split(" to ")
        self.commit(f"{name} clean")
        *before, newest = self.tables[name].commits
        assert newest.metadata
        newest = replace(newest, metadata=replace(newest.metadata, readable_from=int(version)))
        self.tables[name] = replace(self.tables[name], commits=(*before, newest))

    def drop(self, name: str) -> None:
        """`drop sale`: the table is gone."""
        del self.tables[name]

    def ask(self, words: str) -> None:
        """`ask --select X`, `ask --as-of T`, `ask now T`, `ask release X`, `ask backfill X` with arguments.

        `now T`: a run that starts then, for which nobody named a time.

        The arguments are `--all`, `--stale`, `--partitions A,B` or `--where W --reason R`.
        """
        arguments = shlex.split(words)

        def value_of(option: str) -> str:
            return arguments[arguments.index(option) + 1] if option in arguments else ""

        if arguments[0] == "backfill":
            self.request = replace(
                self.request,
                backfill=arguments[1],
                only_stale="--stale" in arguments,
                partitions=tuple(value_of("--partitions").split(",")) if "--partitions" in arguments else (),
                where=value_of("--where"),
                reason=value_of("--reason"),
            )
        elif arguments[0] == "now":
            started_at = datetime.fromisoformat(arguments[1])
            self.request = replace(self.request, as_of=started_at, goes_back=False)
        elif arguments[0] == "release":
            self.request = replace(self.request, release=arguments[1])
        if "--select" in arguments:
            self.request = replace(self.request, select=arguments[arguments.index("--select") + 1])
        if "--as-of" in arguments:
            self.request = replace(
                self.request, as_of=datetime.fromisoformat(arguments[arguments.index("--as-of") + 1])
            )

    def _config(self, node: Node) -> WrittenConfig:
        config = current_config(node, self.observed)
        if node.traits.origins:
            return plan_columns(node, None, config, self.tables, (), anew=True).config
        return WrittenConfig(hash=config.hash, parts=config.parts)

    def _cursor(self, name: str) -> Cursor:
        return Cursor(table_id=self.tables[name].table_id, version=self.tables[name].version)


def tell(lines: tuple[str, ...]) -> World:
    world = World()
    for line in lines:
        world.tell(line)
    return world


@cache
def _load(yaml: str) -> Project:
    with TemporaryDirectory() as folder:
        Path(folder, "strandline.yaml").write_text(yaml)
        return load_project(Path(folder), {})


def _commit(
    name: str, version: int, operation: Operation | None, rows: int, invalidates: str = ""
) -> CommitSummary:
    metadata = None
    if operation is not None:
        invalidation = Invalidation(
            id=f"{name} {version}", scope=Rows(where=from_row_filter({"pieces": version})), reason=invalidates
        )
        bare = CommitMetadata.bare(run="r", node=name, token=version, operation=operation, as_of="")
        metadata = replace(bare, invalidations=(invalidation,) if invalidates else ())
    return CommitSummary(
        version=version,
        changes_rows=operation is None or operation.changes_rows,
        rows_added=rows,
        bytes_added=rows * ROW_BYTES,
        metadata=metadata,
        operation="WRITE",
    )


def _read_file(path: str) -> FileRead:
    size = ROWS * ROW_BYTES
    return FileRead(path=path, revision=0, bytes=size, rows=ROWS, digest="", size=size, modified_ns=1)


def _listed(path: str) -> FileSeen:
    return FileSeen(path=path, size=ROWS * ROW_BYTES, modified_ns=1)


def render(made: Plan) -> str:
    """A plan as text, with everything that a run depends on."""
    lines = [line for task in made.tasks for line in _render_task(task)]
    lines += [line for held in made.stale for line in _render_held("stale ", held)]
    lines += [line for held in made.frozen for line in _render_held("frozen", held)]
    lines += [line for held in made.held for line in _render_held("held  ", held)]
    lines += [f"note    {note}" for note in made.notes]
    return "\n".join(lines) or "nothing to do"


def _render_held(word: str, held: Held) -> Iterator[str]:
    yield f"{word}  {held.node}: {held.reason}"
    if held.partitions:
        yield f"  holds   {', '.join(held.partitions)}, about {held.backfill_rows:,} rows"


def _render_task(task: Task) -> Iterator[str]:
    yield f"{task.node}: {task.strategy}, because of {task.cause}"
    yield f"  why     {task.reason}"
    yield f"  covers  {describe(task.scope)}"
    yield (
        f"  reads   {task.estimated_rows:,} of {task.full_rows:,} rows, "
        f"{task.estimated_bytes:,} of {task.full_bytes:,} bytes"
    )
    if partitions := find_partitions(task.scope):
        yield f"  asked   for {', '.join(partitions)}"
    if where := find_filter(task.scope):
        yield f"  asked   for {describe_filter(where)}"
    if task.files:
        yield f"  files   {' '.join(task.files)}"
    if task.inputs:
        yield f"  inputs  {', '.join(_render_input(i) for i in task.inputs)}"
    if task.needs:
        yield f"  waits   for {', '.join(task.needs)}"
    if task.overwrite:
        yield "  writes  the table anew"
    if task.reshapes:
        yield "  writes  the table anew if its columns or types are others"
    if isinstance(task.scope, Rows) and task.scope.refused:
        yield "  writes  what now passes"
    if task.refuses:
        yield f"  refuses a change in {', '.join(task.refuses)}"


def _render_input(given: PlannedInput) -> str:
    after = "from the start" if given.after is None else f"after version {given.after.version}"
    return f"{given.dataset} {after}" + ("" if given.changes else " (unchanged)")
