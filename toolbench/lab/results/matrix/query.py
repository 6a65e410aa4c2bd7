"""Query of the matrix page. It ignores values that it cannot read, and lists their names."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from toolbench.lab.metrics.definitions import METRICS
from toolbench.lab.metrics.result_filter import NO_FILTER, ResultFilter
from toolbench.lab.query_params import MAX_VALUE_CHARACTERS, QueryParams, clean_text, parse_run_ids, render_query
from toolbench.lab.results.table_layout import USUAL_LAYOUT, TableLayout

SCOPES = ("real", "runs", "demo", "imported", "published")
TARGET_PERCENTS = (80, 90, 95)
SPLIT_BY_PROMPT = "each"
VIEWS = {"": "Model × scenario", "profile": "Model × profile", "strategy": "Scenario × strategy", "bars": "Bars"}
DEFAULTS: Mapping[str, object] = {
    "scope": "",
    "metric": "given",
    "target": 90,
    "q": "",
    "group": "",
    "prompt": "",
    "cell": "",
    "view": "",
    "sort": "",
}


@dataclass(frozen=True, slots=True)
class MatrixQuery:
    """Scope, metric, filter and layout of the matrix.

    Attributes:
        scope: one of SCOPES; empty for own runs if there are any, else the published figures.
        runs: primary keys of the runs of scope "runs".
        metric: name of the metric.
        target: target of the rates in percent.
        q: part of the model's name.
        group: group of scenarios; empty for the default one.
        prompt: a prompt version, or SPLIT_BY_PROMPT for a row for each version.
        cell: key of the open row, which only the view "bars" has.
        view: a key of VIEWS.
        sort: name of the column by which the grid is sorted, largest first; with "-" before it, smallest first.
        chosen: filter by models, profiles, strategies, scenarios and times.
        layout: columns and density of the grid.
        ignored: names of parameters whose values could not be read.
    """

    scope: str = ""
    runs: tuple[int, ...] = ()
    metric: str = "given"
    target: int = 90
    q: str = ""
    group: str = ""
    prompt: str = ""
    cell: str = ""
    view: str = ""
    sort: str = ""
    chosen: ResultFilter = NO_FILTER
    layout: TableLayout = USUAL_LAYOUT
    ignored: tuple[str, ...] = ()

    @classmethod
    def from_query(cls, query: QueryParams) -> "MatrixQuery":
        """Parse URL parameters."""
        given = {name: clean_text(query.get(name, ""), MAX_VALUE_CHARACTERS) for name in DEFAULTS}
        chosen, unread_choices = ResultFilter.from_query(query)
        runs, unread = parse_run_ids(query.getlist("run"))
        scope = given["scope"] or ("runs" if runs else "")
        wrong = {
            "scope": bool(scope) and scope not in SCOPES,
            "metric": bool(given["metric"]) and given["metric"] not in METRICS,
            "target": bool(given["target"]) and given["target"] not in map(str, TARGET_PERCENTS),
            "view": given["view"] not in VIEWS,
            "run": unread,
        }
        return cls(
            scope="" if wrong["scope"] or (scope == "runs" and not runs) else scope,
            runs=runs if scope == "runs" else (),
            metric="given" if wrong["metric"] else given["metric"] or "given",
            target=90 if wrong["target"] else int(given["target"] or 90),
            q=given["q"],
            group=given["group"],
            prompt=given["prompt"],
            cell=given["cell"],
            view="bars" if given["cell"] else "" if wrong["view"] else given["view"],
            sort=given["sort"],
            chosen=chosen,
            layout=TableLayout.from_query(query),
            ignored=(*(name for name, is_wrong in wrong.items() if is_wrong), *unread_choices),
        )

    def query(self, **changes: object) -> str:
        """Return the query string with some fields changed and without default values."""
        layout = changes.pop("layout", self.layout)
        pairs = layout.pairs if isinstance(layout, TableLayout) else ()
        values = {name: getattr(self, name) for name in DEFAULTS} | {"runs": self.runs} | changes
        return render_query(values, DEFAULTS, (*self.chosen.pairs, *pairs))

    @property
    def layout_fields(self) -> list[tuple[str, str]]:
        """Return the hidden fields of the form that chooses columns and density."""
        return parse_qsl(self.query(layout=self.layout.without_grid))
