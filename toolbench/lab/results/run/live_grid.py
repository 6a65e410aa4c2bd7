"""Live grid of the run page: the grid of one run and its latest trials."""

from dataclasses import dataclass, replace

from toolbench.lab.metrics.result_filter import NO_FILTER
from toolbench.lab.models import Trial
from toolbench.lab.query_params import QueryParams
from toolbench.lab.results.matrix.grid import get_grid_with_causes
from toolbench.lab.results.matrix.grid_types import Grid
from toolbench.lab.results.matrix.query import MatrixQuery
from toolbench.lab.results.matrix.table import Matrix, build_matrix
from toolbench.lab.results.run.cells import RunCells

MAX_LATEST_TRIALS = 10
MAX_GRID_ROWS = 30  # the page links to the matrix with all rows
RUN_COLUMNS = ("p50", "p95", "cost")  # tokens and retries of the run are above the grid
_LATEST_COLUMNS = ("outcome", "sentence", "scenario", "duration_ms", "config__model_name")


@dataclass(frozen=True, slots=True)
class RunGrid:
    """Grid of a run with its latest trials.

    Attributes:
        latest: the trials that ended last, newest first, at most MAX_LATEST_TRIALS.
    """

    matrix: Matrix
    grid: Grid
    latest: tuple[Trial, ...]


def get_run_grid(source: RunCells, params: QueryParams) -> RunGrid:
    """Return the grid of a run with at most two queries.

    The grid has the columns RUN_COLUMNS unless the URL chooses others. `RunGrid.matrix` keeps the columns of the URL,
    so that links to the matrix do not name RUN_COLUMNS.

    Args:
        source: the run with its cells.
        params: URL parameters of the matrix; its scope, name part, prompt version, filter and open row are ignored, and
            the view "bars" stands for the default view.
    """
    url_query = MatrixQuery.from_query(params)
    view = "" if url_query.view == "bars" else url_query.view
    run_id = source.run.pk
    query = replace(url_query, scope="runs", runs=(run_id,), cell="", view=view, q="", prompt="", chosen=NO_FILTER)
    matrix = build_matrix(query, source.version, source.build_sum_rows)
    ended = Trial.objects.filter(run_id=run_id, finished_at__isnull=False).order_by("-finished_at")
    latest = ended.select_related("config").only(*_LATEST_COLUMNS)[:MAX_LATEST_TRIALS]
    layout = replace(query.layout, grid=query.layout.grid or RUN_COLUMNS)
    run_matrix = replace(matrix, query=replace(matrix.query, layout=layout))
    return RunGrid(matrix, get_grid_with_causes(run_matrix, page_rows=MAX_GRID_ROWS), tuple(latest))
