"""Tokens, costs and times of an imported file, limited to the same bounds as those of a live response."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from toolbench.engine.bounds import check_year, parse_cost, parse_count, parse_duration_ms


class FigureReader:
    """Reader of figures by the name of their column. A figure outside its bounds is unknown; `sentence` names it."""

    def __init__(self) -> None:
        self._implausible: Counter[str] = Counter()

    @staticmethod
    def is_figure(name: str) -> bool:
        """Return whether a column of this name holds tokens, a cost or a time."""
        return name == "cost" or name.endswith(("_tokens", "_ms"))

    def read(self, name: str, value: object, *, per_unit: float = 1.0) -> int | float | None:
        """Return a figure, or None if it is implausible or was not given. Times are in milliseconds.

        An implausible figure is noted. `per_unit` is the number of milliseconds in the unit of a given time.
        """
        kept: int | float | None
        if name == "cost":
            kept = parse_cost(value)
        else:
            kept = parse_count(value) if name.endswith("_tokens") else parse_duration_ms(value, per_unit=per_unit)
        if kept is None and value is not None:
            self.note_implausible(name)
        return kept

    def read_time(self, name: str, value: datetime) -> datetime | None:
        """Return an aware moment within the years that pages can show. For any other, note it and return None."""
        kept = check_year(value)
        if kept is None:
            self.note_implausible(name)
        return kept

    def read_total(self, name: str, values: Iterable[int | float | None]) -> int | float:
        """Return the sum of the known figures. If it is implausible, note it and return 0."""
        return self.read(name, sum(value for value in values if value is not None)) or 0

    def note_implausible(self, name: str) -> None:
        """Count a figure of this column that is unknown because it is implausible."""
        self._implausible[name] += 1

    @property
    def sentence(self) -> str:
        """The sentence about implausible figures for the imported run; "" if there are none."""
        if not self._implausible:
            return ""
        names = ", ".join(f"{name} ({count})" for name, count in sorted(self._implausible.items()))
        return f"Figures outside their bounds count as unknown: {names}."
