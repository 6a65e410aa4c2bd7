"""The demo run of the small local model: six methods for the same task, launched once, shown on the home page."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Count, Min, Q
from django.utils import timezone

from toolbench.lab.metrics.cells import ANSWERED
from toolbench.lab.metrics.rate import Rate, build_rate
from toolbench.lab.metrics.tally import Tally, tally_cells
from toolbench.lab.models import Cell, Model, Provider, Run, ServiceAddress, Trial
from toolbench.lab.planning.run_request import ConfigChoice, RunRequest
from toolbench.lab.runs.launch import launch

OWN_SERVICE, TOOLS_SERVICE = "local-own", "local-tools"
WEATHER_PURPOSE, INTENT_PURPOSE = "first_page", "first_page_intent"
TRIALS_PER_CELL = 10
INTENT_MAX_TOKENS = 192  # its reasoning field is longer than a city
EXAMPLE_SET = "weather-1"
INTENT_START_GRACE = timedelta(minutes=1)
LAUNCH_LOCK_ID = 0x10CA1  # of the launch: one at a time
METHOD_TEXTS = {
    ("native", OWN_SERVICE, False): ("native tools, the model's own template", "as it comes"),
    ("native", TOOLS_SERVICE, False): ("native tools, our tool template", "the prompt names the tools"),
    ("native", TOOLS_SERVICE, True): ("native tools + examples", "few-shot calls in the history"),
    ("text_json", TOOLS_SERVICE, True): ("text JSON + examples", "no tool interface at all"),
    ("constrained", TOOLS_SERVICE, False): ("constrained", "only a valid call can be written"),
    ("constrained", TOOLS_SERVICE, True): ("constrained + examples", "both at once"),
}


@dataclass(frozen=True, slots=True)
class DemoMethod:
    """One method of the demo.

    Attributes:
        valid: share of answered trials with a call that matches the schema.
        correct: success given an answer.
    """

    cell_id: int
    label: str
    hint: str
    valid: Rate
    correct: Rate
    tally: Tally
    main_failure: str
    dropped_trial: int | None  # a trial whose rendered prompt shows no tool


@dataclass(frozen=True, slots=True)
class _CellFacts:
    """Facts of one cell: answered trials, trials with valid calls, and a trial whose prompt shows no tool."""

    answered: int = 0
    valid: int = 0
    dropped: int | None = None


@dataclass(frozen=True, slots=True)
class LocalDemo:
    """State and results of the demo.

    Attributes:
        state: off (no local model here), loading, starting, live or finished.
        cancelled: cancelled trials among those done.
        left_low, left_high: range of the remaining seconds; None before two trials have finished.
    """

    state: str
    run: Run | None = None
    intent_run: Run | None = None
    model: str = ""
    methods: tuple[DemoMethod, ...] = ()
    intent: tuple[DemoMethod, ...] = ()
    done: int = 0
    total: int = 0
    cancelled: int = 0  # of those done
    left_low: float | None = None
    left_high: float | None = None

    @property
    def finished(self) -> int:
        """Trials that have finished."""
        return self.done - self.cancelled

    @property
    def is_polling(self) -> bool:
        """Whether the page has to ask again."""
        return self.state in {"loading", "starting", "live"}


def launch_next_demo_run() -> Run | None:
    """Launch the run of six methods and, after it, the intent run, each once; deleted runs count.

    Several processes may call it at once.

    Returns:
        None when nothing is to be launched or a local server is not ready.
    """
    if ServiceAddress.objects.filter(name__in=[OWN_SERVICE, TOOLS_SERVICE]).count() < 2:
        return None
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LAUNCH_LOCK_ID])
        due = _find_next_purpose()
        if due is None:
            return None
        own_model, tools = (
            Model.objects.filter(provider__service=name, retired=False).first() for name in (OWN_SERVICE, TOOLS_SERVICE)
        )
        if own_model is None or tools is None:
            return None
        return launch(
            _build_weather_request(own_model.pk, tools.pk)
            if due == WEATHER_PURPOSE
            else _build_intent_request(tools.pk)
        )


def _find_next_purpose() -> str | None:
    """Return the purpose of the next run. Runs follow each other, since two at once would slow each other down."""
    launched = dict(
        Run.objects.filter(purpose__in=[WEATHER_PURPOSE, INTENT_PURPOSE]).values_list("purpose", "finished_at")
    )
    if WEATHER_PURPOSE not in launched:
        return WEATHER_PURPOSE
    return INTENT_PURPOSE if launched[WEATHER_PURPOSE] and INTENT_PURPOSE not in launched else None


def _build_weather_request(own_model_id: int, tools: int) -> RunRequest:
    model = {OWN_SERVICE: own_model_id, TOOLS_SERVICE: tools}
    ways = sorted(METHOD_TEXTS, key=lambda method: method[0] != "constrained")
    configs = tuple(
        ConfigChoice(model=model[service], method=method, examples=EXAMPLE_SET if with_examples else "")
        for method, service, with_examples in ways
    )
    title = "One tiny model, six ways of asking"
    return RunRequest(
        title=title, configs=configs, scenarios=("weather",), trials=TRIALS_PER_CELL, purpose=WEATHER_PURPOSE
    )


def _build_intent_request(tools: int) -> RunRequest:
    return RunRequest(
        title="One tiny model, one intent in three",
        configs=(ConfigChoice(model=tools, method="constrained"),),
        scenarios=("classify_intent",),
        trials=TRIALS_PER_CELL,
        overrides={"llm_options_defaults": {"max_tokens": INTENT_MAX_TOKENS}},
        purpose=INTENT_PURPOSE,
    )


def get_local_demo() -> LocalDemo:
    """Return the state of the demo, with five queries while there is a run and three before."""
    runs = list(Run.objects.filter(purpose__in=[WEATHER_PURPOSE, INTENT_PURPOSE], deleted_at=None).order_by("-id")[:10])
    run = next((run for run in runs if run.purpose == WEATHER_PURPOSE), None)
    if run is None:
        return LocalDemo(state=_find_state_before_run())
    intent_run = next((run for run in runs if run.purpose == INTENT_PURPOSE), None)
    ways = _list_methods([found.pk for found in (run, intent_run) if found])
    weather = ways.get(run.pk, ())
    intent = ways.get(intent_run.pk, ()) if intent_run else ()
    methods = (*weather, *intent)
    done, total = sum(method.tally.done for method in methods), sum(method.tally.total for method in methods)
    low, high = _estimate_seconds_left(run.created_at, done, total)
    return LocalDemo(
        state="live" if done < total or _is_between_runs(run, intent_run) else "finished",
        run=run,
        intent_run=intent_run,
        model=_find_model_name(run),
        methods=weather,
        intent=intent,
        done=done,
        total=total,
        cancelled=sum(method.tally.cancelled for method in methods),
        left_low=low,
        left_high=high,
    )


def _is_between_runs(run: Run, intent_run: Run | None) -> bool:
    """Return whether the run is about to end or the intent run to begin, so that the page must keep asking."""
    ended = run.finished_at
    return intent_run is None and (ended is None or timezone.now() - ended < INTENT_START_GRACE)


def _find_state_before_run() -> str:
    if not settings.LOCAL_MODEL or not Provider.objects.filter(service__in=[OWN_SERVICE, TOOLS_SERVICE]).exists():
        return "off"
    ready = ServiceAddress.objects.filter(name__in=[OWN_SERVICE, TOOLS_SERVICE]).count()
    return "starting" if ready == 2 else "loading"


def _find_model_name(run: Run) -> str:
    first = run.configs.first()
    return first.model_name if first else ""


def _list_methods(run_ids: list[int]) -> dict[int, tuple[DemoMethod, ...]]:
    found = Cell.objects.filter(run_id__in=run_ids).select_related("config").defer("config__layers")
    cells = list(found.order_by("position"))  # before their trials: a box with every cell done looks no more
    facts = _get_cell_facts(run_ids)
    causes = _get_main_failures(run_ids)
    ways: dict[int, list[DemoMethod]] = {}
    for cell in cells:
        ways.setdefault(cell.run_id, []).append(
            _build_method(cell, facts.get(cell.pk, _CellFacts()), causes.get(cell.pk, ""))
        )
    order = [label for label, _ in METHOD_TEXTS.values()]
    return {
        run_id: tuple(sorted(found, key=lambda method: order.index(method.label))) for run_id, found in ways.items()
    }


def _build_method(cell: Cell, facts: _CellFacts, cause: str) -> DemoMethod:
    key = (cell.config.method, cell.config.service, bool(cell.config.examples))
    label, hint = METHOD_TEXTS.get(key, METHOD_TEXTS["constrained", TOOLS_SERVICE, False])
    counted = tally_cells([cell])
    return DemoMethod(
        cell_id=cell.pk,
        label=label,
        hint=hint,
        valid=build_rate(facts.valid, facts.answered),
        correct=counted.answered_success(),
        tally=counted,
        main_failure=cause,
        dropped_trial=facts.dropped,
    )


def _get_cell_facts(run_ids: list[int]) -> dict[int, _CellFacts]:
    found = Trial.objects.filter(run_id__in=run_ids).order_by().values("cell_id")
    counted = found.annotate(
        answered=Count("pk", filter=ANSWERED),
        valid=Count("pk", filter=ANSWERED & Q(valid_calls__gt=0)),
        dropped=Min("pk", filter=ANSWERED & Q(tools_dropped=True)),
    )
    return {row["cell_id"]: _CellFacts(row["answered"], row["valid"], row["dropped"]) for row in counted}


def _get_main_failures(run_ids: list[int]) -> dict[int, str]:
    """Return the most frequent failure sentence of each cell."""
    failed = Trial.objects.filter(run_id__in=run_ids, outcome=Trial.Outcome.FAIL)
    grouped = failed.order_by().values("cell_id", "sentence").annotate(times=Count("pk")).order_by("times")
    return {row["cell_id"]: f"{row['sentence']} ({row['times']})" for row in grouped}


def _estimate_seconds_left(since: datetime, done: int, total: int) -> tuple[float | None, float | None]:
    """Estimate the range of remaining seconds from the rate so far."""
    if done < 2 or done >= total:
        return None, None
    left = (total - done) * (timezone.now() - since).total_seconds() / done
    spread = min(0.9, 1 / done**0.5)
    return left * (1 - spread), left * (1 + spread)
