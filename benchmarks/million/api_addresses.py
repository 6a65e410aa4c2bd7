"""The lists of the HTTP API that are measured, with their filters and with later pages of the list of trials."""

from collections.abc import Sequence
from urllib.parse import urlencode

from toolbench.evals.decisions.assessments import DECISION_GOALS
from toolbench.lab.models import Run, RunConfig, Trial
from toolbench.lab.results.latency.query import TIME_METRICS
from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.lab.results.trial_list.keyset import get_trials_after
from toolbench.lab.results.trial_list.sort_columns import SORTS

_PREFIX = "/api/v1"
_PLAIN = (
    *("metrics", "cases", "scenarios", "profiles", "presets", "providers", "models", "schedules", "alert-rules"),
    *("alerts", "share-links", "decide/records"),
)
_LATER_SORTS = ("failed", "order", "slow", "newest", "model")
MANY_TRIALS = 200


def list_api_addresses(run: Run, small: Run, filters: Sequence[dict[str, object]]) -> list[str]:
    """Return the addresses of the API.

    Args:
        run: the largest run.
        small: a small run.
        filters: parameters of the list of trials that select one value each.
    """
    return [
        *(f"{_PREFIX}/{name}" for name in _PLAIN),
        *_list_runs(run, small),
        *_list_trials(run, filters),
        *_list_results(run, small),
    ]


def _list_runs(run: Run, small: Run) -> list[str]:
    kinds = [f"{_PREFIX}/runs?kind={kind}" for kind in ("all", "own", "simulated", "imported")]
    runs = Run.objects.filter(simulated=False).order_by("pk")
    later = runs[runs.count() // 2]
    single = [f"{_PREFIX}/runs/{pk}{part}" for pk in (run.pk, small.pk) for part in ("", "/settings", "/judgements")]
    times = [f"{_PREFIX}/runs/{run.pk}/latency?metric={metric}" for metric in TIME_METRICS]
    return [*kinds, f"{_PREFIX}/runs?cursor={later.pk}", *single, *times]


def _list_trials(run: Run, filters: Sequence[dict[str, object]]) -> list[str]:
    """Return each filter and each order, both over all runs and over one, later pages, and a page of many trials."""
    sorts: list[dict[str, object]] = [{"sort": sort} for sort in SORTS]
    later: list[dict[str, object]] = [
        {"sort": sort, "cursor": _find_cursor(TrialFilter(sort=sort))} for sort in _LATER_SORTS
    ]
    in_run: list[dict[str, object]] = [{"run": run.pk, **values} for values in (*sorts, *filters)]
    plain: list[dict[str, object]] = [{}, {"limit": MANY_TRIALS}, {"demo": 1}]
    failed: list[dict[str, object]] = [{"outcome": "fail", "sort": sort} for sort in _LATER_SORTS]
    chosen = (*plain, *sorts, *filters, *later, *failed, *in_run)
    lists = [f"{_PREFIX}/trials?{urlencode(values)}" for values in chosen]
    trial = Trial.objects.filter(run=run, steps__body__isnull=False).order_by("pk")[0]
    return [*lists, f"{_PREFIX}/trials/{trial.pk}"]


def _find_cursor(trial_filter: TrialFilter) -> str:
    """Return the cursor of the second page."""
    return get_trials_after(trial_filter, None, MANY_TRIALS).cursor or ""


def _list_results(run: Run, small: Run) -> list[str]:
    """Return matrix, failures, compare and decide over all runs, the largest run and a small one."""
    first, second = RunConfig.objects.filter(run=run).order_by("position")[:2]
    models = {"run": run.pk, "a_model": first.model_name, "b_model": second.model_name}
    pages = [
        f"{_PREFIX}/{page}{scope}"
        for page in ("matrix", "failures", "decide")
        for scope in ("", f"?run={run.pk}", f"?run={small.pk}")
    ]
    filtered = [f"{_PREFIX}/{page}?{urlencode({'model': first.model_name})}" for page in ("matrix", "failures")]
    return [
        *pages,
        *filtered,
        f"{_PREFIX}/matrix?q=qwen",
        f"{_PREFIX}/matrix?scope=published",
        *(f"{_PREFIX}/decide?want={goal}" for goal in DECISION_GOALS),
        f"{_PREFIX}/compare?{urlencode(models)}",
        f"{_PREFIX}/compare?a_run={run.pk}&b_run={small.pk}",
    ]
