"""Query of the failures page.

Unreadable values are ignored; `ignored` has the names of their parameters. No value raises an error.
"""

from dataclasses import dataclass

from toolbench.lab.metrics.cause_pools import CauseScope
from toolbench.lab.query_params import QueryParams
from toolbench.lab.results.scoped_query import ScopedQuery

COUNTED_PROBLEMS = {"": "Decisive problem", "first": "First problem"}  # by the value of the URL parameter `look`
GROUPINGS = ("", "scenario", "model")


@dataclass(frozen=True, slots=True)
class FailuresQuery(ScopedQuery):
    """Scope and grouping of the failures page.

    Attributes:
        look: a key of COUNTED_PROBLEMS: "" counts the decisive cause of each trial, "first" the failure class of its
            verdict.
        by: one of GROUPINGS: groups are also split by scenario or by model; "" for neither.
    """

    look: str = ""
    by: str = ""

    @classmethod
    def from_query(cls, query: QueryParams) -> "FailuresQuery":
        """Parse URL parameters."""
        return cls(**cls.read_fields(query, {"look": COUNTED_PROBLEMS, "by": GROUPINGS}))

    @property
    def run(self) -> int | None:
        """Return the primary key of the run if exactly one is chosen, else None."""
        return self.runs[0] if len(self.runs) == 1 else None

    @property
    def counts_failure_classes(self) -> bool:
        """Return whether failure classes of verdicts are counted, that is, the first problem of each trial."""
        return self.look == "first"

    @property
    def causes_scope(self) -> CauseScope:
        """Return the scope of the trials to count."""
        return CauseScope(
            self.chosen, simulated=self.scope == "demo", imported=self.scope == "imported", runs=self.runs
        )

    def query(self, **changes: object) -> str:
        """Return the query string with some fields changed and without default values."""
        return self._render({"scope": self.scope, "look": self.look, "by": self.by}, changes)
