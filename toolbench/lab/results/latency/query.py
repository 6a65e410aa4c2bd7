"""Query of the latency page.

Unreadable values are ignored; `ignored` has the names of their parameters, except `page`. No value raises an error.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import F, Q
from django.db.models.expressions import Combinable

from toolbench.lab.metrics.cause_pools import build_kind_conditions
from toolbench.lab.models import Run
from toolbench.lab.query_params import QueryParams, clean_text, parse_whole_number
from toolbench.lab.results.matrix.query import MatrixQuery
from toolbench.lab.results.scoped_query import ScopedQuery

# Label, and expression of a trial's milliseconds, by name in the URL.
TIME_METRICS: Mapping[str, tuple[str, Combinable]] = {
    "trial": ("Whole trial", F("duration_ms")),
    "working": ("Without back-off", F("duration_ms") - F("backoff_ms")),
    "model": ("Model", F("model_ms")),
    "tool": ("Tools", F("tool_ms")),
    "backoff": ("Back-off", F("backoff_ms")),
    "first_byte": ("First byte", F("first_byte_ms")),
    "first_token": ("First token", F("first_token_ms")),
    "first_call": ("First call", F("first_call_ms")),
}
STORED_METRICS = ("trial", "first_token")  # their times are stored with the cells
SPLITS = ("", "scenario")


@dataclass(frozen=True, slots=True)
class LatencyQuery(ScopedQuery):
    """Scope, metric and page number of the latency page.

    Attributes:
        metric: a key of TIME_METRICS.
        by: "scenario" adds figures by scenario to the table; "" does not.
        group: a scenario group; "" and a group that is not in scope stand for the default group or, if that is not in
            scope, for the first one.
        page: number of the page, from 1.
    """

    metric: str = "trial"
    by: str = ""
    group: str = ""
    page: int = 1

    @classmethod
    def from_query(cls, query: QueryParams) -> "LatencyQuery":
        """Return the query of these URL parameters."""
        return cls(
            **cls.read_fields(query, {"metric": TIME_METRICS, "by": SPLITS}),
            group=clean_text(query.get("group", "")),
            page=parse_whole_number(query.get("page", "")) or 1,
        )

    @property
    def title(self) -> str:
        """Return the label of the metric."""
        return TIME_METRICS[self.metric][0]

    @property
    def matrix_query(self) -> MatrixQuery:
        """Return the query of the matrix over the same runs."""
        return MatrixQuery(scope="runs" if self.runs else self.scope, runs=self.runs, chosen=self.chosen)

    @property
    def run_condition(self) -> Q:
        """Return the condition on runs that selects those of the scope."""
        conditions = build_kind_conditions(simulated=self.scope == "demo", imported=self.scope == "imported")
        return Run.COUNTED & Q(**conditions)

    def query(self, **changes: object) -> str:
        """Return the query string without default values, for the first page of the list.

        Args:
            changes: new values by parameter; `page` chooses another page.
        """
        values = {name: getattr(self, name) for name in ("scope", "metric", "by", "group")}
        return self._render(values, changes)
