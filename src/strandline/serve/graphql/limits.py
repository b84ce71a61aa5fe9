"""Limits on the shape of an operation, applied before it is validated or executed.

What introspects the schema may be deeper and larger: validation bounds its lists, so that the standard
introspection query passes.
"""

from dataclasses import dataclass

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLSyntaxError,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionSetNode,
    parse,
)

MOST_TOKENS = 2_000
DEEPEST = 8
MOST_FIELDS = 200
DEEPEST_INTROSPECTION = 20
MOST_INTROSPECTED = 500
_INTROSPECTION = ("__schema", "__type")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Size:
    """What a selection comes to once its fragments are put in their places."""

    fields: int = 0
    depth: int = 0
    introspected: int = 0
    introspected_depth: int = 0

    def beside(self, other: "_Size") -> "_Size":
        return _Size(
            fields=self.fields + other.fields,
            depth=max(self.depth, other.depth),
            introspected=self.introspected + other.introspected,
            introspected_depth=max(self.introspected_depth, other.introspected_depth),
        )


def parse_within_limits(text: str) -> DocumentNode:
    """Raises GraphQLError if it is not GraphQL, or too large."""
    try:
        document = parse(text, max_tokens=MOST_TOKENS)
    except GraphQLSyntaxError as error:
        if "tokens" in error.message:
            raise refuse(
                f"An operation may have at most {MOST_TOKENS:,} tokens.", "TOO_MANY_TOKENS"
            ) from None
        error.extensions = {**(error.extensions or {}), "code": "SYNTAX"}
        raise
    except RecursionError:
        raise refuse("The operation is nested too deeply.", "TOO_DEEP") from None
    counting = _Counting(document)
    for definition in document.definitions:
        if isinstance(definition, OperationDefinitionNode):
            _check(counting.measure(definition.selection_set))
    return document


def refuse(what: str, code: str) -> GraphQLError:
    return GraphQLError(what, extensions={"code": code})


def _check(size: _Size) -> None:
    if size.depth > DEEPEST:
        raise refuse(f"Fields may be nested {DEEPEST} deep.", "TOO_DEEP")
    if size.fields > MOST_FIELDS:
        raise refuse(f"An operation may have at most {MOST_FIELDS} fields.", "TOO_MANY_FIELDS")
    if size.introspected > MOST_INTROSPECTED or size.introspected_depth > DEEPEST_INTROSPECTION:
        raise refuse("The introspection is larger than the standard one.", "TOO_MANY_FIELDS")


class _Counting:
    """Each fragment is measured once, however often it is used."""

    def __init__(self, document: DocumentNode) -> None:
        self._fragments = {
            definition.name.value: definition
            for definition in document.definitions
            if isinstance(definition, FragmentDefinitionNode)
        }
        self._measured: dict[str, _Size] = {}

    def measure(self, selection: SelectionSetNode) -> _Size:
        size = _Size()
        for node in selection.selections:
            if isinstance(node, FieldNode):
                size = size.beside(self._measure_field(node))
            elif isinstance(node, InlineFragmentNode):
                size = size.beside(self.measure(node.selection_set))
            elif isinstance(node, FragmentSpreadNode):
                size = size.beside(self._measure_fragment(node.name.value))
        return size

    def _measure_field(self, node: FieldNode) -> _Size:
        inner = self.measure(node.selection_set) if node.selection_set else _Size()
        if node.name.value in _INTROSPECTION:
            return _Size(
                introspected=inner.fields + inner.introspected + 1,
                introspected_depth=max(inner.depth, inner.introspected_depth) + 1,
            )
        return _Size(
            fields=inner.fields + 1,
            depth=inner.depth + 1,
            introspected=inner.introspected,
            introspected_depth=inner.introspected_depth,
        )

    def _measure_fragment(self, name: str) -> _Size:
        if name not in self._measured:
            self._measured[name] = _Size()  # a fragment in itself is reported by validation
            if name in self._fragments:
                self._measured[name] = self.measure(self._fragments[name].selection_set)
        return self._measured[name]
