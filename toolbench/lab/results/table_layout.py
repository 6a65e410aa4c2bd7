"""Columns and density of the tables of results, as the URL holds them."""

from dataclasses import dataclass, replace

from toolbench.lab.query_params import MAX_VALUE_CHARACTERS, QueryParams, clean_text

COMFORTABLE, COMPACT = "comfortable", "compact"
DENSITIES = (COMFORTABLE, COMPACT)
MAX_COLUMNS = 60  # names of one table in a URL


@dataclass(frozen=True, slots=True)
class TableLayout:
    """What a person chose for the tables; the tabs of the results keep it.

    Attributes:
        grid: names of the columns after the cells of the grid; () for the usual ones.
        trials: names of the columns of the trial list; () for the usual ones.
        density: one of DENSITIES; "" for the usual one of each table.
    """

    grid: tuple[str, ...] = ()
    trials: tuple[str, ...] = ()
    density: str = ""

    @classmethod
    def from_query(cls, query: QueryParams) -> "TableLayout":
        """Return the layout of these URL parameters. Unknown names are kept: the table that has none ignores them."""
        density = clean_text(query.get("density", ""))
        return cls(
            grid=_read_names(query, "grid_column"),
            trials=_read_names(query, "trial_column"),
            density=density if density in DENSITIES else "",
        )

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The parameters of a query string that give the same layout."""
        values = {
            "grid_column": ",".join(self.grid),
            "trial_column": ",".join(self.trials),
            "density": self.density,
        }
        return tuple((name, value) for name, value in values.items() if value)

    @property
    def without_grid(self) -> "TableLayout":
        """The layout that a form for the grid adds its own choice to."""
        return replace(self, grid=(), density="")

    @property
    def without_trials(self) -> "TableLayout":
        """The layout that a form for the trial list adds its own choice to."""
        return replace(self, trials=(), density="")


USUAL_LAYOUT = TableLayout()


def _read_names(query: QueryParams, name: str) -> tuple[str, ...]:
    """Return the names that a parameter holds, which check boxes repeat and addresses separate by commas."""
    parts = (part for value in query.getlist(name) for part in clean_text(value).split(","))
    return tuple(dict.fromkeys(part for part in parts if 0 < len(part) <= MAX_VALUE_CHARACTERS))[:MAX_COLUMNS]
