"""What the matrix's address asks for. Unreadable values are dropped and named, never an error."""

from collections.abc import Mapping
from dataclasses import dataclass

from toolbench.lab.metrics.definitions import METRICS
from toolbench.lab.plain_text import clean_text
from toolbench.lab.query_params import MAX_VALUE_CHARACTERS, QueryParams, parse_run_ids, render_query

SCOPES = ("real", "runs", "demo", "imported", "published")
TARGET_PERCENTS = (80, 90, 95)
SPLIT_BY_PROMPT = "each"
DEFAULTS: Mapping[str, object] = {
    "scope": "",
    "metric": "given",
    "target": 90,
    "q": "",
    "group": "",
    "prompt": "",
    "cell": "",
}


@dataclass(frozen=True, slots=True)
class MatrixQuery:
    """`scope` "" lets the page choose: one's own runs where there are any, else the published figures. `prompt` is a
    prompt version, or SPLIT for one row per version. `cell` is the open row's key."""

    scope: str = ""
    runs: tuple[int, ...] = ()
    metric: str = "given"
    target: int = 90
    q: str = ""
    group: str = ""
    prompt: str = ""
    cell: str = ""
    ignored: tuple[str, ...] = ()

    @classmethod
    def from_query(cls, query: QueryParams) -> "MatrixQuery":
        given = {name: clean_text(query.get(name, ""), MAX_VALUE_CHARACTERS) for name in DEFAULTS}
        runs, unread = parse_run_ids(query.getlist("run"))
        scope = given["scope"] or ("runs" if runs else "")
        wrong = {
            "scope": bool(scope) and scope not in SCOPES,
            "metric": bool(given["metric"]) and given["metric"] not in METRICS,
            "target": bool(given["target"]) and given["target"] not in map(str, TARGET_PERCENTS),
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
            ignored=tuple(name for name, is_wrong in wrong.items() if is_wrong),
        )

    def query(self, **changes: object) -> str:
        """As a query string with some fields changed; defaults are left out."""
        values = {name: getattr(self, name) for name in DEFAULTS} | {"runs": self.runs} | changes
        return render_query(values, DEFAULTS)
