"""The text of an operation -> one that may be executed: within limits, valid, and with its variables."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLSkipDirective,
    InlineFragmentNode,
    OperationDefinitionNode,
    OperationType,
    SelectionSetNode,
    get_operation_ast,
    validate,
)
from graphql import GraphQLIncludeDirective as Include
from graphql.execution.values import (
    VariableValues,
    get_argument_values,
    get_directive_values,
    get_variable_values,
)

from strandline.app.rows import MOST_ROWS
from strandline.model.condition_json import read_condition

from .limits import parse_within_limits, refuse
from .schema import Catalogue

MOST_ORDERS = 100
_TOO_LARGE = "filter-too-large"


class RefusedOperationError(Exception):
    """An operation that is not executed."""

    def __init__(self, *errors: GraphQLError) -> None:
        super().__init__("; ".join(error.message for error in errors))
        self.errors = errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    catalogue: Catalogue
    document: DocumentNode
    node: OperationDefinitionNode
    variables: VariableValues
    raw_variables: Mapping[str, Any]

    @property
    def schema(self) -> GraphQLSchema:
        return self.catalogue.schema

    @property
    def is_subscription(self) -> bool:
        return self.node.operation is OperationType.SUBSCRIPTION

    @property
    def root(self) -> GraphQLObjectType:
        root = self.schema.get_root_type(self.node.operation)
        assert root is not None  # validation refuses an operation without a root
        return root

    def collect(self, type_: GraphQLObjectType, *selections: SelectionSetNode) -> dict[str, list[FieldNode]]:
        """By name in the answer: the fields that are selected, with fragments, @include and @skip applied."""
        collected: dict[str, list[FieldNode]] = {}
        visited: set[str] = set()
        for selection in selections:
            self._collect(type_, selection, collected, visited)
        return collected

    def read_arguments(self, type_: GraphQLObjectType, node: FieldNode) -> dict[str, Any]:
        return get_argument_values(type_.fields[node.name.value], node, self.variables)

    def _collect(
        self,
        type_: GraphQLObjectType,
        selection: SelectionSetNode,
        collected: dict[str, list[FieldNode]],
        visited: set[str],
    ) -> None:
        for node in selection.selections:
            if not self._is_included(node):
                continue
            if isinstance(node, FieldNode):
                name = node.alias.value if node.alias else node.name.value
                collected.setdefault(name, []).append(node)
            elif isinstance(node, InlineFragmentNode):
                if node.type_condition is None or node.type_condition.name.value == type_.name:
                    self._collect(type_, node.selection_set, collected, visited)
            elif isinstance(node, FragmentSpreadNode) and node.name.value not in visited:
                visited.add(node.name.value)
                fragment = self._get_fragment(node.name.value)
                if fragment.type_condition.name.value == type_.name:
                    self._collect(type_, fragment.selection_set, collected, visited)

    def _is_included(self, node: Any) -> bool:
        skip = get_directive_values(GraphQLSkipDirective, node, self.variables)
        include = get_directive_values(Include, node, self.variables)
        return not (skip and skip["if"]) and not (include and not include["if"])

    def _get_fragment(self, name: str) -> FragmentDefinitionNode:
        return next(
            definition
            for definition in self.document.definitions
            if isinstance(definition, FragmentDefinitionNode) and definition.name.value == name
        )


def prepare(catalogue: Catalogue, text: object, operation_name: object, variables: object) -> Operation:
    """Raises RefusedOperationError. Nothing has been executed then."""
    if not isinstance(text, str):
        raise RefusedOperationError(refuse("`query` must be the text of an operation.", "BAD_REQUEST"))
    if operation_name is not None and not isinstance(operation_name, str):
        raise RefusedOperationError(refuse("`operationName` must be text.", "BAD_REQUEST"))
    if variables is not None and not isinstance(variables, dict):
        raise RefusedOperationError(refuse("`variables` must be an object.", "BAD_REQUEST"))
    try:
        document = parse_within_limits(text)
        errors = validate(catalogue.schema, document, max_errors=10)
    except GraphQLError as error:
        raise RefusedOperationError(error) from error
    except RecursionError as error:
        raise RefusedOperationError(refuse("The operation is nested too deeply.", "TOO_DEEP")) from error
    if errors:
        raise RefusedOperationError(*errors)
    node = get_operation_ast(document, operation_name)
    if node is None:
        what = "Name one operation of the document in `operationName`."
        raise RefusedOperationError(refuse(what, "UNKNOWN_OPERATION"))
    operation = Operation(
        catalogue=catalogue,
        document=document,
        node=node,
        variables=_read_variables(catalogue.schema, node, variables or {}),
        raw_variables=variables or {},
    )
    try:
        _check_rows(operation)
        _check_conditions(operation)
    except GraphQLError as error:
        raise RefusedOperationError(error) from error
    return operation


def _read_variables(
    schema: GraphQLSchema, node: OperationDefinitionNode, variables: dict[str, Any]
) -> VariableValues:
    try:
        values = get_variable_values(schema, node.variable_definitions or (), variables, max_errors=10)
    except RecursionError:
        raise RefusedOperationError(refuse("The variables are nested too deeply.", "TOO_DEEP")) from None
    if isinstance(values, list):
        raise RefusedOperationError(*values)
    return values


def _check_rows(operation: Operation) -> None:
    """All fields of a query together may ask for 1,000 rows: an alias is no way around it."""
    if operation.node.operation is not OperationType.QUERY:
        return
    rows = 0
    for nodes in operation.collect(operation.root, operation.node.selection_set).values():
        name = nodes[0].name.value
        if name not in operation.root.fields:
            continue  # introspection
        arguments = operation.read_arguments(operation.root, nodes[0])
        if "limit" not in arguments:
            rows += 1
            continue
        limit, offset = arguments["limit"], arguments.get("offset")
        if limit is None or offset is None or limit < 0 or offset < 0:
            raise refuse("`limit` and `offset` must be whole numbers from 0.", "BAD_LIMIT")
        if len(arguments.get("order_by") or ()) > MOST_ORDERS:
            raise refuse(f"`order_by` may have at most {MOST_ORDERS} entries.", "TOO_MANY_ORDERS")
        rows += limit
    if rows > MOST_ROWS:
        raise refuse(f"A query may ask for at most {MOST_ROWS:,} rows.", "TOO_MANY_ROWS")


def _check_conditions(operation: Operation) -> None:
    """A condition that is too large is refused before any field is answered."""
    for nodes in operation.collect(operation.root, operation.node.selection_set).values():
        if nodes[0].name.value not in operation.root.fields:
            continue  # introspection
        where = operation.read_arguments(operation.root, nodes[0]).get("where")
        for mistake in read_condition(where)[1] if where is not None else ():
            if mistake.error.slug == _TOO_LARGE:
                extensions = {"code": "FILTER_TOO_LARGE", "remedy": mistake.error.remedy}
                raise GraphQLError(mistake.error.what, extensions=extensions)
