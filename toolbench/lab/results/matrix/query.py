"""The query of the matrix. Unreadable values are ignored and named; they never raise an error."""

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
    """Scope, metric and filters of the matrix.

    Attributes:
        scope: empty lets the page choose the user's own runs if there are any, else the published figures.
        prompt: a prompt version, or SPLIT_BY_PROMPT for one row per version.
        cell: the key of the open row, which only the bars have.
        view: a key of VIEWS.
        sort: the column by which the grid is sorted, largest first; with "-" in front, smallest first.
        chosen: models, profiles, strategies, scenarios and times.
        layout: columns and density of the grid.
        ignored: names of the values that could not be read.
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
        """Return the query of these URL parameters."""
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
        """The fields that a form for columns and density must carry."""
        return parse_qsl(self.query(layout=self.layout.without_grid))
