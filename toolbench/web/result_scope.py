"""Scope of a page of results: its runs or their kind, filter and layout. Links to other tabs keep it."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from toolbench.lab.metrics.result_filter import NO_FILTER, ResultFilter
from toolbench.lab.query_params import QueryParams, parse_run_ids
from toolbench.lab.results.scope_chips import ScopeChips, get_scope_chips
from toolbench.lab.results.table_layout import USUAL_LAYOUT, TableLayout

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
