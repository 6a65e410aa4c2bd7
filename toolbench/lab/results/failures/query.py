"""The query of the failures page. Unreadable values are ignored and named; they never raise an error."""

from dataclasses import dataclass
from urllib.parse import urlencode

from toolbench.lab.metrics.result_filter import NO_FILTER, ResultFilter
from toolbench.lab.query_params import QueryParams, parse_whole_number

SCOPES = ("real", "demo")


@dataclass(frozen=True, slots=True)
class FailuresQuery:
    """Scope of the failures page.

    Attributes:
        scope: "real" leaves simulated runs out; "demo" shows only them.
        run: primary key of a run that is shown whatever the scope; None for all runs.
        chosen: models, profiles, strategies, scenarios and times.
    """

    scope: str = "real"
    run: int | None = None
    chosen: ResultFilter = NO_FILTER
    ignored: tuple[str, ...] = ()

    @classmethod
    def from_query(cls, query: QueryParams) -> "FailuresQuery":
        """Return the query of these URL parameters."""
        scope, run = query.get("scope", "").strip(), query.get("run", "").strip()
        chosen, unread = ResultFilter.from_query(query)
        run_id = parse_whole_number(run)
        wrong = {"scope": bool(scope) and scope not in SCOPES, "run": bool(run) and run_id is None}
        return cls(
            scope=scope if scope in SCOPES else "real",
            run=run_id,
            chosen=chosen,
            ignored=(*(name for name, is_wrong in wrong.items() if is_wrong), *unread),
        )

    def query(self, **changes: object) -> str:
        """Return the query string with some fields changed and without default values."""
        values = {"scope": self.scope, "run": self.run} | changes
        pairs = [(name, value) for name, value in values.items() if value not in (None, "", "real")]
        return urlencode([*pairs, *self.chosen.pairs])
