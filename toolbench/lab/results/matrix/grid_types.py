"""Types of the matrix grid: cells, columns, rows and the page of rows that is shown."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import overload

from toolbench.lab.metrics.rate import Rate
from toolbench.lab.metrics.tally import Tally
from toolbench.lab.metrics.times import Times
from toolbench.lab.metrics.values import MetricValue
from toolbench.lab.results.matrix.causes import CauseCounts
from toolbench.lab.results.matrix.columns import RowColumn
from toolbench.lab.scenarios.catalogue import ScenarioKey

MAX_PAGE_ROWS = 60  # of the matrix
MAX_FLAT_COLUMNS = 10  # if there are more columns of cells, their heads stand upright
MAX_EVEN_COLUMNS = 7  # up to so many columns of cells share the page width equally with a single column after them
NO_TIMES = Times()
STATES_WITHOUT_VALUE = ("na", "waiting", "unknown", "unpublished")


@dataclass(frozen=True, slots=True)
class GridCell:
    """One cell of the grid.

    Attributes:
        state: "clears" (the interval lies above the target), "below" (it lies below the target), "open" (neither, or no
            interval is shown), "clean" (no failure, but too few answers to reach the target), "few" (fewer than
            MIN_ANSWERS answers), "control", "plain" (the metric has no target), "unknown" (no value),
            "unpublished" (the publication has no value), "na" (no ended trial was applicable) or "waiting" (no value
            before the trials have ended).
        tint_percent: strength of the tint of a cell below the target, the larger the further below; 0 without tint.
        trials_query: query string that selects the trials of the cell; "" if none does.
        times: times of the trials with an answer.
        config_ids: primary keys of the configurations that are counted.
        scenarios: the scenarios with their versions.
        profile: whole name of the profile that is counted; "" for several.
        note: text of the card that opens at the cell; "" for a card with counts, times and tokens.
    """

    state: str
    value: MetricValue
    tally: Tally
    trials_query: str
    tint_percent: int = 0
    times: Times = NO_TIMES
    config_ids: tuple[int, ...] = ()
    scenarios: tuple[ScenarioKey, ...] = ()
    profile: str = ""
    note: str = ""

    @property
    def rate(self) -> Rate | None:
        """Return the value as a rate; None if the metric is no rate."""
        return self.value.rate

    @property
    def has_value(self) -> bool:
        """Return whether the cell shows a number."""
        return self.state not in STATES_WITHOUT_VALUE


@dataclass(frozen=True, slots=True)
class GridColumn:
    """A column of the grid.

    Attributes:
        key: name of the column in the URL parameter `sort`.
        group: head above the column, shared with its neighbours of the same group.
        total: rate of the column, pooled over all rows, of each scenario only the newest version; None if the metric is
            no rate, or if the rows have several kinds of instance.
        aliases: other names of the column in `sort`: the whole names of its profiles.
    """

    key: str
    label: str
    group: str
    is_control: bool
    total: MetricValue | None
    aliases: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Return the tooltip of the head: the whole names of the profiles, or the key."""
        return ", ".join(self.aliases) or self.key


@dataclass(frozen=True, slots=True)
class GridRow:
    """A row of the grid.

    Attributes:
        key: value of `cell` in the URL that opens this row in the view "bars"; "" if rows are not configurations.
        title: tooltip of the label.
        note: profile, settings that differ between rows, and remarks on this row.
        is_repeated: whether the row above has the same model and provider, so that the label is not shown again.
        overall: cell over all tool scenarios of the row, or over its controls if the metric covers only these; if rows
            are scenarios, cell over all strategies.
        cells: cells in the order of the columns; None if the row has no trials in the column.
        tally: counts of the tool scenarios; those of the control in the row of a control scenario.
        figures: further columns after the cells, each with its value.
    """

    key: str
    label: str
    title: str
    note: str
    is_repeated: bool
    overall: GridCell
    cells: tuple[GridCell | None, ...]
    tally: Tally
    figures: tuple[tuple[RowColumn, MetricValue], ...] = ()


class LazyRows(Sequence[GridRow]):
    """Rows that are built when they are first read.

    A page shows only some rows, and building all of them takes time.
    Threads share an instance without a lock: at worst, two of them build the same row.
    """

    def __init__(self, builders: Sequence[Callable[[], GridRow]]) -> None:
        self._builders = builders
        self._built: dict[int, GridRow] = {}

    def __len__(self) -> int:
        return len(self._builders)

    @overload
    def __getitem__(self, index: int) -> GridRow: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[GridRow, ...]: ...

    def __getitem__(self, index: int | slice) -> GridRow | tuple[GridRow, ...]:
        if isinstance(index, slice):
            return tuple(self[number] for number in range(*index.indices(len(self))))
        if index not in self._built:
            self._built[index] = self._builders[index]()
        return self._built[index]


@dataclass(frozen=True, slots=True)
class Grid:
    """The grid, with the number of the page that is shown.

    Attributes:
        corner: head of the column of row labels.
        rows: all rows, in their order.
        overall: pooled rate of all rows; None if the metric is no rate, or if the rows have several kinds of instance.
        row_columns: columns after the cells.
        sort: name of the column by which the rows are sorted, with "-" before it for the smallest value first; never an
            alias, and "" for the order of the matrix.
        page: number of the page, from 1.
        page_rows: maximum number of rows on a page.
        causes: causes of the failed trials of the page's rows; empty if they were not read.
    """

    corner: str
    columns: tuple[GridColumn, ...]
    rows: Sequence[GridRow]
    overall: MetricValue | None
    row_columns: tuple[RowColumn, ...] = ()
    sort: str = ""
    page: int = 1
    page_rows: int = MAX_PAGE_ROWS
    causes: CauseCounts = field(default_factory=dict)

    @property
    def shown_rows(self) -> tuple[GridRow, ...]:
        """Return the rows of the page. The first one always shows its label."""
        shown = self.rows[(self.page - 1) * self.page_rows : self.page * self.page_rows]
        return (replace(shown[0], is_repeated=False), *shown[1:]) if shown else ()

    @property
    def pages(self) -> int:
        """Return the number of pages, at least 1."""
        return max(1, -(-len(self.rows) // self.page_rows))

    @property
    def shape(self) -> str:
        """Return "upright" for many columns, "even" for so few that they share the width equally, else ""."""
        if len(self.columns) > MAX_FLAT_COLUMNS:
            return "upright"
        return "even" if len(self.columns) <= MAX_EVEN_COLUMNS and len(self.row_columns) == 1 else ""

    @property
    def groups(self) -> tuple[tuple[str, int], ...]:
        """Return the heads above the columns, each with its number of columns."""
        return _count_by_group(self.columns)

    @property
    def row_groups(self) -> tuple[tuple[str, int], ...]:
        """Return the heads above the columns after the cells, each with its number of columns."""
        return _count_by_group(self.row_columns)


def _count_by_group(columns: Iterable[GridColumn] | Iterable[RowColumn]) -> tuple[tuple[str, int], ...]:
    columns_by_group = groupby(columns, key=lambda column: column.group)
    return tuple((group, len(tuple(group_columns))) for group, group_columns in columns_by_group)
