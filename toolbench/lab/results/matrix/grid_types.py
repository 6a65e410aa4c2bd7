"""The grid as its page shows it: cells, columns, rows and pages."""

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

MAX_PAGE_ROWS = 60
NO_TIMES = Times()
STATES_WITHOUT_VALUE = ("na", "waiting", "unknown", "unpublished")


@dataclass(frozen=True, slots=True)
class GridCell:
    """One cell of the grid.

    Attributes:
        state: "clears", "clean" (no miss, but too few answers to clear), "open", "below", "few" (fewer than MIN_ANSWERS
            answers), "control", "plain" (the metric has no target), "unknown" (no value), "unpublished", "na" or
            "waiting".
        depth: percent of the tint; the further below the target, the larger.
        trials_query: the query string that selects the trials of the cell; "" if none does.
        times: of the trials with an answer.
        config_ids: the configurations whose trials it counts.
        scenarios: the scenarios with their versions.
        note: what its card says instead of counts, times and tokens; "" for those.
    """

    state: str
    value: MetricValue
    tally: Tally
    trials_query: str
    depth: int = 0
    times: Times = NO_TIMES
    config_ids: tuple[int, ...] = ()
    scenarios: tuple[ScenarioKey, ...] = ()
    note: str = ""

    @property
    def rate(self) -> Rate | None:
        """The value as a rate; None if the metric is no rate."""
        return self.value.rate

    @property
    def has_value(self) -> bool:
        """Whether the cell shows a number."""
        return self.state not in STATES_WITHOUT_VALUE


@dataclass(frozen=True, slots=True)
class GridColumn:
    """A column of the grid.

    Attributes:
        group: the head above it, "" for none.
        total: the value of all rows together; None if the metric has none.
    """

    key: str
    label: str
    group: str
    is_control: bool
    total: MetricValue | None


@dataclass(frozen=True, slots=True)
class GridRow:
    """A row of the grid.

    Attributes:
        key: name of the row of the bars that it opens; "" where rows are no configurations.
        note: settings that differ between rows, and what is special about this one.
        is_repeated: whether the row above has the same label.
        overall: the value over all tool scenarios of the row.
        cells: in the order of the columns; None where nothing was planned.
        figures: a value for each column after the cells.
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
    """Rows that are built when they are first read: a page shows a part of them, and building takes time.

    Threads share them without a lock: at worst, two of them build the same row.
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
    """The grid as its page shows it.

    Attributes:
        causes: of the failed trials of the page's rows; empty if they were not read.
    """

    corner: str  # head of the rows' labels
    columns: tuple[GridColumn, ...]
    rows: Sequence[GridRow]
    overall: MetricValue | None
    row_columns: tuple[RowColumn, ...] = ()
    page: int = 1
    causes: CauseCounts = field(default_factory=dict)

    @property
    def shown_rows(self) -> tuple[GridRow, ...]:
        """The rows of the page."""
        shown = self.rows[(self.page - 1) * MAX_PAGE_ROWS : self.page * MAX_PAGE_ROWS]
        return (replace(shown[0], is_repeated=False), *shown[1:]) if shown else ()

    @property
    def pages(self) -> int:
        """The number of pages."""
        return max(1, -(-len(self.rows) // MAX_PAGE_ROWS))

    @property
    def groups(self) -> tuple[tuple[str, int], ...]:
        """The heads above the columns with the number of columns below each."""
        return _count_by_group(self.columns)

    @property
    def row_groups(self) -> tuple[tuple[str, int], ...]:
        """The heads above the columns after the cells with the number of columns below each."""
        return _count_by_group(self.row_columns)


def _count_by_group(columns: Iterable[GridColumn] | Iterable[RowColumn]) -> tuple[tuple[str, int], ...]:
    found = groupby(columns, key=lambda column: column.group)
    return tuple((group, len(tuple(members))) for group, members in found)
