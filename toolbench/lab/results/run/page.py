"""Run page: progress, pace, figures by configuration, and failure groups.

Browsers request it every few seconds while a run is running.
"""

from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from toolbench.engine.policy.optional_parameters import describe_difference
from toolbench.evals.statistics.stopping import StoppingRule
from toolbench.lab.endpoints.setup_pages import ProviderRow, get_providers
from toolbench.lab.metrics.pools import MORE_TRIALS_PURPOSE
from toolbench.lab.metrics.scenario_groups import group_cells_by_config
from toolbench.lab.metrics.tally import Tally, tally_cells
from toolbench.lab.metrics.version_cache import VersionCache
from toolbench.lab.models import Cell, RefusedParameter, Run, RunConfig, Trial
from toolbench.lab.results.matrix.rows import build_config_sort_key
from toolbench.lab.results.run.cells import RunCells, read_run_cells
from toolbench.lab.results.run.config_rows import ConfigRow, build_config_row
from toolbench.lab.results.run.delays import RunDelay, list_delays
from toolbench.lab.results.run.times import Pace, get_pace, measure_active_seconds
from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.lab.runs.repeat import RESEND_PURPOSE
from toolbench.lab.sql import load_statement

MAX_FAILURE_GROUPS = 20
MAX_PAGE_ROWS = 20
MIN_COMMON_FAILURES = 10
DEFAULT_TARGET_PERCENT = 90
_active_seconds: VersionCache[float | None] = VersionCache(max_entries=64)
_LIST_FAILURE_GROUPS = load_statement("results/run/failure_groups")


@dataclass(frozen=True, slots=True)
class RefusedParameterRow:
    """Request parameter that a model's endpoint refused.

    Attributes:
        why: message of the endpoint.
        effect: sentence about the effect of leaving the parameter out; may be empty.
    """

    model_name: str
    name: str
    why: str
    effect: str


@dataclass(frozen=True, slots=True)
class RunFailureGroup:
    """Failure group of the run: trials with the same signature and outcome.

    They failed or had an infrastructure error.

    Attributes:
        trials_query: query string that selects the trials of the group.
        mark: outcome of the trials.
        models: names of the models of the trials, in the order of the run.
        sentence: sentence of the first trial, the one with the lowest primary key.
        has_one_sentence: whether all trials of the group have this sentence.
        failure_class: failure class of the first trial.
        scenario: scenario of the trials; "" for several, as after an internal error.
        count: number of the trials.
        first_seen: earliest time at which one of the trials ended.
        exemplar: primary key of the first trial.
    """

    trials_query: str
    mark: str
    models: tuple[str, ...]
    sentence: str
    has_one_sentence: bool
    failure_class: str
    scenario: str
    count: int
    first_seen: datetime | None
    exemplar: int


@dataclass(frozen=True, slots=True)
class RunPage:
    """Content of the run page.

    Attributes:
        live: whether figures can still change: the run is running or cancelling, a trial is still running, or a cell
            has to be recomputed.
        total_seconds: seconds from the launch to the end; None before the end.
        active_seconds: seconds during which at least one trial was running; None before the end, or if no trial ran.
        tally: counts of all cells.
        source: the run with its configurations and cells.
        config_rows: figures by configuration and group of scenarios, of one page or of the whole run, in the order of
            the run's matrix.
        groups: the largest failure groups, at most MAX_FAILURE_GROUPS.
        retryable: number of trials with infrastructure errors that can be queued again.
        resumable: number of cancelled trials of an ended run that can be queued again.
        stopping_rule: rule of sequential stopping in words; "" for a fixed number of trials.
        target: target of the rates in percent.
        uncomputed_cells: cells whose sums could not be computed.
        delays: reasons why the run is slow.
        blocking_providers: providers that are not available, if trials are queued and none is running.
        refused_parameters: request parameters that endpoints refused.
        page: number of the page of `config_rows`, from 1.
        pages: number of these pages.
    """

    source: RunCells
    live: bool
    total_seconds: float | None
    active_seconds: float | None
    tally: Tally
    pace: Pace
    config_rows: tuple[ConfigRow, ...]
    groups: tuple[RunFailureGroup, ...]
    retryable: int
    resumable: int
    stopping_rule: str
    target: float
    uncomputed_cells: tuple[Cell, ...]
    delays: tuple[RunDelay, ...]
    blocking_providers: tuple[ProviderRow, ...]
    refused_parameters: tuple[RefusedParameterRow, ...] = ()
    page: int = 1
    pages: int = 1

    @property
    def run(self) -> Run:
        """Return the run."""
        return self.source.run

    @property
    def decision_run_id(self) -> int:
        """Return the primary key of the run whose decision counts the trials of this run.

        The result is the repeated run if this run adds trials that its decision lacked; otherwise this run.
        """
        repeated_id = self.run.repeat_of_id if self.run.purpose == MORE_TRIALS_PURPOSE else None
        return self.run.pk if repeated_id is None else repeated_id

    @property
    def relation_to_original(self) -> str:
        """Return the verb between this run and the run of `repeat_of`, such as "repeats"."""
        if self.run.purpose == MORE_TRIALS_PURPOSE:
            return "adds trials to"
        return "repeats a trial of" if self.run.purpose == RESEND_PURPOSE else "repeats"

    @property
    def has_controls(self) -> bool:
        """Return whether the run has control scenarios, which totals of the matrix leave out."""
        return any(cell.control for cell in self.source.cells)

    @property
    def common_failure(self) -> RunFailureGroup | None:
        """Return the largest failure group if all failures probably come from the endpoint, not from a model.

        This is assumed if at least MIN_COMMON_FAILURES trials have ended, all of them failed, they belong to several
        models, and all groups have the same failure class. Infrastructure errors count as failures.
        """
        if len({name for group in self.groups for name in group.models}) < 2:
            return None
        ended, failed = self.tally.ended_uncancelled, self.tally.failed + self.tally.infra
        has_one_class = len({group.failure_class for group in self.groups}) == 1
        return self.groups[0] if has_one_class and MIN_COMMON_FAILURES <= ended == failed else None

    @property
    def trials_query(self) -> str:
        """Return the query string that selects the trials of the run."""
        return f"run={self.run.pk}"

    @property
    def progress_label(self) -> str:
        """Return the progress in words, for screen readers."""
        finished = f"{self.tally.ended_uncancelled:,} of {self.tally.trial_count:,} trials finished"
        return f"{finished}, {self.tally.cancelled:,} cancelled" if self.tally.cancelled else finished

    @property
    def is_limit_reached(self) -> bool:
        """Return whether the request limit or the token limit is reached."""
        run = self.run
        limits = ((run.request_cap, run.requests_reserved), (run.token_cap, run.tokens_used))
        return any(limit is not None and used >= limit for limit, used in limits)

    @property
    def configs(self) -> tuple[RunConfig, ...]:
        """Return all configurations."""
        return self.source.configs

    @property
    def scenarios(self) -> tuple[str, ...]:
        """Return the scenarios of the first configuration."""
        return self.source.scenarios

    @property
    def auto_method_configs(self) -> tuple[RunConfig, ...]:
        """Return the configurations with method auto, whether their method is chosen or still awaits a probe."""
        return tuple(config for config in self.configs if config.routing or config.awaits_probe)


def get_run_page(run_id: int, page: int | None = None) -> RunPage:
    """Return the run page with at most ten queries; none reads frozen settings.

    Two more queries are sent while trials are queued and none is running, if any provider has a budget.

    Args:
        run_id: primary key of the run.
        page: number of the page of configurations, from 1; a greater number than that of the last page stands for the
            last page. None for all configurations.

    Raises:
        Run.DoesNotExist: the run does not exist or was deleted.
    """
    source = read_run_cells(run_id)
    run, configs, cells = source.run, source.configs, source.cells
    run_tally = tally_cells(cells)
    rule = StoppingRule.from_json(run.until) if run.until else None
    target = rule.target if rule and rule.rule == "threshold" else DEFAULT_TARGET_PERCENT
    retryable_configs = {config.pk for config in configs if config.provider_id is not None}
    config_groups = group_cells_by_config(sorted(configs, key=build_config_sort_key), cells)
    pages = 1 if page is None else max(1, -(-len(config_groups) // MAX_PAGE_ROWS))
    page = max(1, min(page or 1, pages))
    shown_groups = config_groups if pages == 1 else config_groups[(page - 1) * MAX_PAGE_ROWS : page * MAX_PAGE_ROWS]
    return RunPage(
        source=source,
        live=run.state in (Run.State.RUNNING, Run.State.CANCELLING) or any(cell.is_changing for cell in cells),
        total_seconds=(run.finished_at - run.created_at).total_seconds() if run.finished_at else None,
        active_seconds=_get_active_seconds(source) if run.finished_at else None,
        tally=run_tally,
        pace=get_pace(run, run_tally),
        config_rows=tuple(
            build_config_row(config, group, [(cell, source.times[cell.pk]) for cell in group_cells], target)
            for config, group, group_cells in shown_groups
        ),
        groups=_list_failure_groups(source),
        retryable=sum(cell.infra for cell in cells if cell.config_id in retryable_configs),
        resumable=_count_resumable(run, run_tally),
        stopping_rule=str(rule) if rule else "",
        target=target,
        uncomputed_cells=tuple(_attach_config(cell, configs) for cell in cells if cell.compute_error),
        delays=list_delays(run, configs, run_tally),
        blocking_providers=_find_blocking_providers(run, configs, cells, run_tally),
        refused_parameters=_list_refused_parameters(run) if source.has_refusals else (),
        page=page,
        pages=pages,
    )


def _get_active_seconds(source: RunCells) -> float | None:
    """Return the active seconds of a run, with one query, or with none if they are cached."""
    return _active_seconds.get(source.version, source.run.pk, lambda: measure_active_seconds(source.run))


def _count_resumable(run: Run, run_tally: Tally) -> int:
    """Return the number of trials that `resume_cancelled_run` would queue.

    The function sends one query if the run has ended, was not imported and has cancelled trials; otherwise none.
    """
    if run.state not in Run.ENDED or run.imported or not run_tally.cancelled:
        return 0
    cancelled = run.trials.filter(outcome=Trial.Outcome.CANCELLED, added_by_hand=False, provider__isnull=False)
    return cancelled.count()


def _list_refused_parameters(run: Run) -> tuple[RefusedParameterRow, ...]:
    rows = RefusedParameter.objects.filter(run=run).order_by("model_name", "pk")
    return tuple(RefusedParameterRow(row.model_name, row.name, row.why, describe_difference(row.name)) for row in rows)


def _attach_config(cell: Cell, configs: tuple[RunConfig, ...]) -> Cell:
    cell.config = next(config for config in configs if config.pk == cell.config_id)
    return cell


def _find_blocking_providers(
    run: Run, configs: tuple[RunConfig, ...], cells: tuple[Cell, ...], run_tally: Tally
) -> tuple[ProviderRow, ...]:
    """Return the unavailable providers of queued trials.

    The result is () if a trial is running, or if the run is not running. Queries are sent only by `get_providers`, and
    only if trials are queued.
    """
    if run.state != Run.State.RUNNING or run_tally.running:
        return ()
    queued_configs = {cell.config_id for cell in cells if cell.queued}
    provider_ids = {config.provider_id for config in configs if config.pk in queued_configs}
    rows = get_providers() if provider_ids else ()
    return tuple(row for row in rows if row.provider.pk in provider_ids and row.state != "pass")


def _list_failure_groups(source: RunCells) -> tuple[RunFailureGroup, ...]:
    """Return the largest failure groups, with one query."""
    run_id = source.run.pk
    with connection.cursor() as cursor:
        cursor.execute(_LIST_FAILURE_GROUPS, [run_id, MAX_FAILURE_GROUPS])
        rows = cursor.fetchall()
    return tuple(
        RunFailureGroup(
            TrialFilter(run=run_id, signature=signature, outcome=mark).query(),
            mark,
            source.list_models(config_ids),
            *values,
        )
        for signature, mark, *values, config_ids in rows
    )
