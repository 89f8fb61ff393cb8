"""Takes a GraphQL request as text and gives back its answer: parse, bound, validate, execute."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from graphql import (
    DocumentNode,
    ExecutionResult,
    GraphQLError,
    GraphQLFieldResolver,
    GraphQLResolveInfo,
    GraphQLSchema,
    OperationDefinitionNode,
    OperationType,
    execute_sync,
    parse,
    validate,
)

from skyfarer.base.clock import Clock
from skyfarer.base.errors import SkyfarerError
from skyfarer.oap.core import deadline
from skyfarer.oap.core.deadline import LateError
from skyfarer.oap.query import limits, schema, selection
from skyfarer.oap.query.cost import Asked
from skyfarer.oap.query.counting import Counting
from skyfarer.oap.query.errors import QueryError
from skyfarer.oap.query.picks import Pick, UnfitError
from skyfarer.oap.query.resolvers import Resolvers
from skyfarer.oap.query.selection import Cut
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
        self._clock = clock
        self.counting = Counting(registry, clock)
        asked = self._table(resolvers.table())
        self._schema = schema.bound_to(asked, self._table(resolvers.changes()))
        self._cut_schema = schema.cut_off(
            self._schema, {name: _picking(call) for name, call in asked.items()}
        )
        self._remembered = lru_cache(limits.DOCUMENTS_REMEMBERED_MAX)(self._checked)

    def answer(self, request: Request) -> Answer:
        try:
            document = self._document(request.query)
        except (GraphQLError, QueryError) as error:
            return self._refused([error])
        if isinstance(document, list):
            return self._refused(document)
        if not request.may_change and document.changes:
            return self._refused([QueryError(JSON_ONLY)])
        try:
            document.asked(request.operation).check(request.variables)
        except QueryError as error:
            return self._refused([error])
        with deadline.within(limits.ANSWER_S_MAX, self._clock):
            result = self._executed(document, request)
        if result.errors and result.errors[0].path is None:
            return self._refused(result.errors)
        return _rendered(result)

    def _executed(self, document: _Document, request: Request) -> ExecutionResult:
        answering, cut = _Answering(), document.cut(self._schema, request.operation)
        if cut is not None:
            answering.picks = cut.picks
            with suppress(UnfitError):
                result = self._run(self._cut_schema, cut.document, request, answering)
                answering.check()
                return result
        return self._run(self._schema, document.whole, request, answering)

    def _run(
        self,
        of: GraphQLSchema,
        document: DocumentNode,
        request: Request,
        answering: _Answering,
    ) -> ExecutionResult:
        return execute_sync(
            of,
            document,
            context_value=answering,
            variable_values=dict(request.variables),
            operation_name=request.operation,
            max_coercion_errors=limits.ERRORS_MAX,
        )

    def _table(self, calls: Mapping[str, Callable[..., object]]) -> schema.Table:
        return {name: self._counted(name, call) for name, call in calls.items()}

    def _document(self, query: str) -> _Document | list[GraphQLError]:
        if len(query) > limits.DOCUMENT_REMEMBERED_BYTES_MAX:
            return self._checked(query)
        return self._remembered(query)

    def _checked(self, query: str) -> _Document | list[GraphQLError]:
        document = parse(query, max_tokens=limits.TOKENS_MAX)
        limits.check_size(document)
        wrong = validate(self._schema, document, max_errors=limits.ERRORS_MAX)
        return wrong or _Document(document)

    def _refused(self, errors: Sequence[GraphQLError | QueryError]) -> Answer:
        self._registry.inc(QUERY_REQUESTS, operation=NO_OPERATION, outcome="refused")
        return {"errors": [_formatted(error) for error in errors]}

    def _counted(self, name: str, resolve: Callable[..., object]) -> Callable[..., object]:
        def call(_root: object, info: GraphQLResolveInfo[Any], **arguments: Any) -> object:
            def counted() -> object:
                with self.counting.of(name):
                    return _in_time(resolve, arguments)

            return info.context.once(info.path.key, counted)

        return call


class _Document:
    """One that is valid, and what is made of it when it is first asked for."""

    def __init__(self, whole: DocumentNode) -> None:
        self.whole = whole
        self.changes = any(
            isinstance(node, OperationDefinitionNode) and node.operation is OperationType.MUTATION
            for node in whole.definitions
        )
        self._cuts: dict[str | None, Cut | None] = {}
        self._asked: dict[str | None, Asked] = {}

    def asked(self, operation: str | None) -> Asked:
        if operation not in self._asked:
            found = Asked.of(self.whole, operation)
            if not found.fields:
                return found  # any text may be the name of an operation that is not there
            self._asked[operation] = found
        return self._asked[operation]

    def cut(self, of: GraphQLSchema, operation: str | None) -> Cut | None:
        if operation not in self._cuts:
            found = selection.cut(of, self.whole, operation)
            if found is None:
                return None  # any text may be the name of an operation that is not there
            self._cuts[operation] = found
        return self._cuts[operation]


class _Answering:
    """One request. What a root field has come to is kept, so that graphql-core can be given it
    whole where what is selected of it could not be picked."""

    def __init__(self) -> None:
        self.picks: Mapping[str, Pick] = {}
        self._known: dict[str | int, object] = {}
        self._raised: dict[str | int, Exception] = {}
        self._unfit = False

    def once(self, key: str | int, resolve: Callable[[], object]) -> object:
        if key in self._raised:
            raise self._raised[key]
        if key not in self._known:
            try:
                self._known[key] = resolve()
            except Exception as error:
                self._raised[key] = error
                raise
        return self._known[key]

    def picked(self, key: str, value: object) -> object:
        pick = self.picks.get(key)
        try:
            return value if pick is None else pick(value)
        except UnfitError:
            self._unfit = True
            raise

    def check(self) -> None:
        if self._unfit:
            raise UnfitError


def _in_time(resolve: Callable[..., object], arguments: Mapping[str, Any]) -> object:
    try:
        deadline.left_s()
        return resolve(**arguments)
    except LateError as late:
        raise QueryError(str(late)) from late


def _picking(resolve: GraphQLFieldResolver) -> GraphQLFieldResolver:
    def call(root: object, info: GraphQLResolveInfo[Any], **arguments: Any) -> object:
        found = resolve(root, info, **arguments)
        return info.context.picked(info.path.key, found)

    return call


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
