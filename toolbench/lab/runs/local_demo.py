"""The small local model's own run: six ways of asking for the same weather, launched once, read by the first page."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Count, Min, Q
from django.utils import timezone

from toolbench.lab.metrics.cells import ANSWERED
from toolbench.lab.metrics.rate import Rate, rate_of
from toolbench.lab.metrics.tally import Tally, tally
from toolbench.lab.models import Cell, Model, Provider, Run, ServiceAddress, Trial
from toolbench.lab.planning.run_request import ConfigChoice, RunRequest
from toolbench.lab.runs.launch import launch

OWN, TOOLS = "local-own", "local-tools"
PURPOSE, INTENT_PURPOSE = "first_page", "first_page_intent"
TRIALS = 10
INTENT_TOKENS = 192  # its reasoning field is longer than a city
EXAMPLES = "weather-1"
SOON = timedelta(minutes=1)
LOCK = 0x10CA1  # of the launch: one at a time
WORDS = {
    ("native", OWN, False): ("native tools, the model's own template", "as it comes"),
    ("native", TOOLS, False): ("native tools, our tool template", "the prompt names the tools"),
    ("native", TOOLS, True): ("native tools + examples", "few-shot calls in the history"),
    ("text_json", TOOLS, True): ("text JSON + examples", "no tool interface at all"),
    ("constrained", TOOLS, False): ("constrained", "only a valid call can be written"),
    ("constrained", TOOLS, True): ("constrained + examples", "both at once"),
}


@dataclass(frozen=True, slots=True)
class Way:
    """One way of asking. `valid` counts trials whose calls fit the schema, `correct` those that did the task."""

    cell_id: int
    label: str
    hint: str
    valid: Rate
    correct: Rate
    tally: Tally
    happened: str
    dropped_trial: int | None  # a trial whose rendered prompt shows no tool


@dataclass(frozen=True, slots=True)
class _Facts:
    """Of one cell: trials with an answer, those whose calls fit the schema, one whose prompt shows no tool."""

    answered: int = 0
    valid: int = 0
    dropped: int | None = None


@dataclass(frozen=True, slots=True)
class LocalBox:
    """`state`: off (no local model here), loading, starting, live, finished. Seconds left are a range, None before
    two trials have finished."""

    state: str
    run: Run | None = None
    intent_run: Run | None = None
    model: str = ""
    ways: tuple[Way, ...] = ()
    intent: tuple[Way, ...] = ()
    done: int = 0
    total: int = 0
    cancelled: int = 0  # of those done
    left_low: float | None = None
    left_high: float | None = None

    @property
    def finished(self) -> int:
        return self.done - self.cancelled

    @property
    def polls(self) -> bool:
        return self.state in {"loading", "starting", "live"}


def ensure_local_run() -> Run | None:
    """Launches the run of six ways, and when that is over the intent run, each once (deleted ones count). None when
    there is nothing to launch or a local server is not ready. Safe to be called by several processes at once."""
    if ServiceAddress.objects.filter(name__in=[OWN, TOOLS]).count() < 2:
        return None
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        due = _due()
        if due is None:
            return None
        own, tools = (Model.objects.filter(provider__service=name, retired=False).first() for name in (OWN, TOOLS))
        if own is None or tools is None:
            return None
        return launch(_six_ways(own.pk, tools.pk) if due == PURPOSE else _intent(tools.pk))


def _due() -> str | None:
    """The purpose of the run that comes next. One after the other: both at once would slow each other down."""
    launched = dict(Run.objects.filter(purpose__in=[PURPOSE, INTENT_PURPOSE]).values_list("purpose", "finished_at"))
    if PURPOSE not in launched:
        return PURPOSE
    return INTENT_PURPOSE if launched[PURPOSE] and INTENT_PURPOSE not in launched else None


def _six_ways(own: int, tools: int) -> RunRequest:
    model = {OWN: own, TOOLS: tools}
    ways = sorted(WORDS, key=lambda way: way[0] != "constrained")
    configs = tuple(
        ConfigChoice(model=model[service], method=method, examples=EXAMPLES if with_examples else "")
        for method, service, with_examples in ways
    )
    title = "One tiny model, six ways of asking"
    return RunRequest(title=title, configs=configs, scenarios=("weather",), trials=TRIALS, purpose=PURPOSE)


def _intent(tools: int) -> RunRequest:
    return RunRequest(
        title="One tiny model, one intent in three",
        configs=(ConfigChoice(model=tools, method="constrained"),),
        scenarios=("classify_intent",),
        trials=TRIALS,
        overrides={"llm_options_defaults": {"max_tokens": INTENT_TOKENS}},
        purpose=INTENT_PURPOSE,
    )


def get_local_box() -> LocalBox:
    """Five queries while there is a run, three before."""
    runs = list(Run.objects.filter(purpose__in=[PURPOSE, INTENT_PURPOSE], deleted_at=None).order_by("-id")[:10])
    run = next((run for run in runs if run.purpose == PURPOSE), None)
    if run is None:
        return LocalBox(state=_state_before())
    intent_run = next((run for run in runs if run.purpose == INTENT_PURPOSE), None)
    ways = _ways([found.pk for found in (run, intent_run) if found])
    weather = ways.get(run.pk, ())
    intent = ways.get(intent_run.pk, ()) if intent_run else ()
    every = (*weather, *intent)
    done, total = sum(way.tally.done for way in every), sum(way.tally.total for way in every)
    low, high = _left(run.created_at, done, total)
    return LocalBox(
        state="live" if done < total or _goes_on(run, intent_run) else "finished",
        run=run,
        intent_run=intent_run,
        model=_model_name(run),
        ways=weather,
        intent=intent,
        done=done,
        total=total,
        cancelled=sum(way.tally.cancelled for way in every),
        left_low=low,
        left_high=high,
    )


def _goes_on(run: Run, intent_run: Run | None) -> bool:
    """Whether the run is about to end or the intent run to begin: the box would miss it if it stopped looking now."""
    ended = run.finished_at
    return intent_run is None and (ended is None or timezone.now() - ended < SOON)


def _state_before() -> str:
    if not settings.LOCAL_MODEL or not Provider.objects.filter(service__in=[OWN, TOOLS]).exists():
        return "off"
    ready = ServiceAddress.objects.filter(name__in=[OWN, TOOLS]).count()
    return "starting" if ready == 2 else "loading"


def _model_name(run: Run) -> str:
    first = run.configs.first()
    return first.model_name if first else ""


def _ways(run_ids: list[int]) -> dict[int, tuple[Way, ...]]:
    found = Cell.objects.filter(run_id__in=run_ids).select_related("config").defer("config__layers")
    cells = list(found.order_by("position"))  # before their trials: a box with every cell done looks no more
    facts = _facts(run_ids)
    causes = _causes(run_ids)
    ways: dict[int, list[Way]] = {}
    for cell in cells:
        ways.setdefault(cell.run_id, []).append(_way(cell, facts.get(cell.pk, _Facts()), causes.get(cell.pk, "")))
    order = [label for label, _ in WORDS.values()]
    return {run_id: tuple(sorted(found, key=lambda way: order.index(way.label))) for run_id, found in ways.items()}


def _way(cell: Cell, facts: _Facts, cause: str) -> Way:
    way = (cell.config.method, cell.config.service, bool(cell.config.examples))
    label, hint = WORDS.get(way, WORDS["constrained", TOOLS, False])
    counted = tally([cell])
    return Way(
        cell_id=cell.pk,
        label=label,
        hint=hint,
        valid=rate_of(facts.valid, facts.answered),
        correct=counted.given_an_answer(),
        tally=counted,
        happened=cause,
        dropped_trial=facts.dropped,
    )


def _facts(run_ids: list[int]) -> dict[int, _Facts]:
    found = Trial.objects.filter(run_id__in=run_ids).order_by().values("cell_id")
    counted = found.annotate(
        answered=Count("pk", filter=ANSWERED),
        valid=Count("pk", filter=ANSWERED & Q(valid_calls__gt=0)),
        dropped=Min("pk", filter=ANSWERED & Q(tools_dropped=True)),
    )
    return {row["cell_id"]: _Facts(row["answered"], row["valid"], row["dropped"]) for row in counted}


def _causes(run_ids: list[int]) -> dict[int, str]:
    """The most frequent failure sentence of each cell."""
    failed = Trial.objects.filter(run_id__in=run_ids, outcome=Trial.Outcome.FAIL)
    grouped = failed.order_by().values("cell_id", "sentence").annotate(times=Count("pk")).order_by("times")
    return {row["cell_id"]: f"{row['sentence']} ({row['times']})" for row in grouped}


def _left(since: datetime, done: int, total: int) -> tuple[float | None, float | None]:
    """Seconds left at the pace so far, give or take what so few trials cannot tell."""
    if done < 2 or done >= total:
        return None, None
    left = (total - done) * (timezone.now() - since).total_seconds() / done
    spread = min(0.9, 1 / done**0.5)
    return left * (1 - spread), left * (1 + spread)
