"""Bounds on what a client may send, all in one place.

The largest honest documents are the SkyWalking UI's: about 200 aliased expressions of some 25
fields and 60 tokens each. Depth leaves room for the standard introspection query.
"""

from __future__ import annotations

from collections.abc import Mapping

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionSetNode,
)

from skyfarer.base.units import KIB, MIB
from skyfarer.oap.query.errors import QueryError

BODY_BYTES_MAX = 1 * MIB
BODY_TIMEOUT_S = 10.0
HEADER_TIMEOUT_S = 10.0  # from connecting, or from a request's first byte
TOKENS_MAX = 20_000
FIELDS_MAX = 6_000
DEPTH_MAX = 16
NESTING_MAX = 64  # fields, inline fragments and spreads alike, so that no walk runs out of stack
ERRORS_MAX = 20
ENDPOINTS_MAX = 1_000
PAGE_MAX = 1_000
REACH_MAX = 10_000  # as far as one can page
EVENTS_PAGE = 20  # where no size is asked for
REGISTRY_PAGE = 50  # where no size is asked for
PROPERTIES_CHARS_MAX = 4 * KIB  # of a row of the registry, as it is shown
TRACE_SEGMENTS_MAX = 10_000  # of OpenTelemetry each span is a segment
TRACE_SPANS_MAX = 10_000
TRACE_ENTRIES_MAX = 100_000  # references, tags and logs
TRACE_BYTES_MAX = 32 * MIB
WHOLE_TRACES_MAX = 100  # of one page
LOGS_BYTES_MAX = 32 * MIB  # of one page
LOG_TAGS_MAX = 100_000  # of one page
LOG_SEARCHES_MAX = 4  # for a page of logs by their words
LOGS_LOOKED_AT_FIRST = 1_000  # by the first of them, and so many times more by each that follows:
LOGS_LOOKED_AT_GROWTH = 4  # 85,000 in all
KEYWORDS_MAX = 10
KEYWORD_CHARS_MAX = 256
LOG_CHARS_MAX = 1_000_000  # of a log's content, as the original's
BROWSER_ERRORS_MAX = 10_000  # looked at for a page
BROWSER_ERROR_DAYS_MAX = 366
SNAPSHOTS_MAX = 12_000  # stacks looked at for one analysis, as the original's default
FRAMES_MAX = 1_000  # of one stack
PROFILE_LOGS_MAX = 1_000  # of all tasks
PROFILE_LOG_DAYS_MAX = 30
PROFILE_DAYS_AHEAD_MAX = 30
PROFILED_SEGMENTS_MAX = 50  # of one task
TEMPLATE_CHARS_MAX = 512 * KIB  # of a dashboard that is saved
TAGS_ASKED_MAX = 32
EXPRESSION_CHARS_MAX = 8 * KIB
EXPRESSION_DEPTH_MAX = 32  # parentheses and arguments
EXPRESSION_OPERATIONS_MAX = 100  # operators and functions
EXPRESSION_METRICS_MAX = 32
EXPRESSION_VALUES_MAX = 500_000  # of one metric: points × labels
ROUND_PLACES_MAX = 15
TOP_N_MAX = 1_000
IDS_MAX = 100  # of entities, read one by one
LINES_MAX = 100  # labels of one metric that are asked for, by name or by index
REGEX_CHARS_MAX = 500
RECORDS_MAX = 25_000  # looked at for the fastest: 50 of each of 500 minutes
TAGS_PROPOSED_MAX = 100  # as the original's default
TOPOLOGY_SERVICES_MAX = 1_000  # asked for by id
TOPOLOGY_CALLS_MAX = 10_000  # of one map
TOPOLOGY_DAYS_MAX = 3_660
TRACE_LOOKUPS_MAX = 500  # reads of names for ids
NAME_CHARS_MAX = 1_024
TEXT_CHARS_MAX = 64 * KIB  # of a tag, or a log of a span
ANSWER_S_MAX = 30.0  # after which nothing more is read for it
POINTS_READ_MAX = 1_000_000  # by one document: `cost` says what a point is
WORKERS = 8
REQUESTS_WAITING_MAX = 128
CONNECTIONS_MAX = 512

# Root fields that cost more than one field each: as if they selected so many.
WEIGHTS = {
    "queryTrace": 500,
    "queryTraces": 1_000,
    "queryBasicTraces": 100,
    "queryBasicTracesByName": 100,
    "queryTraceTagAutocompleteKeys": 100,
    "queryTraceTagAutocompleteValues": 100,
    "queryLogs": 500,
    "queryLogsByName": 500,
    "queryLogTagAutocompleteKeys": 100,
    "queryLogTagAutocompleteValues": 100,
    "queryEvents": 100,
    "queryBrowserErrorLogs": 500,
    "getProfileTaskList": 100,
    "getProfileTaskLogs": 100,
    "getProfileTaskSegments": 500,
    "getSegmentsProfileAnalyze": 500,
    **dict.fromkeys(  # each reads all services, or all instances or endpoints of one
        (
            *("getService", "findService", "getInstance", "getMenuItems", "getAllServices"),
            *("searchServices", "searchService", "searchBrowserServices", "searchBrowserService"),
            *("listServices", "getAllBrowserServices", "getAllDatabases", "listMetrics"),
            *("listInstances", "listInstancesByName", "getServiceInstances"),
            *("findEndpoint", "findEndpointByName", "searchEndpoint"),
        ),
        20,
    ),
    "getAllTemplates": 500,
    "getTemplate": 100,
    **dict.fromkeys(
        (
            *("getGlobalTopology", "getServiceTopology", "getServiceTopologyByName"),
            *("getServicesTopology", "getServicesTopologyByNames"),
            *("getServiceInstanceTopology", "getServiceInstanceTopologyByName"),
        ),
        200,
    ),
    "getEndpointDependencies": 50,  # SkyWalking's page asks for those of many endpoints at once
    "getEndpointDependenciesByName": 50,
    "getEndpointTopology": 50,
    **dict.fromkeys(("sortMetrics", "readRecords", "readSampledRecords", "getValues"), 100),
    **dict.fromkeys(("getServiceTopN", "getAllServiceInstanceTopN", "getAllEndpointTopN"), 100),
    **dict.fromkeys(("getServiceInstanceTopN", "getEndpointTopN", "getTopNRecords"), 100),
}

# Parsed documents are remembered, since clients send the same few again and again.
DOCUMENTS_REMEMBERED_MAX = 64
DOCUMENT_REMEMBERED_BYTES_MAX = 16 * KIB
EXPRESSIONS_REMEMBERED_MAX = 1_024
EXPRESSION_REMEMBERED_CHARS_MAX = 512


def check_size(document: DocumentNode) -> None:
    """QueryError when the document has too many fields or nests too deep, fragments unfolded.

    Runs before validation, whose cost grows faster than the document.
    """
    fragments = {
        node.name.value: node
        for node in document.definitions
        if isinstance(node, FragmentDefinitionNode)
    }
    measure = _Measure(fragments)
    fields = depth = 0
    for node in document.definitions:
        if isinstance(node, OperationDefinitionNode | FragmentDefinitionNode):
            more, deep = measure.of(node.selection_set)
            fields, depth = fields + more, max(depth, deep)
    if fields > FIELDS_MAX:
        raise QueryError(f"the document selects {fields} fields, more than {FIELDS_MAX}")
    if depth > DEPTH_MAX:
        raise QueryError(f"the document nests {depth} levels deep, more than {DEPTH_MAX}")


class _Measure:
    """Fields and depth of selections. A fragment is measured once, however often it is spread."""

    def __init__(self, fragments: Mapping[str, FragmentDefinitionNode]) -> None:
        self._fragments = fragments
        self._known: dict[str, tuple[int, int] | None] = {}
        self._nesting = 0

    def of(self, selected: SelectionSetNode | None) -> tuple[int, int]:
        if self._nesting == NESTING_MAX:
            raise QueryError(f"the document nests its selections more than {NESTING_MAX} times")
        self._nesting += 1
        fields = depth = 0
        for node in selected.selections if selected else ():
            more, deep = self._of_node(node)
            fields, depth = fields + more, max(depth, deep)
        self._nesting -= 1
        return fields, depth

    def _of_node(self, node: object) -> tuple[int, int]:
        if isinstance(node, FieldNode):
            fields, depth = self.of(node.selection_set)
            return fields + WEIGHTS.get(node.name.value, 1), depth + 1
        if isinstance(node, InlineFragmentNode):
            return self.of(node.selection_set)
        assert isinstance(node, FragmentSpreadNode)
        return self._of_fragment(node.name.value)

    def _of_fragment(self, name: str) -> tuple[int, int]:
        fragment = self._fragments.get(name)
        if fragment is None:
            return 0, 0
        if name in self._known:
            known = self._known[name]
            if known is None:
                raise QueryError(f"fragment {name} spreads itself")
            return known
        self._known[name] = None
        measured = self.of(fragment.selection_set)
        self._known[name] = measured
        return measured
