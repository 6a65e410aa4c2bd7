"""Form that adds missing trials to several cells: target, cells and confirmation."""

from dataclasses import dataclass

from django.http import QueryDict

from toolbench.lab.query_params import parse_whole_number
from toolbench.lab.runs.control import MAX_TARGET_TRIALS


@dataclass(frozen=True, slots=True)
class MissingTrialsForm:
    """Values of the sent form.

    Attributes:
        target: number of trials that each cell should have; None if it is missing or not a number within the limits.
        error: sentence about an invalid target; empty for a valid or missing one.
        cells: ids of the chosen cells; None if the form had no choice of cells.
        shown: number of trials that the page showed; 0 if it showed none.
        agreed: number of paid requests that the user has confirmed.
    """

    target: int | None
    error: str
    cells: frozenset[int] | None
    shown: int
    agreed: int

    @classmethod
    def parse(cls, values: QueryDict) -> "MissingTrialsForm":
        """Parse the sent form; values that are not ids are ignored."""
        text = values.get("target", "").strip()
        target = parse_whole_number(text, minimum=1, maximum=MAX_TARGET_TRIALS)
        error = f"Enter 1 to {MAX_TARGET_TRIALS:,} trials. The page shows the number of the run."
        cell_ids = (parse_whole_number(value, minimum=1) for value in values.getlist("cell"))
        cells = frozenset(cell_id for cell_id in cell_ids if cell_id is not None)
        return cls(
            target=target,
            error=error if text and target is None else "",
            cells=cells if cells or "chosen" in values else None,
            shown=parse_whole_number(values.get("shown", "")) or 0,
            agreed=parse_whole_number(values.get("agreed", "")) or 0,
        )
