"""Form for trials that are missing in several cells, which reads the target, the cells and the confirmation."""

from dataclasses import dataclass

from django.http import QueryDict

from toolbench.lab.query_params import parse_whole_number
from toolbench.lab.runs.control import MAX_TARGET_TRIALS


@dataclass(frozen=True, slots=True)
class MissingTrialsForm:
    """What was sent.

    Attributes:
        target: trials that each cell should have; None if it was not sent or is no number in bounds.
        error: what is wrong with the target; "" if nothing is.
        cells: ids of the chosen cells; None before a choice was sent.
        shown: the number of trials that the page showed.
        agreed: the number of paid requests that the user has confirmed.
    """

    target: int | None
    error: str
    cells: frozenset[int] | None
    shown: int
    agreed: int

    @classmethod
    def parse(cls, values: QueryDict) -> "MissingTrialsForm":
        """Return the form that was sent; values that are no ids are ignored."""
        text = values.get("target", "").strip()
        target = parse_whole_number(text, minimum=1, maximum=MAX_TARGET_TRIALS)
        error = f"Enter 1 to {MAX_TARGET_TRIALS:,} trials. The number shown is that of the run."
        ids = (parse_whole_number(value, minimum=1) for value in values.getlist("cell"))
        cells = frozenset(pk for pk in ids if pk is not None)
        return cls(
            target=target,
            error=error if text and target is None else "",
            cells=cells if cells or "chosen" in values else None,
            shown=parse_whole_number(values.get("shown", "")) or 0,
            agreed=parse_whole_number(values.get("agreed", "")) or 0,
        )
