"""Routes that show the state of the project: plan, status, runs, invalidations, datasets, history."""

from starlette.responses import Response

from strandline.app.clock import parse_instant
from strandline.app.described import describe_dataset
from strandline.app.history import read_history
from strandline.app.invalidations import list_invalidations
from strandline.app.plan import show_plan
from strandline.app.planning import RunRequest
from strandline.app.run_log import get_run, list_runs
from strandline.app.status import read_overview
from strandline.app.timeline_history import find_folding, read_timeline_history
from strandline.app.workspace import Workspace
from strandline.model.key_text import split_key
from strandline.model.serving import Role
from strandline.pages.documents.datasets import described_document
from strandline.pages.documents.dispatcher import dispatcher_document
from strandline.pages.documents.history import history_document
from strandline.pages.documents.invalidations import recorded_document
from strandline.pages.documents.plan import plan_document
from strandline.pages.documents.runs import run_detail_document, run_record_document
from strandline.pages.documents.status import status_document
from strandline.pages.documents.timeline_history import timeline_history_document

from .answers import answer
from .bodies import bad_parameter, check_parameters
from .declared import Call, Route
from .paging import page, read_limit, refuse_place
from .threads import in_thread


async def show_plan_now(call: Call) -> Response:
    check_parameters(call, "select", "as_of")
    as_of = call.request.query_params.get("as_of")
    request = RunRequest(
        select=call.request.query_params.get("select"),
        as_of=None if as_of is None else parse_instant(as_of),
    )
    plan, held = await in_thread(lambda: show_plan(call.served.workspace, request))
    return answer("plan", plan_document(plan, held))


async def show_status(call: Call) -> Response:
    check_parameters(call, "name")
    name = call.request.query_params.get("name")
    overview = await in_thread(lambda: read_overview(call.served.workspace, name))
    document = status_document(overview, with_partitions=True)
    dispatcher = dispatcher_document(call.served.work.state())
    project_error = call.served.project_error or None
    return answer("status", {**document, "project_error": project_error, "dispatcher": dispatcher})


async def show_runs(call: Call) -> Response:
    check_parameters(call, "limit", "after")
    limit, after = read_limit(call), call.request.query_params.get("after")
    runs = await in_thread(lambda: list_runs(call.served.workspace, limit + 1, after))
    if runs is None:
        raise refuse_place()
    last = runs[limit - 1].run if len(runs) > limit else None
    return answer("runs", {"runs": [run_record_document(r) for r in runs[:limit]], "next": last})


async def show_run(call: Call) -> Response:
    check_parameters(call)
    name = call.request.path_params["run"]
    detail = await in_thread(lambda: get_run(call.served.workspace, name))
    return answer("run", run_detail_document(detail))


async def show_invalidations(call: Call) -> Response:
    check_parameters(call, "limit", "after")
    listed = await in_thread(lambda: list_invalidations(call.served.workspace))
    part, last = page(call, listed, lambda recorded: str(recorded.columns["id"]))
    return answer(
        "invalidations", {"invalidations": [recorded_document(each) for each in part], "next": last}
    )


async def show_datasets(call: Call) -> Response:
    check_parameters(call, "limit", "after")
    overview = await in_thread(lambda: read_overview(call.served.workspace))
    datasets = status_document(overview, with_partitions=False)["datasets"]
    assert isinstance(datasets, list)
    part, last = page(call, datasets, lambda document: str(document["dataset"]))
    return answer("datasets", {"datasets": part, "next": last})


async def show_dataset(call: Call) -> Response:
    check_parameters(call)
    name = call.request.path_params["name"]
    described = await in_thread(lambda: describe_dataset(call.served.workspace, name))
    return answer("dataset", described_document(described))


async def show_history(call: Call) -> Response:
    check_parameters(call, "key")
    name, text = call.request.path_params["name"], call.request.query_params.get("key")
    values = None if text is None else split_key(text)
    if values is None or None in values:
        problem = "is missing" if text is None else "is not the text of a key without NULL"
        raise bad_parameter("key", problem, "Write the key's values joined by `,`, such as `key=pb,D-17`.")
    key = [value for value in values if value is not None]
    document = await in_thread(lambda: _history(call.served.workspace, name, key))
    return answer("history", document)


def _history(workspace: Workspace, name: str, key: list[str]) -> dict[str, object]:
    if folding := find_folding(workspace.project, name):
        return timeline_history_document(read_timeline_history(workspace, name, folding, key))
    return history_document(read_history(workspace, name, key))


ROUTES = (
    Route(method="GET", path="/v1/plan", role=Role.READ, answer=show_plan_now),
    Route(method="GET", path="/v1/status", role=Role.READ, answer=show_status),
    Route(method="GET", path="/v1/runs", role=Role.READ, answer=show_runs),
    Route(method="GET", path="/v1/runs/{run}", role=Role.READ, answer=show_run),
    Route(method="GET", path="/v1/invalidations", role=Role.READ, answer=show_invalidations),
    Route(method="GET", path="/v1/datasets", role=Role.READ, answer=show_datasets),
    Route(method="GET", path="/v1/datasets/{name}", role=Role.READ, answer=show_dataset),
    Route(method="GET", path="/v1/datasets/{name}/history", role=Role.READ, answer=show_history),
)
