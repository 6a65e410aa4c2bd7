"""Optional parameters that the requests of a stored trial left out."""

from collections.abc import Mapping
from dataclasses import dataclass

from toolbench.engine.policy.optional_parameters import OPTIONAL_PARAMETERS, describe_difference


@dataclass(frozen=True, slots=True)
class OmissionNote:
    """A parameter that requests of a trial left out.

    Attributes:
        reason: why it was left out: a sentence, or the endpoint's error message.
        was_known: whether every request left it out; False if only requests after the endpoint's refusal did.
        difference: sentence about what the trial does not measure without the parameter; "" for nothing.
    """

    name: str
    reason: str
    was_known: bool
    difference: str


def parse_omitted_parameters(stored: object) -> tuple[OmissionNote, ...]:
    """Parse `Trial.left_out`, which may be imported. Rows that do not name an optional parameter are ignored."""
    rows = stored if isinstance(stored, list) else []
    return tuple(_parse_row(row) for row in rows if isinstance(row, Mapping) and row.get("name") in OPTIONAL_PARAMETERS)


def _parse_row(row: Mapping[str, object]) -> OmissionNote:
    name = str(row["name"])
    return OmissionNote(name, str(row.get("why", "")), bool(row.get("known")), describe_difference(name))
