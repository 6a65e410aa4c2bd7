"""The run page: progress, pace, cells by configuration and grouped failures. The browser polls it."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Min

from toolbench.engine.policy.optional_parameters import describe_difference
from toolbench.evals.statistics.stopping import StoppingRule
from toolbench.lab.endpoints.setup_pages import ProviderRow, get_providers
from toolbench.lab.metrics.rate import Rate
from toolbench.lab.metrics.scenario_groups import group_cells_by_config
from toolbench.lab.metrics.tally import Tally, tally_cells
from toolbench.lab.metrics.times import Times, load_cell_times, merge_times
from toolbench.lab.models import Cell, Provider, RefusedParameter, Run, RunConfig, Trial
from toolbench.lab.results.run.times import Pace, get_pace, measure_active_seconds
from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.lab.runs.sequential_stopping import DECISION_TEXTS

MAX_FAILURE_GROUPS = 20
DEFAULT_TARGET_PERCENT = 90


@dataclass(frozen=True, slots=True)
class ScenarioRow:
    """One scenario of a configuration."""

    cell_id: int
    scenario: str
    control: bool
    tally: Tally
    answered: Rate
    decided: str  # what ended it, in words; "" where the number of trials was fixed
    times: Times

    @property
    def trials_query(self) -> str:
        """Return the query string that selects the trials of the cell."""
        return f"cell={self.cell_id}"


@dataclass(frozen=True, slots=True)
class ConfigRow:
    """One configuration on one group of scenarios.

    Attributes:
        group: empty if the run has only one group.
    """

    config: RunConfig
    group: str
    tally: Tally  # tool scenarios; of the controls where the run has nothing else
    control: Tally
    answered: Rate
    first: Rate | None  # at the first attempt; None where nothing passed otherwise
    delivered: Rate
    times: Times  # of the same scenarios as `tally`
    scenarios: tuple[ScenarioRow, ...]
    trials_query: str  # selects the trials of `tally` in the list of trials

    @property
    def local(self) -> bool:
        """Return whether the model shares this machine, so that its times take no part in decisions."""
        return self.config.provider_kind == Provider.Kind.LOCAL


@dataclass(frozen=True, slots=True)
class RefusedParameterRow:
    """A parameter that a model's endpoint refused, and what the run does not measure without it."""

    model_name: str
    name: str
    why: str
    differs: str


@dataclass(frozen=True, slots=True)
class RunFailureGroup:
    """Failures of the run with one signature and outcome.

    Attributes:
        trials_query: query string that selects the trials with this signature.
        exemplar: primary key of the first trial of the group.
    """

    trials_query: str
    sentence: str  # of the exemplar
    same_words: bool  # every trial of the group has this sentence
    failure_class: str
    scenario: str
    mark: str
    count: int
    first_seen: datetime | None
    exemplar: int


@dataclass(frozen=True, slots=True)
class RunPage:
    """Everything that the run page shows."""

    run: Run
    live: bool  # it goes on, or trials of a paused one are still in flight
    took: float | None  # seconds from launch to end, None before it
    ran: float | None  # seconds with a trial under way, None before the end
    tally: Tally
    pace: Pace
    lines: tuple[ConfigRow, ...]
    groups: tuple[RunFailureGroup, ...]
    retryable: int
    resumable: int  # cancelled planned trials of a run that has ended
    until: str  # the rule in words; "" for a fixed number of trials
    target: float  # percent, that rates are judged against: the run's own, else the usual one
    set_aside: tuple[Cell, ...]  # cells whose sums could not be computed
    blocking_providers: tuple[ProviderRow, ...]  # providers that cannot be asked now, while nothing goes on
    refused: tuple[RefusedParameterRow, ...] = ()

    @property
    def trials_query(self) -> str:
        """Return the query string that selects the trials of the run."""
        return f"run={self.run.pk}"

    @property
    def progress_label(self) -> str:
        """Return the progress in words, for screen readers."""
        finished = f"{self.tally.finished} of {self.tally.total} trials finished"
        return f"{finished}, {self.tally.cancelled} cancelled" if self.tally.cancelled else finished

    @property
    def is_limit_reached(self) -> bool:
        """Return whether the request limit or the token limit is used up."""
        caps = ((self.run.request_cap, self.run.requests_reserved), (self.run.token_cap, self.run.tokens_used))
        return any(cap is not None and used >= cap for cap, used in caps)

    @property
    def configs(self) -> tuple[RunConfig, ...]:
        """Return the configurations of the lines, each once."""
        return tuple({line.config.pk: line.config for line in self.lines}.values())

    @property
    def scenarios(self) -> tuple[str, ...]:
        """Return the scenarios of the first configuration."""
        first = [line for line in self.lines if line.config == self.lines[0].config]
        return tuple(scenario.scenario for line in first for scenario in line.scenarios)

    @property
    def auto_method_configs(self) -> tuple[RunConfig, ...]:
        """Return the configurations with an automatic method, chosen already or still waiting for a probe."""
        return tuple(config for config in self.configs if config.routing or config.awaits_probe)


def get_run_page(run_id: int) -> RunPage:
    """Return the run page with seven or eight queries; none reads frozen settings.

    Raises:
        Run.DoesNotExist: there is no such run.
    """
    run = Run.objects.select_related("owner").defer("request").get(pk=run_id, deleted_at=None)
    configs = tuple(run.configs.defer("layers", "options", "true_rates"))
    cells = tuple(run.cells.defer("upstreams"))
    whole = tally_cells(cells)
    times = load_cell_times(cells)
    until = StoppingRule.read(run.until) if run.until else None
    target = until.target if until and until.rule == "threshold" else DEFAULT_TARGET_PERCENT
    reachable = {config.pk for config in configs if config.provider_id is not None}
    return RunPage(
        run=run,
        live=run.state in (Run.State.RUNNING, Run.State.CANCELLING) or any(cell.is_changing for cell in cells),
        took=(run.finished_at - run.created_at).total_seconds() if run.finished_at else None,
        ran=measure_active_seconds(run) if run.finished_at else None,
        tally=whole,
        pace=get_pace(run, whole),
        lines=tuple(
            _build_config_row(config, group, [(cell, times[cell.pk]) for cell in group_cells], target)
            for config, group, group_cells in group_cells_by_config(configs, cells)
        ),
        groups=_list_failure_groups(run),
        retryable=sum(cell.infra for cell in cells if cell.config_id in reachable),
        resumable=_count_resumable(run, whole),
        until=str(until) if until else "",
        target=target,
        set_aside=tuple(_attach_config(cell, configs) for cell in cells if cell.compute_error),
        blocking_providers=_find_blocking_providers(run, configs, cells, whole),
        refused=_list_refused_parameters(run),
    )


def _count_resumable(run: Run, whole: Tally) -> int:
    """Return how many trials `resume_cancelled_run` would queue. One query if trials were cancelled, else none."""
    if run.state not in Run.ENDED or run.imported or not whole.cancelled:
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
    run: Run, configs: tuple[RunConfig, ...], cells: tuple[Cell, ...], whole: Tally
) -> tuple[ProviderRow, ...]:
    """Return the providers that block queued trials. Two queries if trials are queued and none is running."""
    if run.state != Run.State.RUNNING or whole.running:
        return ()
    waiting = {cell.config_id for cell in cells if cell.queued}
    provider_ids = {config.provider_id for config in configs if config.pk in waiting}
    lines = get_providers() if provider_ids else ()
    return tuple(line for line in lines if line.provider.pk in provider_ids and line.state != "pass")


def _build_config_row(config: RunConfig, group: str, cells: list[tuple[Cell, Times]], target: float) -> ConfigRow:
    control = tally_cells(cell for cell, _ in cells if cell.control)
    tools = tally_cells(cell for cell, _ in cells if not cell.control)
    main = tools if tools.cells else control
    counted = next((cell for cell, _ in cells if not cell.control), cells[0][0])
    return ConfigRow(
        config=config,
        group=group,
        tally=main,
        control=control,
        answered=main.answered_success(target),
        first=main.rate(main.first_attempt_passed, main.answered, target) if _has_reprompts(main) else None,
        delivered=main.delivered(target),
        times=merge_times(times for cell, times in cells if cell.control != bool(tools.cells)),
        scenarios=tuple(_build_scenario_row(cell, times, target) for cell, times in cells),
        trials_query=TrialFilter(run=config.run_id, config=config.pk, group=counted.scenario_group).query(),
    )


def _has_reprompts(counts: Tally) -> bool:
    return bool(counts.asked_again) or counts.first_attempt_passed != counts.passed


def _build_scenario_row(cell: Cell, times: Times, target: float) -> ScenarioRow:
    counts = tally_cells([cell])
    decided = "" if cell.error is None else DECISION_TEXTS.get(cell.decided, "open")
    return ScenarioRow(cell.pk, cell.scenario, cell.control, counts, counts.answered_success(target), decided, times)


def _list_failure_groups(run: Run) -> tuple[RunFailureGroup, ...]:
    """Return the largest failure groups, with one query for the groups and one for their exemplars."""
    bad = run.trials.filter(outcome__in=[Trial.Outcome.FAIL, Trial.Outcome.INFRA]).order_by()
    counted = bad.values("signature", "outcome").annotate(
        count=Count("pk"), first_seen=Min("finished_at"), exemplar=Min("pk"), wordings=Count("sentence", distinct=True)
    )
    rows = list(counted.order_by("-count", "signature")[:MAX_FAILURE_GROUPS])
    seen = Trial.objects.only("sentence", "failure_class", "scenario").in_bulk([row["exemplar"] for row in rows])
    return tuple(
        RunFailureGroup(
            trials_query=TrialFilter(run=run.pk, signature=row["signature"]).query(),
            sentence=seen[row["exemplar"]].sentence,
            same_words=row["wordings"] == 1,
            failure_class=seen[row["exemplar"]].failure_class,
            scenario=seen[row["exemplar"]].scenario,
            mark=row["outcome"],
            count=row["count"],
            first_seen=row["first_seen"],
            exemplar=row["exemplar"],
        )
        for row in rows
    )
