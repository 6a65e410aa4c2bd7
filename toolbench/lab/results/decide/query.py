"""The query of the decision page. Unreadable values are ignored and named; they never raise an error."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from toolbench.evals.decisions.assessments import DECISION_GOALS, DecisionRule
from toolbench.lab.metrics.result_filter import NO_FILTER, ResultFilter
from toolbench.lab.query_params import MAX_VALUE_CHARACTERS, QueryParams, clean_text, parse_run_ids, render_query

SCOPES = ("real", "runs", "demo")
DEFAULT_SUCCESS_PERCENT, DEFAULT_WITHIN_SECONDS = "90", "20"
NO_TIME_LIMIT = "none"
ALL_ROWS = "all"
DEFAULTS: Mapping[str, str] = {
    "scope": "real",
    "want": "",
    "success": DEFAULT_SUCCESS_PERCENT,
    "within": DEFAULT_WITHIN_SECONDS,
    "q": "",
    "group": "",
    "rows": "",
}


@dataclass(frozen=True, slots=True)
class DecideQuery:
    """Scope and rule of a decision.

    Attributes:
        want: the goal; empty lets the page choose cheapest if a cost is known, else fastest.
        success: a percentage between 1 and 99.9.
        within: seconds, or "none" for no time limit.
        rows: ALL_ROWS shows every row of the tables.
        chosen: models, profiles, strategies, scenarios and times.
        ignored: names of the values that could not be read.
    """

    scope: str = "real"
    runs: tuple[int, ...] = ()
    want: str = ""
    success: str = DEFAULT_SUCCESS_PERCENT
    within: str = DEFAULT_WITHIN_SECONDS
    q: str = ""
    group: str = ""
    rows: str = ""
    chosen: ResultFilter = NO_FILTER
    ignored: tuple[str, ...] = ()

    @classmethod
    def from_query(cls, query: QueryParams) -> "DecideQuery":
        """Return the query of these URL parameters."""
        given = {
            name: clean_text(query.get(name, ""), MAX_VALUE_CHARACTERS) or usual for name, usual in DEFAULTS.items()
        }
        chosen, unread_choices = ResultFilter.from_query(query)
        runs, unread = parse_run_ids(query.getlist("run"))
        given["scope"] = "runs" if runs and not query.get("scope", "") else given["scope"]
        wrong = {
            "scope": given["scope"] not in SCOPES or (given["scope"] == "runs" and not runs),
            "want": given["want"] not in ("", *DECISION_GOALS),
            "success": _parse_number(given["success"], 1, 99.9) is None,
            "within": given["within"] != NO_TIME_LIMIT and _parse_number(given["within"], 0.001, 86_400) is None,
            "rows": given["rows"] not in ("", ALL_ROWS),
            "run": unread,
        }
        kept = {name: DEFAULTS[name] if wrong.get(name) else value for name, value in given.items()}
        ignored = (*(name for name, is_wrong in wrong.items() if is_wrong), *unread_choices)
        return cls(runs=runs if kept["scope"] == "runs" else (), chosen=chosen, ignored=ignored, **kept)

    @property
    def rule(self) -> DecisionRule:
        """Return the decision rule, with the time limit in milliseconds."""
        within = None if self.within == NO_TIME_LIMIT else 1000 * float(self.within)
        return DecisionRule(self.want or DECISION_GOALS[0], float(self.success), within)

    @property
    def demo(self) -> bool:
        """Return whether simulated runs are in scope."""
        return self.scope == "demo"

    def with_default_want(self, *, priced: bool) -> "DecideQuery":
        """Return the query with a goal: the cheapest only where a cost is known."""
        return self if self.want else replace(self, want=DECISION_GOALS[0] if priced else DECISION_GOALS[1])

    @property
    def shows_all(self) -> bool:
        """Return whether the tables show every row."""
        return self.rows == ALL_ROWS

    @property
    def show_all_query(self) -> str:
        """Return the query string that shows every row of the tables."""
        return self.query(rows=ALL_ROWS)

    @property
    def fields(self) -> tuple[tuple[str, object], ...]:
        """Return the form fields that send the same query."""
        return (
            *((name, getattr(self, name)) for name in DEFAULTS),
            *(("run", run) for run in self.runs),
            *self.chosen.pairs,
        )

    def query(self, **changes: object) -> str:
        """Return the query string with some fields changed and without default values."""
        values = {name: getattr(self, name) for name in DEFAULTS} | {"runs": self.runs} | changes
        return render_query(values, DEFAULTS, self.chosen.pairs)


def _parse_number(text: str, least: float, most: float) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if least <= number <= most else None
