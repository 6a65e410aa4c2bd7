"""Selection that a page of results shows: scope or runs, filter and layout.

Links to other tabs keep the selection. The links of the switch between scopes keep all filters of the page.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import parse_qsl, urlencode

from toolbench.lab.metrics.result_filter import NO_FILTER, ResultFilter
from toolbench.lab.query_params import QueryParams, parse_run_ids
from toolbench.lab.results.compare.query import RUN_AXES, CompareQuery
from toolbench.lab.results.filter_chips import FilterChips, get_filter_chips
from toolbench.lab.results.scopes import (
    COMPARE_SCOPES,
    IMPORTED,
    PUBLISHED,
    REAL,
    SCOPE_LABELS,
    SIMULATED,
    TRIAL_SCOPES,
)
from toolbench.lab.results.table_layout import USUAL_LAYOUT, TableLayout
from toolbench.lab.results.trial_list.filter import ALL_SCOPES, TrialFilter
from toolbench.lab.results.trial_list.scopes import count_by_scope, get_scope, list_other_scopes, select_scope

_UNSCOPED_PAGES = ("/trend/",)  # the page shows the runs of a schedule
# Query strings by scope and page. A page that is missing cannot show the scope; links to it lead to My runs.
_SCOPE_QUERIES: Mapping[str, Mapping[str, str]] = {
    SIMULATED: {
        "/matrix/": "scope=demo",
        "/trials/": "demo=1",
        "/failures/": "scope=demo",
        "/latency/": "scope=demo",
        "/compare/": "demo=1",
        "/decide/": "scope=demo",
    },
    IMPORTED: {
        "/matrix/": "scope=imported",
        "/trials/": "imported=1",
        "/failures/": "scope=imported",
        "/latency/": "scope=imported",
    },
    PUBLISHED: dict.fromkeys(("/matrix/", "/failures/", "/latency/", "/compare/"), "scope=published"),
}
MAX_NAMED_RUNS = 3
CHOSEN_CONFIGURATIONS = "Chosen configurations"


@dataclass(frozen=True, slots=True)
class ResultSelection:
    """Selection that a page of results shows.

    Attributes:
        scope: a key of SCOPE_LABELS; ignored if `runs` is not empty.
        runs: primary keys of the chosen runs; empty for all runs of `scope`.
        chosen: filter by models, profiles, strategies, scenarios and times.
        layout: columns and density of the tables.
    """

    scope: str = REAL
    runs: tuple[int, ...] = ()
    chosen: ResultFilter = NO_FILTER
    layout: TableLayout = USUAL_LAYOUT

    @classmethod
    def from_query(cls, query: QueryParams) -> "ResultSelection":
        """Parse the URL parameters of any page of results; values that cannot be read are ignored.

        Runs are in `run` or `runs`; the scope is in `scope`, or is given by `demo=1` or `imported=1`.
        """
        runs, _ = parse_run_ids([*query.getlist("run"), *query.getlist("runs")])
        flags = (name for name in (SIMULATED, IMPORTED) if query.get(name, "") == "1")
        scope = next(flags, query.get("scope", ""))
        chosen, _ = ResultFilter.from_query(query)
        return cls(scope if scope in SCOPE_LABELS else REAL, runs, chosen, TableLayout.from_query(query))

    def build_query(self, url: str) -> str:
        """Return the query string, with its question mark, with which the page at `url` shows this selection.

        Returns:
            The query string, without a scope that the page cannot show; empty if the page has no scopes or nothing
            differs from the default.
        """
        if url in _UNSCOPED_PAGES:
            return ""
        pairs = [*self._list_run_pairs(url), *self.chosen.pairs, *self.layout.pairs]
        return f"?{urlencode(pairs, safe=',')}" if pairs else ""

    def _list_run_pairs(self, url: str) -> list[tuple[str, str]]:
        if self.runs:
            return [("runs" if url == "/trials/" else "run", ",".join(map(str, self.runs)))]
        return parse_qsl(_SCOPE_QUERIES.get(self.scope, {}).get(url, ""))


def get_chips_of_query(query: QueryParams) -> FilterChips:
    """Return the chips that show and change the filter of these URL parameters."""
    selection = ResultSelection.from_query(query)
    return get_filter_chips(selection.chosen, scope=selection.scope, runs=selection.runs)


@dataclass(frozen=True, slots=True)
class ScopeLink:
    """Link of the switch between scopes.

    Attributes:
        query: query string of the page in this scope.
        is_current: whether the page shows this scope.
    """

    label: str
    query: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class OtherScope:
    """Scope in which trials may match the filter of an empty list.

    Attributes:
        count: number of matching trials; None if it is not known.
    """

    label: str
    query: str
    count: int | None


class HasScope(Protocol):
    """Query of a page that has a scope, or runs instead of it."""

    @property
    def scope(self) -> str:
        """Return a key of SCOPE_LABELS, or another value if runs are chosen."""

    @property
    def runs(self) -> tuple[int, ...]:
        """Return the primary keys of the chosen runs; () for all runs of the scope."""

    def query(self, **changes: object) -> str:
        """Return the query string with some fields changed."""


def list_page_scopes(
    query: HasScope, scopes: Sequence[str] = tuple(SCOPE_LABELS), **cleared: object
) -> tuple[ScopeLink, ...]:
    """Return the scope links of a page; chosen runs have a link of their own.

    Args:
        query: the query of the page.
        scopes: the scopes that the page can show.
        cleared: new values of fields in the links to scopes, such as `group=""`: a scope may lack the scenario group.
    """
    links = [
        ScopeLink(
            SCOPE_LABELS[scope],
            query.query(scope=scope, **cleared),
            is_current=scope == query.scope and not query.runs,
        )
        for scope in scopes
    ]
    if not query.runs:
        return tuple(links)
    return _insert_selection(links, _name_runs([str(run) for run in query.runs]), query.query())


def list_trial_scopes(trial_filter: TrialFilter) -> tuple[ScopeLink, ...]:
    """Return the scope links of the list of trials.

    All runs, or chosen runs, cells or configurations, have a link of their own.
    """
    current = get_scope(trial_filter)
    links = [
        ScopeLink(SCOPE_LABELS[scope], select_scope(trial_filter, scope).query(), scope == current)
        for scope in TRIAL_SCOPES
    ]
    if current in TRIAL_SCOPES:
        return tuple(links)
    label = "All runs" if current == ALL_SCOPES else _name_selection(trial_filter)
    return _insert_selection(links, label, trial_filter.query())


def link_other_scopes(trial_filter: TrialFilter) -> tuple[OtherScope, ...]:
    """Return the other scopes in which trials match the filter, with at most one query.

    If the matching trials are not counted, such as those of a search, all other scopes are returned.
    """
    scopes = list_other_scopes(trial_filter)
    counts = count_by_scope(trial_filter) if scopes else None
    return tuple(
        OtherScope(
            SCOPE_LABELS[scope], select_scope(trial_filter, scope).query(), None if counts is None else counts[scope]
        )
        for scope in scopes
        if counts is None or counts[scope]
    )


def list_compare_scopes(query: CompareQuery) -> tuple[ScopeLink, ...]:
    """Return the scope links of the comparison.

    If all sides name runs or configurations, these have a link of their own.
    """
    sides_with_runs = [side for side in query.sides if any(axis in side for axis in RUN_AXES)]
    has_only_runs = len(sides_with_runs) == len(query.sides)
    current = PUBLISHED if query.is_published else "" if has_only_runs else SIMULATED if query.demo else REAL
    links = [
        ScopeLink(SCOPE_LABELS[scope], query.build_scope_query(scope), scope == current) for scope in COMPARE_SCOPES
    ]
    if current:
        return tuple(links)
    runs = dict.fromkeys(run for side in sides_with_runs for run in side.get("run", "").split(",") if run)
    label = _name_runs(runs) if runs else CHOSEN_CONFIGURATIONS
    return _insert_selection(links, label, query.query())


def _insert_selection(links: Sequence[ScopeLink], label: str, query: str) -> tuple[ScopeLink, ...]:
    """Return the links with the current link, which has this label and query string, after the first one."""
    return (links[0], ScopeLink(label, query, is_current=True), *links[1:])


def _name_runs(runs: Collection[str]) -> str:
    """Return the name of runs for the switch, such as "Run 2, 3" or "4 runs"."""
    return f"Run {', '.join(runs)}" if len(runs) <= MAX_NAMED_RUNS else f"{len(runs)} runs"


def _name_selection(trial_filter: TrialFilter) -> str:
    """Return the name of the chosen runs, cells or configurations for the switch."""
    runs = [str(trial_filter.run)] if trial_filter.run is not None else trial_filter.runs.split(",")
    if any(runs):
        return _name_runs(dict.fromkeys(filter(None, runs)))
    return "Chosen cells" if trial_filter.cell is not None or trial_filter.cells else CHOSEN_CONFIGURATIONS
