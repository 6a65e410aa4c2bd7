"""Scope of a result page that shows runs of one kind or named runs.

Unreadable values are ignored, and the names of their parameters are listed in the query; no value raises an error.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

from toolbench.lab.metrics.result_filter import NO_FILTER, ResultFilter
from toolbench.lab.query_params import QueryParams, clean_text, parse_run_ids
from toolbench.lab.results.scopes import NAMED_RUNS, REAL, SCOPE_LABELS


@dataclass(frozen=True, slots=True)
class ScopedQuery:
    """Scope and filter of a result page; a page adds its own fields.

    Attributes:
        scope: a key of SCOPE_LABELS. Simulated and imported runs are included only in the scopes `demo` and
            `imported`, or if `runs` lists them.
        runs: primary keys of the only runs to show, of any scope; () for all runs of the scope.
        chosen: filter by models, profiles, strategies, scenarios and times.
        ignored: names of the parameters that could not be read.
    """

    scope: str = REAL
    runs: tuple[int, ...] = ()
    chosen: ResultFilter = NO_FILTER
    ignored: tuple[str, ...] = ()

    @staticmethod
    def read_fields(query: QueryParams, choices: Mapping[str, Collection[str]]) -> dict[str, Any]:
        """Return the values of the fields by name, without those that are missing or not among their choices.

        Args:
            query: URL parameters.
            choices: possible values of each field that the page adds, by the name of the field and its parameter.
        """
        choices = {"scope": SCOPE_LABELS, **choices}
        values = {name: clean_text(query.get(name, "")) for name in choices}
        is_unread = {name: bool(value) and value not in choices[name] for name, value in values.items()}
        runs, is_unread["run"] = parse_run_ids(query.getlist("run"))
        if values["scope"] == NAMED_RUNS and runs:  # the matrix and the decision page write it into URLs
            values["scope"], is_unread["scope"] = REAL, False
        chosen, unread_names = ResultFilter.from_query(query)
        return {
            **{name: value for name, value in values.items() if value and not is_unread[name]},
            "runs": runs,
            "chosen": chosen,
            "ignored": (*(name for name, unread in is_unread.items() if unread), *unread_names),
        }

    @property
    def is_published(self) -> bool:
        """Return whether the published snapshot is shown."""
        return self.scope == "published" and not self.runs

    @property
    def form_fields(self) -> list[tuple[str, str]]:
        """Return (name, value) of the hidden fields of the filter form, whose visible fields are runs and `chosen`."""
        return parse_qsl(replace(self, runs=(), chosen=NO_FILTER).query())

    def query(self, **changes: object) -> str:
        """Return the query string with some fields changed and without default values."""
        return self._render({"scope": self.scope}, changes)

    def _render(self, values: Mapping[str, object], changes: Mapping[str, object]) -> str:
        """Return the query string of the runs, the filter, and the values that are not the defaults of their fields.

        Args:
            values: values of fields by parameter.
            changes: values by parameter that replace some of `values`, or the runs (`run`).
        """
        values = {**values, "run": ",".join(map(str, self.runs)), **changes}
        defaults = {field.name: field.default for field in fields(self)}
        pairs = [(name, value) for name, value in values.items() if value not in (None, "", defaults.get(name))]
        return urlencode([*pairs, *self.chosen.pairs], safe=",")
