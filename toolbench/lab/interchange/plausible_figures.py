"""Reader of the tokens, costs and times of an imported file, with the bounds that live responses have."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from toolbench.engine.bounds import filter_valid_date, parse_cost, parse_count, parse_duration_ms


class FigureReader:
    """Reader of figures; the name of their column determines their bounds.

    A figure outside its bounds is implausible: it is read as None, or a total as 0, and counted for `sentence`.
    """

    def __init__(self) -> None:
        self._implausible: Counter[str] = Counter()

    @staticmethod
    def is_figure(name: str) -> bool:
        """Return whether a column of this name contains tokens, a cost or a duration."""
        return name == "cost" or name.endswith(("_tokens", "_ms"))

    def read(self, name: str, value: object, *, ms_per_unit: float = 1.0) -> int | float | None:
        """Return a figure, or None if it is implausible or `value` is None.

        Durations are returned in milliseconds, costs in US dollars. An implausible figure is counted.

        Args:
            name: a column for which `is_figure` is True.
            value: the figure as read from the file.
            ms_per_unit: milliseconds per unit of a duration in `value`; ignored for other figures.
        """
        figure: int | float | None
        if name == "cost":
            figure = parse_cost(value)
        else:
            figure = (
                parse_count(value) if name.endswith("_tokens") else parse_duration_ms(value, ms_per_unit=ms_per_unit)
            )
        if figure is None and value is not None:
            self.note_implausible(name)
        return figure

    def read_time(self, name: str, value: datetime) -> datetime | None:
        """Return `value` if it has a time zone and a year that pages can show.

        Otherwise, return None and count the time as implausible.
        """
        plausible_moment = filter_valid_date(value)
        if plausible_moment is None:
            self.note_implausible(name)
        return plausible_moment

    def read_total(self, name: str, values: Iterable[int | float | None]) -> int | float:
        """Return the sum of the values that are not None; 0 if it is implausible, which is counted."""
        return self.read(name, sum(value for value in values if value is not None)) or 0

    def note_implausible(self, name: str) -> None:
        """Count an implausible figure of the column `name`."""
        self._implausible[name] += 1

    @property
    def sentence(self) -> str:
        """A sentence that names the columns with implausible figures, for the run's note; "" if there are none."""
        if not self._implausible:
            return ""
        names = ", ".join(f"{name} ({count})" for name, count in sorted(self._implausible.items()))
        return f"Figures outside their bounds count as unknown, and as 0 in totals: {names}."
