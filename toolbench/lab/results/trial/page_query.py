"""The query of the trial page: the filter of the list, the view, the open step and the trial compared with."""

from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from toolbench.lab.query_params import QueryParams, clean_text
from toolbench.lab.results.trial_list.filter import MAX_VALUE_CHARS, TrialFilter

FIELD_NAMES = ("view", "step", "beside", "level")
CONVERSATION, STEPS, DIFFERENCES = "conversation", "steps", "differences"
VIEWS = (CONVERSATION, STEPS, DIFFERENCES)


@dataclass(frozen=True, slots=True)
class TrialPageQuery:
    """Query of the trial page, each value as given.

    Attributes:
        view: a name of VIEWS; `shown_view` replaces any other value.
        step: a row of the timeline.
        beside: another trial to compare with.
        level: "parsed" or "raw".
    """

    filter: TrialFilter
    view: str = ""
    step: str = ""
    beside: str = ""
    level: str = ""

    @classmethod
    def from_query(cls, query: QueryParams) -> "TrialPageQuery":
        """Return the query of these URL parameters."""
        named = {name: clean_text(query.get(name, ""), MAX_VALUE_CHARS) for name in FIELD_NAMES}
        return cls(TrialFilter.from_query(query), **named)

    def query(self, **changes: object) -> str:
        """Return the query string with some fields changed and without empty values."""
        parameters = {name: getattr(self, name) for name in FIELD_NAMES} | changes
        parts = (self.filter.query(), urlencode({name: value for name, value in parameters.items() if value}))
        return "&".join(part for part in parts if part)

    @property
    def shown_view(self) -> str:
        """Return the view that the page shows: the one named, else the one that the other fields belong to."""
        if self.view in VIEWS:
            return self.view
        return STEPS if self.step else DIFFERENCES if self.beside or self.level else CONVERSATION

    @property
    def form_fields(self) -> dict[str, str]:
        """Return the fields that a form for choosing another trial must carry."""
        return dict(parse_qsl(self.query(beside="", view=DIFFERENCES)))
