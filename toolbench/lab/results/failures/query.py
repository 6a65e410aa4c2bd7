"""Query of the failures page.

Unreadable values are ignored and listed in the query; no value raises an error.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl, urlencode

from toolbench.lab.metrics.cause_pools import CauseScope
from toolbench.lab.metrics.result_filter import NO_FILTER, ResultFilter
from toolbench.lab.query_params import QueryParams, clean_text, parse_run_ids
from toolbench.lab.results.scopes import NAMED_RUNS, REAL, SCOPE_LABELS

COUNTED_PROBLEMS = {"": "Decisive", "first": "First"}  # by the value of the URL parameter `look`
GROUPINGS = ("", "scenario", "model")
_CHOICES: Mapping[str, Collection[str]] = {"scope": SCOPE_LABELS, "look": COUNTED_PROBLEMS, "by": GROUPINGS}


@dataclass(frozen=True, slots=True)
class FailuresQuery:
    """Scope and grouping of the failures page.

    Attributes:
        scope: a key of SCOPE_LABELS. Simulated and imported runs are included only in the scopes `demo` and
            `imported`, or if `runs` lists them.
        runs: primary keys of the runs that are shown instead of the scope; () for the scope.
        look: a key of COUNTED_PROBLEMS: "" counts the decisive cause of each trial, "first" the failure class of its
            verdict.
        by: one of GROUPINGS: groups are also split by scenario or by model; "" for neither.
        chosen: filter by models, profiles, strategies, scenarios and times.
        ignored: names of parameters whose values could not be read.
    """

    scope: str = "real"
    runs: tuple[int, ...] = ()
    look: str = ""
    by: str = ""
    chosen: ResultFilter = NO_FILTER
    ignored: tuple[str, ...] = ()

    @classmethod
    def from_query(cls, query: QueryParams) -> "FailuresQuery":
        """Parse URL parameters."""
        values = {name: clean_text(query.get(name, "")) for name in _CHOICES}
        is_unread = {name: bool(value) and value not in _CHOICES[name] for name, value in values.items()}
        chosen, unread_names = ResultFilter.from_query(query)
        runs, is_unread["run"] = parse_run_ids(query.getlist("run"))
        if values["scope"] == NAMED_RUNS and runs:  # as other pages write it
            values["scope"], is_unread["scope"] = REAL, False
        return cls(
            scope="real" if is_unread["scope"] else values["scope"] or "real",
            runs=runs,
            look="" if is_unread["look"] else values["look"],
            by="" if is_unread["by"] else values["by"],
            chosen=chosen,
            ignored=(*(name for name, unread in is_unread.items() if unread), *unread_names),
        )

    @property
    def run(self) -> int | None:
        """Return the primary key of the run if exactly one is chosen, else None."""
        return self.runs[0] if len(self.runs) == 1 else None

    @property
    def counts_failure_classes(self) -> bool:
        """Return whether failure classes of verdicts are counted, that is, the first problem of each trial."""
        return self.look == "first"

    @property
    def is_published(self) -> bool:
        """Return whether the published snapshot is shown."""
        return self.scope == "published" and not self.runs

    @property
    def causes_scope(self) -> CauseScope:
        """Return the scope of the trials to count."""
        return CauseScope(
            self.chosen, simulated=self.scope == "demo", imported=self.scope == "imported", runs=self.runs
        )

    @property
    def form_fields(self) -> list[tuple[str, str]]:
        """Return (name, value) of the hidden fields of the filter form, whose visible fields are runs and `chosen`."""
        return parse_qsl(replace(self, runs=(), chosen=NO_FILTER).query())

    def query(self, **changes: object) -> str:
        """Return the query string with some fields changed and without default values."""
        values = {"scope": self.scope, "run": ",".join(map(str, self.runs)), "look": self.look, "by": self.by}
        pairs = [(name, value) for name, value in (values | changes).items() if value not in (None, "", "real")]
        return urlencode([*pairs, *self.chosen.pairs], safe=",")
