"""Operations of one server: the schema of what is built now, and how queries are executed."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any

from graphql import ExecutionResult, GraphQLError, GraphQLResolveInfo, execute_sync

from strandline.app.keyed import KeyedTables, find_keyed_tables
from strandline.app.reading import Readable
from strandline.app.rows import OrderBy, RowsRequest, read_rows
from strandline.model.errors import CallError, StrandlineError
from strandline.serve.subscriptions.hub import NEVER_BUILT, Hub

from .operations import Operation, prepare
from .schema import Catalogue, make_catalogue

_FRESH = 1.0
"""Seconds for which the schema is not compared with the tables again."""
_QUERIES = 4
"""Queries that are executed at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    workspace: Readable


class Engine:
    """Used by one event loop alone."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self._workspace: Readable | None = None
        self._tables: KeyedTables | None = None
        self._catalogue: Catalogue | None = None
        self._looked_at = -_FRESH
        self._looking = asyncio.Lock()
        self._queries = asyncio.Semaphore(_QUERIES)

    async def find_catalogue(self) -> Catalogue:
        """The schema of the tables as they are now."""
        async with self._looking:
            workspace = self.hub.workspace
            if workspace is not self._workspace:
                self._tables, self._workspace, self._looked_at = None, workspace, -_FRESH
            if self._catalogue is None or monotonic() - self._looked_at >= _FRESH:
                tables = await asyncio.to_thread(find_keyed_tables, workspace, self._tables)
                before = self._tables.tables if self._tables else None
                if self._catalogue is None or tables.tables != before:
                    self._catalogue = make_catalogue(tables.tables, _read_rows, _read_by_key)
                self._tables, self._looked_at = tables, monotonic()
            return self._catalogue

    async def prepare(self, body: Mapping[str, Any]) -> Operation:
        """Raises RefusedOperationError."""
        catalogue = await self.find_catalogue()
        return await asyncio.to_thread(
            prepare, catalogue, body.get("query"), body.get("operationName"), body.get("variables")
        )

    async def execute(self, operation: Operation) -> dict[str, Any]:
        """The answer to a query."""
        context = Context(workspace=self.hub.workspace)

        def execute() -> ExecutionResult:
            return execute_sync(
                operation.schema,
                operation.document,
                context_value=context,
                variable_values=dict(operation.raw_variables),
                operation_name=operation.node.name.value if operation.node.name else None,
            )

        async with self._queries:
            result = await asyncio.to_thread(execute)
        answer: dict[str, Any] = {"data": result.data}
        if result.errors:
            answer["errors"] = show_errors(*result.errors)
        return answer


def show_errors(*errors: GraphQLError) -> list[dict[str, Any]]:
    """As clients see them. What is not meant for them stays here."""
    return [_show(error) for error in errors]


def describe(error: StrandlineError) -> GraphQLError:
    """An error of ours as one of GraphQL."""
    code = error.slug.upper().replace("-", "_")
    return GraphQLError(error.what, extensions={"code": code, "remedy": error.remedy})


def _show(error: GraphQLError) -> dict[str, Any]:
    cause = error.original_error
    shown: dict[str, Any] = dict(error.formatted)
    if isinstance(cause, StrandlineError):
        ours = describe(cause)
        return {**shown, "message": ours.message, "extensions": ours.extensions}
    if cause is not None and not isinstance(cause, GraphQLError):
        code = {"code": "INTERNAL"}
        return {**shown, "message": "The server failed to answer this field.", "extensions": code}
    return {**shown, "extensions": {"code": "INVALID", **(error.extensions or {})}}


def _read_rows(_: object, info: GraphQLResolveInfo[Context], **arguments: Any) -> list[Mapping[str, object]]:
    order = tuple(
        OrderBy(column=column, descending=direction == "desc")
        for entry in arguments.get("order_by") or ()
        for column, direction in entry.items()
        if direction is not None
    )
    request = RowsRequest(
        dataset=info.field_name,
        where=arguments.get("where"),
        order_by=order,
        limit=arguments["limit"],
        offset=arguments["offset"],
    )
    return _read(info.context.workspace, request)


def _read_by_key(
    _: object, info: GraphQLResolveInfo[Context], **arguments: Any
) -> Mapping[str, object] | None:
    name = info.field_name.removesuffix("_by_pk")
    key = info.context.workspace.project.row_keys[name].columns
    where = {
        column: {"_is_null": True} if arguments.get(column) is None else {"_eq": arguments[column]}
        for column in key
    }
    rows = _read(info.context.workspace, RowsRequest(dataset=name, where=where, limit=1))
    return rows[0] if rows else None


def _read(workspace: Readable, request: RowsRequest) -> list[Mapping[str, object]]:
    """The rows that there are. What is declared and was never built has none."""
    try:
        return list(read_rows(workspace, request).rows)
    except CallError as error:
        if error.slug == NEVER_BUILT:
            return []
        raise
