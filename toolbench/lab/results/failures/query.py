"""The query of the failures page. Unreadable values are ignored and named; they never raise an error."""

from dataclasses import dataclass
from urllib.parse import urlencode

from toolbench.lab.metrics.result_filter import NO_FILTER, ResultFilter
from toolbench.lab.query_params import QueryParams, parse_run_ids

SCOPES = ("real", "demo")


@dataclass(frozen=True, slots=True)
class FailuresQuery:
    """Scope of the failures page.

    Attributes:
        scope: "real" leaves simulated runs out; "demo" shows only them.
        runs: primary keys of runs that are shown whatever the scope; () for all runs of the scope.
        chosen: models, profiles, strategies, scenarios and times.
    """

    scope: str = "real"
    runs: tuple[int, ...] = ()
    chosen: ResultFilter = NO_FILTER
    ignored: tuple[str, ...] = ()

    @classmethod
    def from_query(cls, query: QueryParams) -> "FailuresQuery":
        """Return the query of these URL parameters."""
        scope = query.get("scope", "").strip()
        chosen, unread = ResultFilter.from_query(query)
        runs, unread_runs = parse_run_ids(query.getlist("run"))
        wrong = {"scope": bool(scope) and scope not in SCOPES, "run": unread_runs}
        return cls(
            scope=scope if scope in SCOPES else "real",
            runs=runs,
            chosen=chosen,
            ignored=(*(name for name, is_wrong in wrong.items() if is_wrong), *unread),
        )

    @property
    def run(self) -> int | None:
        """The only run that is shown; None for none or several."""
        return self.runs[0] if len(self.runs) == 1 else None

    def query(self, **changes: object) -> str:
        """Return the query string with some fields changed and without default values."""
        values = {"scope": self.scope, "run": ",".join(map(str, self.runs))} | changes
        pairs = [(name, value) for name, value in values.items() if value not in (None, "", "real")]
        return urlencode([*pairs, *self.chosen.pairs], safe=",")
