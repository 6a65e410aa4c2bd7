"""The addresses that are measured: every page with results, with each of its filters and sorts."""

from urllib.parse import urlencode

from toolbench.evals.decisions.assessments import DECISION_GOALS
from toolbench.lab.metrics.definitions import METRICS
from toolbench.lab.models import Run, RunConfig, Trial
from toolbench.lab.results.trial_list.filter import OUTCOMES, SORTS

_PLAIN = tuple(
    f"/{name}/".replace("//", "/")
    for name in (
        *("", "runs", "demo", "imported", "metrics", "providers", "models", "compatibility", "scenarios", "cases"),
        *("presets", "profiles", "policy", "formats", "health", "runs/new", "decide/records"),
    )
)
_MATRIX_METRICS = ("given", "delivered", "p95", "schema", "cost")


def list_addresses() -> list[str]:
    """Return the addresses, plain pages first."""
    run = Run.objects.filter(simulated=False).order_by("-trial_count", "pk")[0]
    small = Run.objects.filter(simulated=False, trial_count__gt=50).order_by("trial_count", "pk")[0]
    return [
        *_PLAIN,
        *_list_run_addresses(run, small),
        *_list_trial_addresses(run),
        *_list_result_addresses(run, small),
    ]


def _list_run_addresses(run: Run, small: Run) -> list[str]:
    pages = [f"/runs/{chosen.pk}/{page}" for chosen in (run, small) for page in ("", "metrics/", "judgements/")]
    return [*pages, "/runs/?page=10"]


def _list_trial_addresses(run: Run) -> list[str]:
    """Return each filter over all runs and over the largest one, each sort, and single trials."""
    stored = Trial.objects.filter(run=run, steps__body__isnull=False).select_related("config").order_by("pk").distinct()
    failed, passed = stored.filter(outcome="fail")[0], stored.filter(outcome="pass")[0]
    filters: list[dict[str, object]] = [
        *(dict[str, object](outcome=outcome) for outcome in OUTCOMES),
        *(dict[str, object](sort=sort) for sort in SORTS),
        *(dict[str, object](sort=sort, outcome="fail") for sort in SORTS),
        {"model": failed.config.model_name},
        {"model": failed.config.model_name, "scenario": failed.scenario, "outcome": "fail"},
        {"scenario": failed.scenario},
        {"strategy": failed.config.strategy},
        {"provider": failed.config.provider_name},
        {"failure_class": failed.failure_class},
        {"signature": failed.signature},
        {"cause": failed.cause},
        {"cluster": failed.cause_signature},
        {"seen": failed.cause},
        {"search": "draft"},
        {"search": "no such words anywhere"},
        {"config": failed.config_id},
        {"cell": failed.cell_id},
    ]
    everywhere = [f"/trials/?{urlencode(values)}" for values in ({}, *filters)]
    in_run = [f"/trials/?{urlencode({'run': run.pk, **values})}" for values in ({}, *filters)]
    single = [f"/trials/{pk}/" for pk in (failed.pk, passed.pk)]
    return [*everywhere, *in_run, *single, f"/trials/{failed.pk}/?{urlencode({'outcome': 'fail', 'run': run.pk})}"]


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
        "/matrix/?q=qwen",
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
