"""Layout of the tables of results in the URL: columns and density."""

from dataclasses import dataclass, replace

from toolbench.lab.query_params import MAX_VALUE_CHARACTERS, QueryParams, clean_text

COMFORTABLE, COMPACT = "comfortable", "compact"
DENSITIES = (COMFORTABLE, COMPACT)
MAX_COLUMNS = 60  # names of columns of one table in a URL


@dataclass(frozen=True, slots=True)
class TableLayout:
    """Chosen layout of the tables, which links between pages of results keep.

    Attributes:
        grid: names of the columns to the right of the grid's cells; empty for the default columns.
        trials: names of the columns of the trial list; empty for the default columns.
        density: one of DENSITIES; "" for the default of each table.
    """

    grid: tuple[str, ...] = ()
    trials: tuple[str, ...] = ()
    density: str = ""

    @classmethod
    def from_query(cls, query: QueryParams) -> "TableLayout":
        """Parse URL parameters. Unknown names of columns are kept here; the tables ignore them."""
        density = clean_text(query.get("density", ""))
        return cls(
            grid=_read_names(query, "grid_column"),
            trials=_read_names(query, "trial_column"),
            density=density if density in DENSITIES else "",
        )

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Return the URL parameters of the layout."""
        values = {
            "grid_column": ",".join(self.grid),
            "trial_column": ",".join(self.trials),
            "density": self.density,
        }
        return tuple((name, value) for name, value in values.items() if value)

    @property
    def without_grid(self) -> "TableLayout":
        """Return the layout without the grid's columns and the density, for which the grid's form has own fields."""
        return replace(self, grid=(), density="")

    @property
    def without_trials(self) -> "TableLayout":
        """Return the layout without the trial list's columns and the density, for which its form has own fields."""
        return replace(self, trials=(), density="")


USUAL_LAYOUT = TableLayout()


def _read_names(query: QueryParams, name: str) -> tuple[str, ...]:
    """Return the names in a parameter: forms repeat the parameter, links separate the names by commas.

    Repeated names, names that are too long, and names beyond the first MAX_COLUMNS are left out.
    """
    parts = (part for value in query.getlist(name) for part in clean_text(value).split(","))
    return tuple(dict.fromkeys(part for part in parts if 0 < len(part) <= MAX_VALUE_CHARACTERS))[:MAX_COLUMNS]
