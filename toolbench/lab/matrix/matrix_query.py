"""What the matrix's address asks for. Unreadable values are dropped and named, never an error."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlencode

from toolbench.lab.counts.metrics import METRICS
from toolbench.lab.planning.whole_numbers import whole_number

SCOPES = ("real", "runs", "demo", "imported", "published")
TARGETS = (80, 90, 95)
SPLIT = "each"
MOST_RUNS = 50
DEFAULTS: Mapping[str, object] = {
    "scope": "",
    "metric": "given",
    "target": 90,
    "q": "",
    "group": "",
    "prompt": "",
    "cell": "",
}


class Query(Protocol):
    """Django's QueryDict, as far as it is used here."""

    def get(self, key: str, default: str) -> str: ...

    def getlist(self, key: str) -> Sequence[str]: ...


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
    def from_query(cls, query: Query) -> "MatrixQuery":
        given = {name: query.get(name, "").replace("\0", "").strip()[:200] for name in DEFAULTS}
        runs, unread = read_runs(query.getlist("run"))
        scope = given["scope"] or ("runs" if runs else "")
        wrong = {
            "scope": bool(scope) and scope not in SCOPES,
            "metric": bool(given["metric"]) and given["metric"] not in METRICS,
            "target": bool(given["target"]) and given["target"] not in map(str, TARGETS),
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
        return query_string(values, DEFAULTS)


def read_runs(given: Sequence[str]) -> tuple[tuple[int, ...], bool]:
    """The first MOST_RUNS ids, and whether something was none."""
    parts = [part for value in given for part in value.split(",") if part][:MOST_RUNS]
    found = [whole_number(part) for part in parts]
    return tuple(dict.fromkeys(one for one in found if one is not None)), None in found


def query_string(values: Mapping[str, object], usual: Mapping[str, object]) -> str:
    """Those that are not as usual; `runs` only where the scope is theirs."""
    pairs = [(name, values[name]) for name in usual if values[name] != usual[name]]
    runs = values["runs"] if values["scope"] == "runs" else ()
    return urlencode([*pairs, *(("run", run) for run in (runs if isinstance(runs, tuple) else ()))])
