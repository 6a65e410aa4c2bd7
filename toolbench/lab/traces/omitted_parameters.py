"""What a trial says of the parameters that it went without."""

from collections.abc import Mapping
from dataclasses import dataclass

from toolbench.engine.policy.optional_parameters import OPTIONAL, differs_without


@dataclass(frozen=True, slots=True)
class LeftOutLine:
    """`known` before the trial began; `differs` says what is no longer measured, "" for nothing."""

    name: str
    why: str
    known: bool
    differs: str


def read_left_out(stored: object) -> tuple[LeftOutLine, ...]:
    """Return what `Trial.left_out` holds, also of an imported trial; what cannot be read is passed over."""
    rows = stored if isinstance(stored, list) else []
    return tuple(_line(row) for row in rows if isinstance(row, Mapping) and row.get("name") in OPTIONAL)


def _line(row: Mapping[str, object]) -> LeftOutLine:
    name = str(row["name"])
    return LeftOutLine(name, str(row.get("why", "")), bool(row.get("known")), differs_without(name))
