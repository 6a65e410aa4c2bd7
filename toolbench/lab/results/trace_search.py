"""Search of gateway traces by their search texts."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection
from django.db.models import Max, Q

from toolbench.lab.models import GatewayTrace, GatewayTraceText
from toolbench.lab.query_params import parse_whole_number
from toolbench.lab.results.trial_list.text_search import build_search_condition
from toolbench.lab.serving.traces import BODY_COLUMNS
from toolbench.lab.sql import load_statement
from toolbench.lab.traces.search_text import GATEWAY_TRACES, get_text_lag

SOURCE_FILTER = "source:gateway"  # the word of a search that asks for traces; other searches never show any
NEWEST_ID_COUNT = 30_000  # a search reads the texts with the newest ids, at most so many, before it uses the index
_FILTER_WORD = re.compile(rf"(?<!\S){SOURCE_FILTER}(?!\S)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TraceSearch:
    """Traces that match a search.

    Attributes:
        traces: the newest of them, without bodies.
        text_lag: seconds for which the oldest trace without a search text has waited; 0 if none waits, or if the search
            has no words beside SOURCE_FILTER.
    """

    traces: tuple[GatewayTrace, ...]
    text_lag: float = 0.0


def asks_for_traces(search: str) -> bool:
    """Return whether a search has the word SOURCE_FILTER."""
    return _FILTER_WORD.search(search) is not None


def search_traces(search: str, limit: int) -> TraceSearch:
    """Return the newest traces that match the words beside SOURCE_FILTER, with at most five queries.

    Without other words, the newest of all traces are returned. Words match as in the search of trials. If they are a
    number, the trace with this id is returned too; if they are a number with "#" before it, only this trace is.
    """
    words = _FILTER_WORD.sub(" ", search).strip()
    condition = build_search_condition(words, prefix="")
    traces = GatewayTrace.objects.defer(*BODY_COLUMNS)
    if not condition:
        return TraceSearch(tuple(traces[:limit]))
    number = parse_whole_number(words.removeprefix("#"))
    is_id = bool(number) and words.startswith("#")
    ids = {*([] if is_id else _find_newest(condition, limit)), *([number] if number else [])}
    return TraceSearch(tuple(traces.filter(pk__in=ids)), get_text_lag(GATEWAY_TRACES))


def _find_newest(condition: Q, limit: int) -> Sequence[int]:
    """Return the ids of the newest traces whose search text matches, at most `limit`.

    A frequent word is found among the newest texts already, so that not all matches of the index have to be sorted.
    """
    texts = GatewayTraceText.objects.filter(condition).values_list("pk", flat=True)
    newest_id = GatewayTraceText.objects.aggregate(newest=Max("pk"))["newest"] or 0
    ids = list(texts.filter(pk__gt=newest_id - NEWEST_ID_COUNT).order_by("-pk")[:limit])
    if len(ids) == limit:
        return ids
    matching, parameters = texts.query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(load_statement("results/newest_matches", matching=matching), (*parameters, limit))
        return [row[0] for row in cursor.fetchall()]
