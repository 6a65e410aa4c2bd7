"""The addresses that are measured: every page and every list of the API, with each filter and sort."""

from urllib.parse import urlencode

from benchmarks.million.api_addresses import list_api_addresses
from toolbench.evals.decisions.assessments import DECISION_GOALS
from toolbench.lab.metrics.definitions import METRICS
from toolbench.lab.models import GatewayTrace, Run, RunConfig, Trial
from toolbench.lab.results.latency.query import TIME_METRICS
from toolbench.lab.results.matrix.query import VIEWS
from toolbench.lab.results.trial_list.filter import OUTCOMES
from toolbench.lab.results.trial_list.sort_columns import SORTS

_PLAIN = tuple(
    f"/{name}/".replace("//", "/")
    for name in (
        *("", "runs", "demo", "imported", "metrics", "providers", "models", "compatibility", "scenarios", "cases"),
        *("presets", "profiles", "policy", "formats", "help", "health", "runs/new", "decide/records"),
        *("trend", "schedules", "playground", "gateway", "gateway/traces", "cases/drafts"),
        *("failures/codes", "settings/people", "settings/audit", "settings/links", "settings/tokens"),
        "settings/retention",
    )
)
_MATRIX_METRICS = ("given", "delivered", "p95", "schema", "cost")
_SEARCHES = ("qwen", "draft", "no such words anywhere", "source:gateway alias-1")
_TRIAL_QUERIES = (
    *("ms>20000", "tokens>500", "turns>3", "retries>0", "outcome:fail ms>5000", "model:qwen outcome:fail"),
    *("started>30d", "tool:create_draft", '"draft"', "human:any", "seen:context_overflow"),
)


def list_addresses() -> list[str]:
    """Return the addresses, plain pages first."""
    run = Run.objects.filter(simulated=False).order_by("-trial_count", "pk")[0]
    small = Run.objects.filter(simulated=False, trial_count__gt=50).order_by("trial_count", "pk")[0]
    stored = Trial.objects.filter(run=run, steps__body__isnull=False).select_related("config").order_by("pk").distinct()
    failed, passed = stored.filter(outcome="fail")[0], stored.filter(outcome="pass")[0]
    filters = _list_trial_filters(failed)
    return [
        *_PLAIN,
        *_list_single_addresses(failed),
        *_list_run_addresses(run, small),
        *_list_trial_addresses(run, filters),
        *(f"/trials/{pk}/" for pk in (failed.pk, passed.pk)),
        f"/trials/{failed.pk}/?{urlencode({'outcome': 'fail', 'run': run.pk})}",
        *_list_result_addresses(run, small),
        *list_api_addresses(run, small, filters),
    ]


def _list_single_addresses(trial: Trial) -> list[str]:
    """Return the pages of one model, provider and scenario, lists of traces, the newest trace, and searches."""
    model, provider = trial.config.model_id, trial.config.provider_id
    pages = [f"/models/{model}/", f"/providers/{provider}/", f"/scenarios/{trial.scenario}/", f"/policy/?model={model}"]
    traces = [
        f"/gateway/traces/{part}"
        for trace in GatewayTrace.objects.all()[:1]
        for part in (f"?alias={trace.alias}", f"?before={trace.pk}", f"{trace.pk}/")
    ]
    return [*pages, *traces, *(f"/search/?{urlencode({'q': text})}" for text in _SEARCHES)]


def _list_run_addresses(run: Run, small: Run) -> list[str]:
    names = ("", "metrics/", "judgements/", "repeat/", "repeat/?kind=aa")
    pages = [f"/runs/{chosen.pk}/{name}" for chosen in (run, small) for name in names]
    return [*pages, "/runs/?page=10", f"/schedules/new/?run={run.pk}"]


def _list_trial_filters(failed: Trial) -> list[dict[str, object]]:
    """Return filters that select the trials that are like a failed one, one filter for each field."""
    return [
        *(dict[str, object](outcome=outcome) for outcome in OUTCOMES),
        {"model": failed.config.model_name},
        {"model": failed.config.model_name, "scenario": failed.scenario, "outcome": "fail"},
        {"scenario": failed.scenario},
        {"strategy": failed.config.strategy},
        {"profile": failed.config.profile},
        {"provider": failed.config.provider_name},
        {"failure_class": failed.failure_class},
        {"signature": failed.signature},
        {"cause": failed.cause},
        {"cluster": failed.cause_signature},
        {"seen": failed.cause},
        {"had": "retry"},
        {"had": "retry", "model": failed.config.model_name},
        {"search": "draft"},
        {"search": "no such words anywhere"},
        *(dict[str, object](search=text) for text in _TRIAL_QUERIES),
        {"alike": failed.config_id},
        {"config": failed.config_id},
        {"cell": failed.cell_id},
    ]


def _list_trial_addresses(run: Run, filters: list[dict[str, object]]) -> list[str]:
    """Return each filter and each sort over all runs and over the largest one, and each sort of failed trials."""
    sorts = [dict[str, object](sort=sort) for sort in SORTS]
    lists = [dict[str, object](), *filters, *sorts, *(values | {"outcome": "fail"} for values in sorts)]
    in_run = [dict[str, object](run=run.pk) | values for values in lists]
    further = [dict[str, object](page=200), dict[str, object](scope="all")]
    return [f"/trials/?{urlencode(values)}" for values in (*lists, *in_run, *further)]


def _list_result_addresses(run: Run, small: Run) -> list[str]:
    """Return matrix, failures, latency, compare and decide over all runs, the largest run and a small one."""
    first, second = RunConfig.objects.filter(run=run).order_by("position")[:2]
    metrics = [f"/matrix/?metric={name}" for name in METRICS if name in _MATRIX_METRICS]
    pages = [f"/{page}/{scope}" for page in ("matrix", "failures", "latency") for scope in ("", f"?run={run.pk}")]
    goals = [f"/decide/?want={goal}" for goal in DECISION_GOALS]
    compared = {"run": run.pk, "a_model": first.model_name, "b_model": second.model_name}
    return [
        *pages,
        *metrics,
        *(f"/matrix/?view={view}" for view in VIEWS if view),
        *(f"/latency/?run={run.pk}&metric={metric}" for metric in TIME_METRICS),
        "/latency/?by=scenario",
        "/matrix/?q=qwen",
        f"/matrix/?{urlencode({'model': first.model_name})}",
        f"/failures/?{urlencode({'model': first.model_name})}",
        f"/latency/?run={small.pk}",
        "/decide/",
        *goals,
        f"/decide/?run={run.pk}",
        f"/decide/?run={small.pk}",
        "/compare/",
        f"/compare/?run={run.pk}",
        f"/compare/?run={run.pk}&instances=all",
        f"/compare/?{urlencode(compared)}",
        f"/compare/?a_run={run.pk}&b_run={small.pk}",
    ]
