"""The runs that were made, what their tasks did, and the requests of servers. Starts no Spark."""

from dataclasses import dataclass

from strandline.catalog import find_request, find_run, read_runs, read_tasks
from strandline.model.catalog_records import RunRecord
from strandline.model.errors import CallError
from strandline.model.plan import TaskResult
from strandline.model.requests import RequestRecord

from .workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDetail:
    record: RunRecord
    results: tuple[TaskResult, ...]
    """Every attempt of every task, in the order in which they ended."""


def list_runs(workspace: Workspace, limit: int, after: str | None = None) -> tuple[RunRecord, ...] | None:
    """The newest first. `after` is the last run of the part before. None if there is no such run."""
    if after is not None and find_run(workspace.catalog, after) is None:
        return None
    return read_runs(workspace.catalog, limit, after)


def get_run(workspace: Workspace, run: str) -> RunDetail:
    record = find_run(workspace.catalog, run)
    if record is None:
        raise CallError(
            f"There is no run `{run}`.", remedy="`GET /v1/runs` lists the runs.", slug="unknown-run"
        )
    return RunDetail(record=record, results=read_tasks(workspace.catalog, run))


def get_request(workspace: Workspace, name: str) -> RequestRecord:
    record = find_request(workspace.catalog, name)
    if record is None:
        raise CallError(
            f"There is no request `{name}`.",
            remedy="Use the id of an answer to `POST /v1/runs`; requests are kept for `settings.keep`.",
            slug="unknown-request",
        )
    return record
