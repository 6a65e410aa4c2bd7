"""The scope that the tabs of the results keep: which runs, or which kind of runs, the open page shows."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from toolbench.lab.metrics.result_filter import NO_FILTER, ResultFilter
from toolbench.lab.query_params import QueryParams, parse_run_ids
from toolbench.lab.results.table_layout import USUAL_LAYOUT, TableLayout

REAL, SIMULATED, IMPORTED, PUBLISHED = "real", "demo", "imported", "published"
KINDS = (SIMULATED, IMPORTED, PUBLISHED)
_SINGLE_RUN_PAGES = ("/latency/", "/compare/")
_UNSCOPED_PAGES = ("/trend/",)  # chosen by schedule
_KIND_QUERIES: Mapping[str, Mapping[str, str]] = {
    SIMULATED: {
        "/matrix/": "scope=demo",
        "/trials/": "demo=1",
        "/failures/": "scope=demo",
        "/compare/": "demo=1",
        "/decide/": "scope=demo",
    },
    IMPORTED: {"/matrix/": "scope=imported", "/trials/": "imported=1", "/failures/": "scope=imported"},
    PUBLISHED: {"/matrix/": "scope=published", "/failures/": "scope=published"},
}


@dataclass(frozen=True, slots=True)
class ResultScope:
    """The runs of a page of results.

    Attributes:
        kind: own, simulated, imported or published results; it does not count where runs are named.
        runs: primary keys of the named runs.
        chosen: models, profiles, strategies, scenarios and times.
        layout: columns and density of the tables.
    """

    kind: str = REAL
    runs: tuple[int, ...] = ()
    chosen: ResultFilter = NO_FILTER
    layout: TableLayout = USUAL_LAYOUT

    @classmethod
    def from_query(cls, query: QueryParams) -> "ResultScope":
        """Return the scope of the URL parameters of any page of results.

        The pages name it differently: runs are `run` or `runs`, kinds are `scope`, or `demo` and `imported` of 1.
        """
        runs, _ = parse_run_ids([*query.getlist("run"), *query.getlist("runs")])
        kinds = {name: query.get(name, "") == "1" for name in (SIMULATED, IMPORTED)}
        named = next((name for name, is_set in kinds.items() if is_set), query.get("scope", ""))
        chosen, _ = ResultFilter.from_query(query)
        return cls(named if named in KINDS else REAL, runs, chosen, TableLayout.from_query(query))

    def build_query(self, url: str) -> str:
        """Return the query string, with its question mark, that gives the page of a tab this scope; "" for none.

        A page that shows one run at a time gets no scope of several runs. Compare names its own sides.
        """
        if url in _UNSCOPED_PAGES:
            return ""
        kept = () if url == "/compare/" else (*self.chosen.pairs, *self.layout.pairs)
        pairs = [*self._list_run_pairs(url), *kept]
        return f"?{urlencode(pairs, safe=',')}" if pairs else ""

    def _list_run_pairs(self, url: str) -> list[tuple[str, str]]:
        if self.runs:
            if url in _SINGLE_RUN_PAGES and len(self.runs) > 1:
                return []
            return [("runs" if url == "/trials/" else "run", ",".join(map(str, self.runs)))]
        return parse_qsl(_KIND_QUERIES.get(self.kind, {}).get(url, ""))
