"""What a trial says of the parameters that it went without."""

from collections.abc import Mapping
from dataclasses import dataclass

from toolbench.engine.policy.optional_parameters import OPTIONAL_PARAMETERS, describe_difference


@dataclass(frozen=True, slots=True)
class OmissionNote:
    """`known` before the trial began; `differs` says what is no longer measured, "" for nothing."""

    name: str
    why: str
    known: bool
    differs: str


def parse_omitted_parameters(stored: object) -> tuple[OmissionNote, ...]:
    """Return what `Trial.left_out` holds, also of an imported trial; what cannot be read is passed over."""
    rows = stored if isinstance(stored, list) else []
    return tuple(_parse_row(row) for row in rows if isinstance(row, Mapping) and row.get("name") in OPTIONAL_PARAMETERS)


def _parse_row(row: Mapping[str, object]) -> OmissionNote:
    name = str(row["name"])
    return OmissionNote(name, str(row.get("why", "")), bool(row.get("known")), describe_difference(name))
