"""Query of the matrix page.

Unreadable values are ignored; `ignored` has the names of their parameters. No value raises an error.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from toolbench.lab.metrics.definitions import METRICS
from toolbench.lab.metrics.result_filter import NO_FILTER, ResultFilter
from toolbench.lab.query_params import MAX_VALUE_CHARACTERS, QueryParams, clean_text, parse_run_ids, render_query
from toolbench.lab.results.scopes import NAMED_RUNS, SCOPE_LABELS
from toolbench.lab.results.table_layout import USUAL_LAYOUT, TableLayout

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
        scope: a key of SCOPE_LABELS, or NAMED_RUNS; empty if the URL names none: then `table.choose_scope` sets "real"
            or "published".
        runs: primary keys of the runs of NAMED_RUNS.
        metric: name of the metric.
        target: target of the rates in percent.
        q: text that the name of the model or of the provider contains, ignoring case; empty for all models.
        group: group of scenarios; empty for the default one.
        prompt: a prompt version; SPLIT_BY_PROMPT for one row for each version; empty to pool all versions.
        cell: key of the open row; empty for none. Only the view "bars" opens rows.
        view: a key of VIEWS.
        sort: name of the column by which the grid is sorted, largest first; with "-" before it, smallest first; empty
            for the order of the matrix.
        chosen: filter by models, profiles, strategies, scenarios and times.
        layout: columns and density of the grid.
        ignored: names of the parameters whose values could not be read.
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
        texts = {name: clean_text(query.get(name, ""), MAX_VALUE_CHARACTERS) for name in DEFAULTS}
        chosen, unread_names = ResultFilter.from_query(query)
        runs, has_unread_runs = parse_run_ids(query.getlist("run"))
        is_wrong_by_name = {
            "scope": texts["scope"] not in ("", *SCOPE_LABELS, *([NAMED_RUNS] if runs else [])),
            "metric": bool(texts["metric"]) and texts["metric"] not in METRICS,
            "target": bool(texts["target"]) and texts["target"] not in map(str, TARGET_PERCENTS),
            "view": texts["view"] not in VIEWS,
            "run": has_unread_runs,
        }
        scope = "" if is_wrong_by_name["scope"] else texts["scope"]
        return cls(
            scope=NAMED_RUNS if runs else scope,
            runs=runs,
            metric="given" if is_wrong_by_name["metric"] else texts["metric"] or "given",
            target=90 if is_wrong_by_name["target"] else int(texts["target"] or 90),
            q=texts["q"],
            group=texts["group"],
            prompt=texts["prompt"],
            cell=texts["cell"],
            view="bars" if texts["cell"] else "" if is_wrong_by_name["view"] else texts["view"],
            sort=texts["sort"],
            chosen=chosen,
            layout=TableLayout.from_query(query),
            ignored=(*(name for name, is_wrong in is_wrong_by_name.items() if is_wrong), *unread_names),
        )

    def query(self, **changes: object) -> str:
        """Return the query string with some fields changed and without default values.

        Args:
            changes: new values of fields of DEFAULTS, of `runs` and of `layout`.
        """
        layout = changes.pop("layout", self.layout)
        pairs = layout.pairs if isinstance(layout, TableLayout) else ()
        values = {name: getattr(self, name) for name in DEFAULTS} | {"runs": self.runs} | changes
        return render_query(values, DEFAULTS, (*self.chosen.pairs, *pairs))

    @property
    def has_filter(self) -> bool:
        """Return whether a filter may leave out results; a split by prompt version leaves out none."""
        return bool(self.q or self.prompt not in ("", SPLIT_BY_PROMPT) or self.chosen.pairs)

    @property
    def layout_fields(self) -> list[tuple[str, str]]:
        """Return the hidden fields of the form that chooses columns and density, as (name, value)."""
        return parse_qsl(self.query(layout=self.layout.without_grid))
