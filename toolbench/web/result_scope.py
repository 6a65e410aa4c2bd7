"""The scope that the tabs of the results keep: which runs, or which kind of runs, the open page shows."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from toolbench.lab.query_params import QueryParams, parse_run_ids

REAL, SIMULATED, IMPORTED, PUBLISHED = "real", "demo", "imported", "published"
KINDS = (SIMULATED, IMPORTED, PUBLISHED)
_SINGLE_RUN_PAGES = ("/failures/", "/latency/", "/compare/")
_UNSCOPED_PAGES = ("/trend/",)  # chosen by schedule
_KIND_QUERIES: Mapping[str, Mapping[str, str]] = {
    SIMULATED: {
        "/matrix/": "scope=demo",
        "/trials/": "demo=1",
        "/failures/": "scope=demo",
        "/compare/": "demo=1",
        "/decide/": "scope=demo",
    },
    IMPORTED: {"/matrix/": "scope=imported", "/trials/": "imported=1"},
    PUBLISHED: {"/matrix/": "scope=published"},
}


@dataclass(frozen=True, slots=True)
class ResultScope:
    """The runs of a page of results.

    Attributes:
        kind: own, simulated, imported or published results; it does not count where runs are named.
        runs: primary keys of the named runs.
    """

    kind: str = REAL
    runs: tuple[int, ...] = ()

    @classmethod
    def from_query(cls, query: QueryParams) -> "ResultScope":
        """Return the scope of the URL parameters of any page of results.

        The pages name it differently: runs are `run` or `runs`, kinds are `scope`, or `demo` and `imported` of 1.
        """
        runs, _ = parse_run_ids([*query.getlist("run"), *query.getlist("runs")])
        kinds = {name: query.get(name, "") == "1" for name in (SIMULATED, IMPORTED)}
        named = next((name for name, is_set in kinds.items() if is_set), query.get("scope", ""))
        return cls(named if named in KINDS else REAL, runs)

    def build_query(self, url: str) -> str:
        """Return the query string, with its question mark, that gives the page of a tab this scope; "" for none.

        A page that shows one run at a time gets no scope of several runs.
        """
        if url in _UNSCOPED_PAGES:
            return ""
        if self.runs:
            if url in _SINGLE_RUN_PAGES and len(self.runs) > 1:
                return ""
            name = "runs" if url == "/trials/" else "run"
            return f"?{urlencode({name: ','.join(map(str, self.runs))}, safe=',')}"
        query = _KIND_QUERIES.get(self.kind, {}).get(url)
        return f"?{query}" if query else ""
