"""The local demo on the home page: two runs of the small local model, launched once each.

The first run tries one task in six configurations; the second classifies intents.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Count, Exists, Min, OuterRef, Q
from django.utils import timezone

from toolbench.lab.metrics.pool_version import find_pool_version
from toolbench.lab.metrics.rate import Rate, build_rate
from toolbench.lab.metrics.tally import Tally, tally_cells
from toolbench.lab.metrics.version_cache import VersionCache
from toolbench.lab.models import Cell, Model, Provider, Run, ServiceAddress, Trial
from toolbench.lab.models.trials import ANSWERED
from toolbench.lab.planning.run_request import ConfigChoice, RunRequest
from toolbench.lab.runs.launch import WEATHER_DEMO_PURPOSE, launch

# Local servers of one model: with the model's own chat template, and with Toolbench's.
OWN_SERVICE, TOOLS_SERVICE = "local-own", "local-tools"
INTENT_DEMO_PURPOSE = "first_page_intent"  # Run.purpose of the second run
DEMO_PURPOSES = (WEATHER_DEMO_PURPOSE, INTENT_DEMO_PURPOSE)
TRIALS_PER_CELL = 10
INTENT_MAX_TOKENS = 192  # the answer has a field for reasoning, so it is longer than a weather call
EXAMPLE_SET = "weather-1"
INTENT_START_GRACE = timedelta(minutes=1)  # after the end of the first run, time in which the intent run starts
LAUNCH_LOCK_ID = 0x10CA1  # key of the advisory lock that allows one launch at a time
# Label and hint of a configuration, by method, service and whether examples are sent.
CONFIG_TEXTS = {
    ("native", OWN_SERVICE, False): ("native tools, the model's own template", "without any workaround"),
    ("native", TOOLS_SERVICE, False): ("native tools, Toolbench's template", "the prompt names the tools"),
    ("native", TOOLS_SERVICE, True): ("native tools + examples", "few-shot calls in the history"),
    ("text_json", TOOLS_SERVICE, True): ("text JSON + examples", "without the tools field"),
    ("constrained", TOOLS_SERVICE, False): ("constrained", "the model can write only valid calls"),
    ("constrained", TOOLS_SERVICE, True): ("constrained + examples", "both together"),
}


@dataclass(frozen=True, slots=True)
class DemoResult:
    """Results of one cell of the demo.

    Attributes:
        hint: what distinguishes the configuration, in a few words.
        valid: share of answered trials with a call that matches the schema.
        correct: answered success.
        main_failure: the most frequent failure sentence with its count, such as "The city is wrong. (3)"; "" without a
            failure.
        tools_dropped_trial_id: the first trial whose rendered prompt contains no tool; None without one.
    """

    cell_id: int
    label: str
    hint: str
    valid: Rate
    correct: Rate
    tally: Tally
    main_failure: str
    tools_dropped_trial_id: int | None


@dataclass(frozen=True, slots=True)
class _CellCounts:
    """Counts of the trials of one cell.

    Attributes:
        answered: number of answered trials.
        valid: number of answered trials with a valid call.
        tools_dropped_trial_id: as in DemoResult.
    """

    answered: int = 0
    valid: int = 0
    tools_dropped_trial_id: int | None = None


@dataclass(frozen=True, slots=True)
class LocalDemo:
    """State and results of the demo.

    Attributes:
        state: "off" (no local model), "loading" (a local server is not ready), "starting" (both are ready, and no run
            was launched), "deleted" (both are ready, and the first run was deleted), "live" (trials are open, or the
            intent run is about to start) or "finished".
        run: the run of six configurations; None before its launch and if it was deleted.
        intent_run: the run that classifies intents; None before its launch and if it was deleted.
        model: name of the model.
        results: results of the first run, one for each configuration.
        intent: results of the intent run; empty without one.
        done: number of trials of both runs that have ended.
        total: number of trials of both runs.
        cancelled: number of cancelled trials of both runs.
        seconds_left_low: lower end of the range of the remaining seconds; None until two trials have ended, and once
            all have ended.
        seconds_left_high: upper end of that range.
    """

    state: str
    run: Run | None = None
    intent_run: Run | None = None
    model: str = ""
    results: tuple[DemoResult, ...] = ()
    intent: tuple[DemoResult, ...] = ()
    done: int = 0
    total: int = 0
    cancelled: int = 0
    seconds_left_low: float | None = None
    seconds_left_high: float | None = None

    @property
    def finished(self) -> int:
        """Number of trials that have ended and were not cancelled."""
        return self.done - self.cancelled

    @property
    def is_polling(self) -> bool:
        """Whether the page has to request the state again."""
        return self.state in {"loading", "starting", "live"}


def launch_next_demo_run() -> Run | None:
    """Launch the run of six configurations or, after its end, the intent run; each is launched once.

    A deleted run counts as launched. Several processes may call it at the same time.

    Returns:
        The launched run; None if there is nothing to launch, or if a local server is not ready or has no model.
    """
    if ServiceAddress.objects.filter(name__in=[OWN_SERVICE, TOOLS_SERVICE]).count() < 2:
        return None
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LAUNCH_LOCK_ID])
        purpose = _find_next_purpose()
        if purpose is None:
            return None
        own_model, tools_model = (
            Model.objects.filter(provider__service=name, retired=False).first() for name in (OWN_SERVICE, TOOLS_SERVICE)
        )
        if own_model is None or tools_model is None:
            return None
        return launch(
            _build_weather_request(own_model.pk, tools_model.pk)
            if purpose == WEATHER_DEMO_PURPOSE
            else _build_intent_request(tools_model.pk)
        )


def _find_next_purpose() -> str | None:
    """Return the purpose of the run to launch next; None for none.

    The intent run starts after the end of the first run, since two runs at once would slow each other down.
    """
    finished_at = dict(Run.objects.filter(purpose__in=DEMO_PURPOSES).values_list("purpose", "finished_at"))
    if WEATHER_DEMO_PURPOSE not in finished_at:
        return WEATHER_DEMO_PURPOSE
    return INTENT_DEMO_PURPOSE if finished_at[WEATHER_DEMO_PURPOSE] and INTENT_DEMO_PURPOSE not in finished_at else None


def _build_weather_request(own_model_id: int, tools_model_id: int) -> RunRequest:
    model_ids = {OWN_SERVICE: own_model_id, TOOLS_SERVICE: tools_model_id}
    keys = sorted(CONFIG_TEXTS, key=lambda key: key[0] != "constrained")
    configs = tuple(
        ConfigChoice(model=model_ids[service], method=method, examples=EXAMPLE_SET if with_examples else "")
        for method, service, with_examples in keys
    )
    title = "One small model, six configurations"
    return RunRequest(
        title=title, configs=configs, scenarios=("weather",), trials=TRIALS_PER_CELL, purpose=WEATHER_DEMO_PURPOSE
    )


def _build_intent_request(tools_model_id: int) -> RunRequest:
    return RunRequest(
        title="One small model, one of three intents",
        configs=(ConfigChoice(model=tools_model_id, method="constrained"),),
        scenarios=("classify_intent",),
        trials=TRIALS_PER_CELL,
        overrides={"llm_options_defaults": {"max_tokens": INTENT_MAX_TOKENS}},
        purpose=INTENT_DEMO_PURPOSE,
    )


# (results by run id, name of the model) by the ids of the runs.
_cached_results: VersionCache[tuple[dict[int, tuple[DemoResult, ...]], str]] = VersionCache(max_entries=4)


def get_local_demo() -> LocalDemo:
    """Return the state and results of the demo.

    It makes up to six queries if a run was launched, but two if its results are cached. Without a run, it makes up to
    three.
    """
    runs = list(Run.objects.filter(purpose__in=DEMO_PURPOSES, deleted_at=None).order_by("-id")[:10])
    run = next((run for run in runs if run.purpose == WEATHER_DEMO_PURPOSE), None)
    if run is None:
        return LocalDemo(state=_find_state_without_run())
    intent_run = next((run for run in runs if run.purpose == INTENT_DEMO_PURPOSE), None)
    run_ids = tuple(shown.pk for shown in (run, intent_run) if shown)
    version = find_pool_version(Q(pk__in=run_ids)) if run.pooled else None
    results_by_run, model_name = _cached_results.get(
        version, run_ids, lambda: (_get_results(run_ids), _find_model_name(run))
    )
    weather = results_by_run.get(run.pk, ())
    intent = results_by_run.get(intent_run.pk, ()) if intent_run else ()
    tallies = [result.tally for result in (*weather, *intent)]
    done, total = sum(tally.ended for tally in tallies), sum(tally.trial_count for tally in tallies)
    low, high = _estimate_seconds_left(run.created_at, done, total)
    return LocalDemo(
        state="live" if done < total or _is_between_runs(run, intent_run) else "finished",
        run=run,
        intent_run=intent_run,
        model=model_name,
        results=weather,
        intent=intent,
        done=done,
        total=total,
        cancelled=sum(tally.cancelled for tally in tallies),
        seconds_left_low=low,
        seconds_left_high=high,
    )


def _is_between_runs(run: Run, intent_run: Run | None) -> bool:
    """Return whether the intent run may soon start, so that the page has to keep polling.

    The intent run may start until INTENT_START_GRACE has passed since the end of the first run.
    """
    finished_at = run.finished_at
    return intent_run is None and (finished_at is None or timezone.now() - finished_at < INTENT_START_GRACE)


def _find_state_without_run() -> str:
    if not settings.LOCAL_MODEL:
        return "off"
    is_ready = Exists(ServiceAddress.objects.filter(name=OuterRef("service")))
    providers = Provider.objects.filter(service__in=[OWN_SERVICE, TOOLS_SERVICE])
    ready = list(providers.values_list(is_ready, flat=True))
    if not ready:
        return "off"
    if sum(ready) < 2:
        return "loading"
    return "deleted" if Run.objects.filter(purpose=WEATHER_DEMO_PURPOSE).exists() else "starting"


def _find_model_name(run: Run) -> str:
    first = run.configs.first()
    return first.model_name if first else ""


def _get_results(run_ids: Sequence[int]) -> dict[int, tuple[DemoResult, ...]]:
    """Return the results of each run by its id, in the order of CONFIG_TEXTS."""
    rows = Cell.objects.filter(run_id__in=run_ids).select_related("config").defer("config__layers")
    # The cells are read before their trials. In the other order, the page could show an old count of valid calls with
    # cells that are all done, and then stop polling.
    cells = list(rows.order_by("position"))
    counts = _count_cell_trials(run_ids)
    failures = _get_main_failures(run_ids)
    results_by_run: dict[int, list[DemoResult]] = {}
    for cell in cells:
        results_by_run.setdefault(cell.run_id, []).append(
            _build_result(cell, counts.get(cell.pk, _CellCounts()), failures.get(cell.pk, ""))
        )
    labels = [label for label, _ in CONFIG_TEXTS.values()]
    return {
        run_id: tuple(sorted(results, key=lambda result: labels.index(result.label)))
        for run_id, results in results_by_run.items()
    }


def _build_result(cell: Cell, counts: _CellCounts, main_failure: str) -> DemoResult:
    key = (cell.config.method, cell.config.service, bool(cell.config.examples))
    label, hint = CONFIG_TEXTS.get(key, CONFIG_TEXTS["constrained", TOOLS_SERVICE, False])
    tally = tally_cells([cell])
    return DemoResult(
        cell_id=cell.pk,
        label=label,
        hint=hint,
        valid=build_rate(counts.valid, counts.answered),
        correct=tally.compute_answered_success(),
        tally=tally,
        main_failure=main_failure,
        tools_dropped_trial_id=counts.tools_dropped_trial_id,
    )


def _count_cell_trials(run_ids: Sequence[int]) -> dict[int, _CellCounts]:
    trials = Trial.objects.filter(run_id__in=run_ids).order_by().values("cell_id")
    rows = trials.annotate(
        answered=Count("pk", filter=ANSWERED),
        valid=Count("pk", filter=ANSWERED & Q(valid_calls__gt=0)),
        dropped=Min("pk", filter=ANSWERED & Q(tools_dropped=True)),
    )
    return {row["cell_id"]: _CellCounts(row["answered"], row["valid"], row["dropped"]) for row in rows}


def _get_main_failures(run_ids: Sequence[int]) -> dict[int, str]:
    """Return the most frequent failure sentence with its count, by cell id.

    Cells without failures have no entry.
    """
    failed = Trial.objects.filter(run_id__in=run_ids, outcome=Trial.Outcome.FAIL)
    grouped = failed.order_by().values("cell_id", "sentence").annotate(times=Count("pk"))
    by_frequency = grouped.order_by("times", "sentence")  # of a cell's rows, the last one stays in the dictionary
    return {row["cell_id"]: f"{row['sentence']} ({row['times']})" for row in by_frequency}


def _estimate_seconds_left(started_at: datetime, done: int, total: int) -> tuple[float | None, float | None]:
    """Estimate the range of remaining seconds from the pace so far.

    The range is (None, None) until two trials have ended, and once all have ended.
    """
    if done < 2 or done >= total:
        return None, None
    seconds_left = (total - done) * (timezone.now() - started_at).total_seconds() / done
    spread = min(0.9, 1 / done**0.5)
    return seconds_left * (1 - spread), seconds_left * (1 + spread)
