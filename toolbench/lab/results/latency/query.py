"""Query of the latency page.

Unreadable values are ignored and, except for `page`, listed in the query. No value raises an error.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl, urlencode

from django.db.models import F, Q
from django.db.models.expressions import Combinable

from toolbench.lab.metrics.result_filter import NO_FILTER, ResultFilter
from toolbench.lab.models import Run
from toolbench.lab.query_params import QueryParams, clean_text, parse_run_ids, parse_whole_number
from toolbench.lab.results.matrix.query import MatrixQuery
from toolbench.lab.results.scopes import NAMED_RUNS, REAL, SCOPE_LABELS

# the label and the expression of a trial's milliseconds, by name in the URL
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
_CHOICES: Mapping[str, Collection[str]] = {"scope": SCOPE_LABELS, "metric": TIME_METRICS, "by": SPLITS}


@dataclass(frozen=True, slots=True)
class LatencyQuery:
    """Scope of the latency page.

    Attributes:
        scope: a key of SCOPE_LABELS. Simulated and imported runs are only in their own scopes, unless `runs` lists
            them.
        runs: primary keys of the only runs to show, of any scope; () for all runs of the scope.
        metric: a key of TIME_METRICS.
        by: "scenario" adds figures by scenario to the table; "" does not.
        group: a scenario group; "" and a group that is not in scope stand for the default group.
        page: number of the page, from 1.
        chosen: models, profiles, strategies, scenarios and times.
        ignored: names of the parameters that could not be read, without `page`.
    """

    scope: str = "real"
    runs: tuple[int, ...] = ()
    metric: str = "trial"
    by: str = ""
    group: str = ""
    page: int = 1
    chosen: ResultFilter = NO_FILTER
    ignored: tuple[str, ...] = ()

    @classmethod
    def from_query(cls, query: QueryParams) -> "LatencyQuery":
        """Return the query of these URL parameters."""
        values = {name: clean_text(query.get(name, "")) for name in _CHOICES}
        is_unread = {name: bool(value) and value not in _CHOICES[name] for name, value in values.items()}
        chosen, unread_names = ResultFilter.from_query(query)
        runs, is_unread["run"] = parse_run_ids(query.getlist("run"))
        if values["scope"] == NAMED_RUNS and runs:  # as other pages write it
            values["scope"], is_unread["scope"] = REAL, False
        return cls(
            scope="real" if is_unread["scope"] else values["scope"] or "real",
            runs=runs,
            metric="trial" if is_unread["metric"] else values["metric"] or "trial",
            by="" if is_unread["by"] else values["by"],
            group=clean_text(query.get("group", "")),
            page=parse_whole_number(query.get("page", "")) or 1,
            chosen=chosen,
            ignored=(*(name for name, unread in is_unread.items() if unread), *unread_names),
        )

    @property
    def is_published(self) -> bool:
        """Return whether the published snapshot is shown."""
        return self.scope == "published" and not self.runs

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
        """Return the condition of the runs of the scope."""
        if self.scope == "imported":
            return Run.COUNTED & Q(imported=True)
        return Run.COUNTED & Q(imported=False, simulated=self.scope == "demo")

    @property
    def form_fields(self) -> list[tuple[str, str]]:
        """Return (name, value) of the hidden fields of the filter form, whose visible fields are runs and `chosen`."""
        return parse_qsl(replace(self, runs=(), chosen=NO_FILTER).query())

    def query(self, **changes: object) -> str:
        """Return the query string without default values, for the first page of the list.

        Args:
            changes: new values by parameter; `page` chooses another page.
        """
        values = {name: getattr(self, name) for name in ("scope", "metric", "by", "group")}
        values |= {"run": ",".join(map(str, self.runs))}
        defaults = (None, "", "real", "trial")
        pairs = [(name, value) for name, value in (values | changes).items() if value not in defaults]
        return urlencode([*pairs, *self.chosen.pairs], safe=",")
