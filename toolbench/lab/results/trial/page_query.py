"""URL query of the trial page: filter of the list, view, open step, and other trial and level of the diff view."""

from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from toolbench.lab.query_params import QueryParams, clean_text
from toolbench.lab.results.trial_list.filter import MAX_VALUE_CHARS, TrialFilter

FIELD_NAMES = ("view", "step", "beside", "level")
CONVERSATION, STEPS, DIFFERENCES = "conversation", "steps", "differences"
VIEWS = (CONVERSATION, STEPS, DIFFERENCES)


@dataclass(frozen=True, slots=True)
class TrialPageQuery:
    """URL query of the trial page, with values as they are in the URL.

    Attributes:
        filter: filter of the trial list that led to the page.
        view: one of VIEWS; for any other text, `shown_view` chooses the view.
        step: key of the timeline row to open.
        beside: primary key of the other trial of the diff view.
        level: "parsed" or "raw" lines of the diff view.
    """

    filter: TrialFilter
    view: str = ""
    step: str = ""
    beside: str = ""
    level: str = ""

    @classmethod
    def from_query(cls, query: QueryParams) -> "TrialPageQuery":
        """Parse URL parameters."""
        values = {name: clean_text(query.get(name, ""), MAX_VALUE_CHARS) for name in FIELD_NAMES}
        return cls(TrialFilter.from_query(query), **values)

    def query(self, **changes: object) -> str:
        """Return the query string with some fields changed and without empty values."""
        parameters = {name: getattr(self, name) for name in FIELD_NAMES} | changes
        parts = (self.filter.query(), urlencode({name: value for name, value in parameters.items() if value}))
        return "&".join(part for part in parts if part)

    @property
    def shown_view(self) -> str:
        """Return the view that the page shows: `view`, or the view to which the other fields belong."""
        if self.view in VIEWS:
            return self.view
        return STEPS if self.step else DIFFERENCES if self.beside or self.level else CONVERSATION

    @property
    def form_fields(self) -> list[tuple[str, str]]:
        """Return (name, value) of the hidden fields of the form that chooses the other trial of the diff view."""
        return parse_qsl(self.query(beside="", view=DIFFERENCES))
