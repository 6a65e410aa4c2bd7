"""What the run page shows: progress, pace, cells by configuration, failures grouped, the frozen configuration."""

from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db.models import Count, Min
from django.utils import timezone

from toolbench.engine.errors import PolicyError
from toolbench.engine.layering import ENGINE
from toolbench.engine.policy import resolve
from toolbench.evals import scenarios
from toolbench.lab.models import Cell, Run, RunConfig, Trial
from toolbench.lab.rates import Rate
from toolbench.lab.tallies import Tally, tally

PACE_WINDOW = timedelta(minutes=3)
GROUPS = 20
TARGET = 90


@dataclass(frozen=True, slots=True)
class Pace:
    """`per_minute` over the last minutes, None before two trials have finished; seconds left, with a range."""

    per_minute: float | None = None
    left: float | None = None
    left_low: float | None = None
    left_high: float | None = None


@dataclass(frozen=True, slots=True)
class ScenarioLine:
    cell_id: int
    scenario: str
    control: bool
    tally: Tally
    answered: Rate


@dataclass(frozen=True, slots=True)
class ConfigLine:
    config: RunConfig
    tally: Tally  # tool scenarios; of the controls where the run has nothing else
    control: Tally
    answered: Rate
    delivered: Rate
    scenarios: tuple[ScenarioLine, ...]


@dataclass(frozen=True, slots=True)
class FailureGroup:
    signature: str
    sentence: str
    failure_class: str
    scenario: str
    mark: str
    count: int
    first_seen: datetime | None
    exemplar: int


@dataclass(frozen=True, slots=True)
class FrozenKey:
    key: str
    value: object
    origin: str


@dataclass(frozen=True, slots=True)
class Frozen:
    """A configuration's keys: those that some layer chose, and those at the engine's default."""

    chosen: tuple[FrozenKey, ...] = ()
    defaults: tuple[FrozenKey, ...] = ()


@dataclass(frozen=True, slots=True)
class RunPage:
    run: Run
    live: bool
    tally: Tally
    pace: Pace
    lines: tuple[ConfigLine, ...]
    groups: tuple[FailureGroup, ...]
    retryable: int
    shown: RunConfig | None
    shown_scenario: str
    frozen: Frozen


@dataclass(frozen=True, slots=True)
class RunLine:
    run: Run
    models: tuple[str, ...]
    tally: Tally
    answered: Rate
    delivered: Rate


def get_runs(*, simulated: bool, limit: int = 100) -> tuple[RunLine, ...]:
    """The newest runs of one kind, with their sums over all cells. Three queries."""
    found = Run.objects.filter(deleted_at=None, simulated=simulated).defer("request")
    runs = tuple(found.prefetch_related("cells", "configs")[:limit])
    return tuple(_run_line(run) for run in runs)


def _run_line(run: Run) -> RunLine:
    cells = run.cells.all()
    tools = tally(cell for cell in cells if not cell.control)
    models = tuple(dict.fromkeys(config.model_name for config in run.configs.all()))
    return RunLine(run, models, tally(cells), tools.given_an_answer(), tools.delivered())


def get_run_page(run_id: int, *, config_id: int | None = None, scenario: str = "") -> RunPage:
    """Raises Run.DoesNotExist for an unknown run. `config_id` and `scenario` choose the frozen configuration shown."""
    run = Run.objects.select_related("owner").get(pk=run_id, deleted_at=None)
    configs = tuple(run.configs.all())
    cells = tuple(run.cells.all())
    whole = tally(cells)
    shown = next((config for config in configs if config.pk == config_id), configs[0] if configs else None)
    return RunPage(
        run=run,
        live=run.state in (Run.State.RUNNING, Run.State.CANCELLING),
        tally=whole,
        pace=_pace(run, whole),
        lines=_lines(configs, cells),
        groups=_groups(run),
        retryable=whole.infra,
        shown=shown,
        shown_scenario=scenario,
        frozen=frozen_keys(shown, scenario) if shown else Frozen(),
    )


def _lines(configs: tuple[RunConfig, ...], cells: tuple[Cell, ...]) -> tuple[ConfigLine, ...]:
    by_config: dict[int, list[Cell]] = defaultdict(list)
    for cell in cells:
        by_config[cell.config_id].append(cell)
    return tuple(_line(config, by_config[config.pk]) for config in configs)


def _line(config: RunConfig, cells: list[Cell]) -> ConfigLine:
    control = tally(cell for cell in cells if cell.control)
    tools = tally(cell for cell in cells if not cell.control)
    main = tools if tools.cells else control
    return ConfigLine(
        config=config,
        tally=main,
        control=control,
        answered=main.given_an_answer(TARGET),
        delivered=main.delivered(TARGET),
        scenarios=tuple(_scenario_line(cell) for cell in cells),
    )


def _scenario_line(cell: Cell) -> ScenarioLine:
    counts = tally([cell])
    return ScenarioLine(cell.pk, cell.scenario, cell.control, counts, counts.given_an_answer(TARGET))


def _pace(run: Run, whole: Tally) -> Pace:
    """Rate of finishing in the last minutes. The time left assumes that it holds; the range, that it is off by two
    standard errors of a Poisson count."""
    since = timezone.now() - PACE_WINDOW
    recent = run.trials.filter(finished_at__gte=since, execution__gt=0)
    found = recent.aggregate(count=Count("pk"), first=Min("started_at"))
    count, waiting = found["count"], whole.queued + whole.running
    if count < 2 or not found["first"]:
        return Pace()
    seconds = max((timezone.now() - max(found["first"], since)).total_seconds(), 0.001)
    spread = 2 * count**0.5
    fast, slow = (count + spread) / seconds, max(count - spread, 0.5) / seconds
    pace = Pace(per_minute=60 * count / seconds)
    if not waiting:
        return pace
    return replace(pace, left=waiting * seconds / count, left_low=waiting / fast, left_high=waiting / slow)


def _groups(run: Run) -> tuple[FailureGroup, ...]:
    bad = run.trials.filter(outcome__in=[Trial.Outcome.FAIL, Trial.Outcome.INFRA]).order_by()
    columns = ("signature", "failure_class", "scenario", "outcome")
    counted = bad.values(*columns).annotate(
        count=Count("pk"), first_seen=Min("finished_at"), exemplar=Min("pk"), sentence=Min("sentence")
    )
    return tuple(
        FailureGroup(
            signature=row["signature"],
            sentence=row["sentence"],
            failure_class=row["failure_class"],
            scenario=row["scenario"],
            mark=row["outcome"],
            count=row["count"],
            first_seen=row["first_seen"],
            exemplar=row["exemplar"],
        )
        for row in counted.order_by("-count", "signature")[:GROUPS]
    )


def frozen_keys(config: RunConfig, scenario: str = "") -> Frozen:
    """Every key, its value and the layer it comes from; with a scenario, its layer on top. Layers frozen by a version
    that knew other keys are shown as they stand."""
    layers = [(name, patch) for name, patch in config.layers]
    if found := next((one for one in scenarios.all() if one.slug == scenario), None):
        layers.append((f"scenario {found.slug}", found.draw(0, kind="parity").layer))
    try:
        resolved = resolve(layers)
    except PolicyError:
        return Frozen(tuple(FrozenKey(key, value, name) for name, patch in layers for key, value in patch.items()))
    keys = [FrozenKey(key, _value(resolved.policy, key), origin) for key, origin in sorted(resolved.origins.items())]
    chosen = tuple(key for key in keys if key.origin != ENGINE)
    return Frozen(chosen, tuple(key for key in keys if key.origin == ENGINE))


def _value(policy: object, key: str) -> object:
    """The value at an origin's key such as `request_overrides.max_tokens` or `response_transforms[0]`."""
    value: object = policy
    for part in key.replace("[", ".[").split("."):
        if part.startswith("[") and isinstance(value, list | tuple):
            value = value[int(part[1:-1])]
        elif isinstance(value, dict):
            value = value.get(part)
        else:
            value = getattr(value, part, None)
    return value
