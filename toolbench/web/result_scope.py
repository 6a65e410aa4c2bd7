"""Scope of a page of results: its runs or their kind, filter and layout. Links to other tabs keep it.

The links of the switch between own, published, simulated and imported results keep all filters of the page.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from toolbench.lab.metrics.result_filter import NO_FILTER, ResultFilter
from toolbench.lab.query_params import QueryParams, parse_run_ids
from toolbench.lab.results.compare.query import RUN_AXES, CompareQuery
from toolbench.lab.results.scope_chips import SCOPE_LABELS, ScopeChips, get_scope_chips
from toolbench.lab.results.table_layout import USUAL_LAYOUT, TableLayout
from toolbench.lab.results.trial_list.filter import ALL_SCOPES, TrialFilter
from toolbench.lab.results.trial_list.scopes import SCOPES, count_by_scope, get_scope, list_other_scopes, select_scope

REAL, SIMULATED, IMPORTED, PUBLISHED = "real", "demo", "imported", "published"
# The kinds that a URL names; a URL without any of them means own results.
KINDS_IN_URLS = (SIMULATED, IMPORTED, PUBLISHED)
_UNSCOPED_PAGES = ("/trend/",)  # the page shows the runs of a schedule
# Query strings by kind and page. A page that is missing cannot show the kind; links to it show own results.
_KIND_QUERIES: Mapping[str, Mapping[str, str]] = {
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
_COMPARE_SCOPES = (REAL, PUBLISHED, SIMULATED)
MAX_NAMED_RUNS = 3
CHOSEN_CONFIGURATIONS = "Chosen configurations"


@dataclass(frozen=True, slots=True)
class ResultScope:
    """Scope of a page of results.

    Attributes:
        kind: REAL for own results, SIMULATED, IMPORTED or PUBLISHED; ignored if `runs` is not empty.
        runs: primary keys of the chosen runs; empty for all runs of `kind`.
        chosen: filter by models, profiles, strategies, scenarios and times.
        layout: columns and density of the tables.
    """

    kind: str = REAL
    runs: tuple[int, ...] = ()
    chosen: ResultFilter = NO_FILTER
    layout: TableLayout = USUAL_LAYOUT

    @classmethod
    def from_query(cls, query: QueryParams) -> "ResultScope":
        """Parse the URL parameters of any page of results; values that cannot be read are ignored.

        Runs are in `run` or `runs`; the kind is in `scope`, or is given by `demo=1` or `imported=1`.
        """
        runs, _ = parse_run_ids([*query.getlist("run"), *query.getlist("runs")])
        flags = (name for name in (SIMULATED, IMPORTED) if query.get(name, "") == "1")
        kind = next(flags, query.get("scope", ""))
        chosen, _ = ResultFilter.from_query(query)
        return cls(kind if kind in KINDS_IN_URLS else REAL, runs, chosen, TableLayout.from_query(query))

    def build_query(self, url: str) -> str:
        """Return the query string, with its question mark, that gives the page at `url` this scope.

        Returns:
            The query string, without a kind that the page cannot show; empty if the page has no scope or nothing
            differs from the default.
        """
        if url in _UNSCOPED_PAGES:
            return ""
        pairs = [*self._list_run_pairs(url), *self.chosen.pairs, *self.layout.pairs]
        return f"?{urlencode(pairs, safe=',')}" if pairs else ""

    def _list_run_pairs(self, url: str) -> list[tuple[str, str]]:
        if self.runs:
            return [("runs" if url == "/trials/" else "run", ",".join(map(str, self.runs)))]
        return parse_qsl(_KIND_QUERIES.get(self.kind, {}).get(url, ""))


def get_chips_of_query(query: QueryParams) -> ScopeChips:
    """Return the chips that show and change the scope of these URL parameters."""
    scope = ResultScope.from_query(query)
    return get_scope_chips(scope.chosen, kind=scope.kind, runs=scope.runs)


@dataclass(frozen=True, slots=True)
class ScopeLink:
    """Link of the switch.

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


def list_trial_scopes(trial_filter: TrialFilter) -> tuple[ScopeLink, ...]:
    """Return the links of the list of trials; given runs, cells or configurations are a link of their own."""
    current = get_scope(trial_filter)
    links = [
        ScopeLink(SCOPE_LABELS[scope], select_scope(trial_filter, scope).query(), scope == current) for scope in SCOPES
    ]
    if current in SCOPES:
        return tuple(links)
    label = "All runs" if current == ALL_SCOPES else _name_selection(trial_filter)
    return (links[0], ScopeLink(label, trial_filter.query(), is_current=True), *links[1:])


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
    """Return the links of the comparison; sides that are all in given runs are a link of their own."""
    sides_with_runs = [side for side in query.sides if any(axis in side for axis in RUN_AXES)]
    has_only_runs = len(sides_with_runs) == len(query.sides)
    current = PUBLISHED if query.is_published else "" if has_only_runs else SIMULATED if query.demo else REAL
    links = [
        ScopeLink(SCOPE_LABELS[scope], query.build_scope_query(scope), scope == current) for scope in _COMPARE_SCOPES
    ]
    if current:
        return tuple(links)
    runs = dict.fromkeys(run for side in sides_with_runs for run in side.get("run", "").split(",") if run)
    label = _name_runs(runs) if runs else CHOSEN_CONFIGURATIONS
    return (links[0], ScopeLink(label, query.query(), is_current=True), *links[1:])


def _name_runs(runs: Collection[str]) -> str:
    """Return the name of runs for the switch, such as "Run 2, 3" or "4 runs"."""
    return f"Run {', '.join(runs)}" if len(runs) <= MAX_NAMED_RUNS else f"{len(runs)} runs"


def _name_selection(trial_filter: TrialFilter) -> str:
    """Return the name of the given runs, cells or configurations for the switch."""
    runs = [str(trial_filter.run)] if trial_filter.run is not None else trial_filter.runs.split(",")
    if any(runs):
        return _name_runs(dict.fromkeys(filter(None, runs)))
    return "Chosen cells" if trial_filter.cell is not None or trial_filter.cells else CHOSEN_CONFIGURATIONS
