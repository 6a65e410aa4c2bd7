"""The query of the failures page. Unreadable values are ignored and named; they never raise an error."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl, urlencode

from toolbench.lab.metrics.cause_pools import CauseScope
from toolbench.lab.metrics.result_filter import NO_FILTER, ResultFilter
from toolbench.lab.query_params import QueryParams, clean_text, parse_run_ids

SCOPES = {"real": "My runs", "published": "Published", "demo": "Demo", "imported": "Imported"}
LOOKS = {"": "Decisive", "first": "First"}
GROUPINGS = ("", "scenario", "model")
_CHOICES: Mapping[str, Collection[str]] = {"scope": SCOPES, "look": LOOKS, "by": GROUPINGS}


@dataclass(frozen=True, slots=True)
class FailuresQuery:
    """Scope of the failures page.

    Attributes:
        scope: a key of SCOPES; simulated and imported runs are only in scopes of their own or where they are named.
        runs: primary keys of runs that are shown whatever the scope; () for all runs of the scope.
        look: a key of LOOKS: whether the decisive problem of each trial counts, or the first one by the verdict.
        by: what groups are split by beside cause, path and turn; one of GROUPINGS.
        chosen: models, profiles, strategies, scenarios and times.
        ignored: names of the values that could not be read.
    """

    scope: str = "real"
    runs: tuple[int, ...] = ()
    look: str = ""
    by: str = ""
    chosen: ResultFilter = NO_FILTER
    ignored: tuple[str, ...] = ()

    @classmethod
    def from_query(cls, query: QueryParams) -> "FailuresQuery":
        """Return the query of these URL parameters."""
        given = {name: clean_text(query.get(name, "")) for name in _CHOICES}
        wrong = {name: bool(value) and value not in _CHOICES[name] for name, value in given.items()}
        chosen, unread = ResultFilter.from_query(query)
        runs, wrong["run"] = parse_run_ids(query.getlist("run"))
        return cls(
            scope="real" if wrong["scope"] else given["scope"] or "real",
            runs=runs,
            look="" if wrong["look"] else given["look"],
            by="" if wrong["by"] else given["by"],
            chosen=chosen,
            ignored=(*(name for name, is_wrong in wrong.items() if is_wrong), *unread),
        )

    @property
    def run(self) -> int | None:
        """The only run that is shown; None for none or several."""
        return self.runs[0] if len(self.runs) == 1 else None

    @property
    def is_first(self) -> bool:
        """Whether the first problem of each trial counts."""
        return self.look == "first"

    @property
    def is_published(self) -> bool:
        """Whether the published snapshot is shown."""
        return self.scope == "published" and not self.runs

    @property
    def causes_scope(self) -> CauseScope:
        """The trials to count."""
        return CauseScope(
            self.chosen, simulated=self.scope == "demo", imported=self.scope == "imported", runs=self.runs
        )

    @property
    def form_fields(self) -> list[tuple[str, str]]:
        """The fields that a form for runs, models, profiles, strategies, scenarios and times must carry."""
        return parse_qsl(replace(self, runs=(), chosen=NO_FILTER).query())

    def query(self, **changes: object) -> str:
        """Return the query string with some fields changed and without default values."""
        values = {"scope": self.scope, "run": ",".join(map(str, self.runs)), "look": self.look, "by": self.by}
        pairs = [(name, value) for name, value in (values | changes).items() if value not in (None, "", "real")]
        return urlencode([*pairs, *self.chosen.pairs], safe=",")
