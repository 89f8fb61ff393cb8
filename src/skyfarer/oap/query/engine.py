"""Takes a GraphQL request as text and gives back its answer: parse, bound, validate, execute."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from graphql import (
    DocumentNode,
    ExecutionResult,
    GraphQLError,
    OperationDefinitionNode,
    OperationType,
    execute_sync,
    parse,
    validate,
)

from skyfarer.base.clock import Clock
from skyfarer.base.errors import SkyfarerError
from skyfarer.oap.query import limits, schema
from skyfarer.oap.query.counting import Counting
from skyfarer.oap.query.errors import QueryError
from skyfarer.oap.query.resolvers import Resolvers
from skyfarer.telemetry.metrics import Registry
from skyfarer.telemetry.table import QUERY_REQUESTS

log = logging.getLogger(__name__)

Answer = dict[str, Any]

NO_OPERATION = "none"
JSON_ONLY = "a mutation is taken with the header content-type: application/json alone"


@dataclass(frozen=True)
class Request:
    """`may_change` is false for what any web page could make a browser send unasked."""

    query: str
    variables: Mapping[str, Any] = field(default_factory=dict)
    operation: str | None = None
    may_change: bool = True


class Engine:
    """Any thread; blocks on storage. Never raises: what goes wrong stands in the answer."""

    def __init__(self, resolvers: Resolvers, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self.counting = Counting(registry, clock)
        self._schema = schema.bound_to(
            self._table(resolvers.table()), self._table(resolvers.changes())
        )
        self._remembered = lru_cache(limits.DOCUMENTS_REMEMBERED_MAX)(self._checked)

    def answer(self, request: Request) -> Answer:
        try:
            document = self._document(request.query)
        except (GraphQLError, QueryError) as error:
            return self._refused([error])
        if isinstance(document, list):
            return self._refused(document)
        if not request.may_change and _changes(document):
            return self._refused([QueryError(JSON_ONLY)])
        result = execute_sync(
            self._schema,
            document,
            variable_values=dict(request.variables),
            operation_name=request.operation,
            max_coercion_errors=limits.ERRORS_MAX,
        )
        if result.errors and result.errors[0].path is None:
            return self._refused(result.errors)
        return _rendered(result)

    def _table(self, calls: Mapping[str, Callable[..., object]]) -> schema.Table:
        return {name: self._counted(name, call) for name, call in calls.items()}

    def _document(self, query: str) -> DocumentNode | list[GraphQLError]:
        if len(query) > limits.DOCUMENT_REMEMBERED_BYTES_MAX:
            return self._checked(query)
        return self._remembered(query)

    def _checked(self, query: str) -> DocumentNode | list[GraphQLError]:
        document = parse(query, max_tokens=limits.TOKENS_MAX)
        limits.check_size(document)
        return validate(self._schema, document, max_errors=limits.ERRORS_MAX) or document

    def _refused(self, errors: Sequence[GraphQLError | QueryError]) -> Answer:
        self._registry.inc(QUERY_REQUESTS, operation=NO_OPERATION, outcome="refused")
        return {"errors": [_formatted(error) for error in errors]}

    def _counted(self, name: str, resolve: Callable[..., object]) -> Callable[..., object]:
        def call(_root: object, _info: object, **arguments: Any) -> object:
            with self.counting.of(name):
                return resolve(**arguments)

        return call


def _changes(document: DocumentNode) -> bool:
    return any(
        isinstance(node, OperationDefinitionNode) and node.operation is OperationType.MUTATION
        for node in document.definitions
    )


def _rendered(result: ExecutionResult) -> Answer:
    answer: Answer = {"data": result.data}
    if result.errors:
        answer["errors"] = [_formatted(error) for error in result.errors]
    return answer


def _formatted(error: GraphQLError | QueryError) -> Answer:
    if not isinstance(error, GraphQLError):
        return {"message": str(error)}
    cause = error.original_error
    shown: Answer = dict(error.formatted)
    if cause is not None and not isinstance(cause, SkyfarerError | GraphQLError):
        log.error("query %s failed", error.path, exc_info=cause)
        shown["message"] = "internal error: the server's log has the reason"
    return shown
