"""What the address of one trial's page holds: the filter it is seen within, the open step, and what lies beside it."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from toolbench.lab.plain_text import clean_text
from toolbench.lab.results.trial.filter import MAX_VALUE_CHARS, TrialFilter

FIELD_NAMES = ("step", "beside", "level")


@dataclass(frozen=True, slots=True)
class TrialPageQuery:
    """`step` is a line of the rail, `beside` another trial, `level` parsed or raw; each as it was written."""

    filter: TrialFilter
    step: str = ""
    beside: str = ""
    level: str = ""

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> "TrialPageQuery":
        named = {name: clean_text(query.get(name, ""), MAX_VALUE_CHARS) for name in FIELD_NAMES}
        return cls(TrialFilter.from_query(query), **named)

    def query(self, **changes: object) -> str:
        """The address with some of it changed; what is empty is left out."""
        own = {name: getattr(self, name) for name in FIELD_NAMES} | changes
        parts = (self.filter.query(), urlencode({name: value for name, value in own.items() if value}))
        return "&".join(part for part in parts if part)

    @property
    def form_fields(self) -> dict[str, str]:
        """What a form that asks for another trial must carry along."""
        return dict(parse_qsl(self.query(beside="")))
