"""Query of the decision page.

Unreadable values are ignored and listed in the query; no value raises an error.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from toolbench.evals.decisions.assessments import CHEAPEST, DECISION_GOALS, RELIABLE, DecisionRule
from toolbench.lab.metrics.result_filter import NO_FILTER, ResultFilter
from toolbench.lab.query_params import MAX_VALUE_CHARACTERS, QueryParams, clean_text, parse_run_ids, render_query
from toolbench.lab.results.scopes import DECIDE_SCOPES, NAMED_RUNS, REAL, SIMULATED

DEFAULT_SUCCESS_PERCENT, DEFAULT_WITHIN_SECONDS = "90", "20"
NO_TIME_LIMIT = "none"
ALL_ROWS = "all"
DEFAULTS: Mapping[str, str] = {
    "scope": REAL,
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
        scope: one of DECIDE_SCOPES; NAMED_RUNS if `runs` is not empty.
        runs: primary keys of the runs that the URL names.
        want: the goal, one of DECISION_GOALS; "" for the cheapest if a model costs money, else the most reliable.
        success: the required end-to-end success, a percentage between 1 and 99.9.
        within: the time limit for p95 in seconds, or NO_TIME_LIMIT.
        q: text that the model name or the provider name of a candidate contains; "" for all candidates.
        group: the scenario group; "" for the default.
        rows: ALL_ROWS to show every row of the tables; "" for the first rows.
        chosen: models, profiles, strategies, scenarios and times.
        ignored: names of the parameters that could not be read.
        unread_limits: ("success" or "within", text) pairs for texts that could not be read; the default replaced them.
    """

    scope: str = REAL
    runs: tuple[int, ...] = ()
    want: str = ""
    success: str = DEFAULT_SUCCESS_PERCENT
    within: str = DEFAULT_WITHIN_SECONDS
    q: str = ""
    group: str = ""
    rows: str = ""
    chosen: ResultFilter = NO_FILTER
    ignored: tuple[str, ...] = ()
    unread_limits: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_query(cls, query: QueryParams) -> "DecideQuery":
        """Return the query of these URL parameters."""
        values = {
            name: clean_text(query.get(name, ""), MAX_VALUE_CHARACTERS) or default for name, default in DEFAULTS.items()
        }
        chosen, unread_names = ResultFilter.from_query(query)
        runs, has_unread_runs = parse_run_ids(query.getlist("run"))
        is_unread = {
            "scope": values["scope"] not in (*DECIDE_SCOPES, *([NAMED_RUNS] if runs else [])),
            "want": values["want"] not in ("", *DECISION_GOALS),
            "success": _parse_number(values["success"], 1, 99.9) is None,
            "within": values["within"] != NO_TIME_LIMIT and _parse_number(values["within"], 0.001, 86_400) is None,
            "rows": values["rows"] not in ("", ALL_ROWS),
            "run": has_unread_runs,
        }
        valid = {name: DEFAULTS[name] if is_unread.get(name) else value for name, value in values.items()}
        valid |= {"scope": NAMED_RUNS} if runs else {}
        ignored = (*(name for name, unread in is_unread.items() if unread), *unread_names)
        unread_limits = tuple((name, values[name]) for name in ("success", "within") if is_unread[name])
        return cls(
            runs=runs,
            chosen=chosen,
            ignored=ignored,
            unread_limits=unread_limits,
            **valid,
        )

    @property
    def rule(self) -> DecisionRule:
        """Return the decision rule, with the time limit in milliseconds and CHEAPEST as the default goal."""
        limit_ms = None if self.within == NO_TIME_LIMIT else 1000 * float(self.within)
        return DecisionRule(self.want or CHEAPEST, float(self.success), limit_ms)

    @property
    def unread_texts(self) -> Mapping[str, str]:
        """Return the texts of `unread_limits` by name."""
        return dict(self.unread_limits)

    @property
    def ignored_filters(self) -> tuple[str, ...]:
        """Return the names in `ignored` without those of `unread_limits`, for which the page has other messages."""
        return tuple(name for name in self.ignored if name not in self.unread_texts)

    @property
    def demo(self) -> bool:
        """Return whether the scope is that of simulated runs."""
        return self.scope == SIMULATED

    def with_default_goal(self, *, has_cost: bool) -> "DecideQuery":
        """Return the query with its own goal or else a default one.

        Args:
            has_cost: whether a model costs money; then the cheapest is the default goal, otherwise the most reliable.
        """
        return self if self.want else replace(self, want=CHEAPEST if has_cost else RELIABLE)

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
        """Return the query string without default values.

        Args:
            changes: new values of fields by name.
        """
        values = {name: getattr(self, name) for name in DEFAULTS} | {"runs": self.runs} | changes
        return render_query(values, DEFAULTS, self.chosen.pairs)


def _parse_number(text: str, minimum: float, maximum: float) -> float | None:
    """Return the number; None if the text is not a number between the limits."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if minimum <= number <= maximum else None
