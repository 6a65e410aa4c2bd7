"""Summaries of a report: a row for each configuration, and sums by scenario and strategy."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from toolbench.engine.policy.settings import Policy
from toolbench.engine.types import JsonObject
from toolbench.evals.published import CONTROL_SCENARIO
from toolbench.evals.record_counts import TAG_TRANSFORM
from toolbench.evals.statistics import compute_nearest_rank_percentile
from toolbench.lab.credentials.provider_secrets import list_provider_secrets
from toolbench.lab.interchange.report.labels import TAG_FALLBACK, ConfigLabel
from toolbench.lab.interchange.report.rates import build_cell_tallies, explain_not_pooled, find_in_only_group
from toolbench.lab.interchange.report.trial import is_tag_fallback_on
from toolbench.lab.metrics.scenario_groups import group_cells
from toolbench.lab.metrics.tally import tally_cells
from toolbench.lab.models import Cell, Run, RunConfig
from toolbench.providers.masking.url_keys import mask_address

REPORT_VERSION = 2  # of the keys under `toolbench`; version 1 had no quantiles with bounds and no version number
MAX_FAILURE_SAMPLES = 3  # of one configuration
BEST_EFFORT_PROFILE = "best_effort"
STRATEGY_MATRIX = {"baseline", "production"}  # the strategies that the case study compares
_LANGUAGE_KEYS = (
    "language_ok_runs",
    "language_ok_rate",
    "language_drift_runs",
    "language_drift_rate",
    "language_unknown_runs",
    "language_unknown_rate",
)
_TIME_KEYS = ("ms_p50", "ms_p95", "tool_ms_p50", "tool_ms_p95")
# Null if there are several groups of scenarios, since groups are never pooled.
_UNPOOLED_KEYS = ("ok_rate", "tool_ok_rate", *_TIME_KEYS)


@dataclass(frozen=True, slots=True)
class ConfigReport:
    """Report of one configuration.

    Attributes:
        config: the configuration.
        label: names of the configuration in the report.
        groups: result of `build_groups_json`.
        policy: policy of the configuration, without the layer of a scenario; None if the engine no longer accepts the
            layers.
        rows: summary rows of the trials that passed, failed or had an infrastructure error.
    """

    config: RunConfig
    label: ConfigLabel
    groups: JsonObject
    policy: Policy | None
    rows: Sequence[JsonObject]

    @property
    def tool_rows(self) -> list[JsonObject]:
        """Rows of tool scenarios."""
        return [row for row in self.rows if not row["toolbench"]["control"]]

    @property
    def control_rows(self) -> list[JsonObject]:
        """Rows of the case study's control scenario. Rows of other controls are neither here nor in `tool_rows`."""
        return [row for row in self.rows if row["scenario"] == CONTROL_SCENARIO]


def build_model_row(report: ConfigReport, scenarios: Sequence[str]) -> JsonObject:
    """Return the summary of a configuration by the rules of the case study.

    `ok` of a trial is the result of `has_passed`. Percentiles are nearest-rank over all trials, including failures. If
    there are several groups of scenarios, rates and percentiles are null, except for those of the control scenario;
    each group has them under `toolbench.groups`.

    Args:
        report: the configuration.
        scenarios: all scenarios of the run.
    """
    null_fields = dict.fromkeys(_UNPOOLED_KEYS) if len(report.groups) > 1 else {}
    return {
        "model": report.label.label,
        "model_base": report.config.model_name,
        "strategy": report.label.strategy,
        "fallback_profile": report.label.fallback_profile,
        "sampling_profile": report.config.profile,
        "language_policy": None,
        "language_enabled": None,
        "content_tag_tool_call_fallback": is_tag_fallback_on(report.policy),
        **_summarise_rows(report.rows, ""),
        **dict.fromkeys(_LANGUAGE_KEYS),
        **_summarise_rows(report.tool_rows, "tool_"),
        **_summarise_rows(report.control_rows, "control_"),
        **null_fields,
        "scenarios": list(scenarios),
        "run_results": list(report.rows),
        "failure_samples": [row for row in report.rows if not row["ok"]][:MAX_FAILURE_SAMPLES],
        "toolbench": _build_toolbench_fields(report),
    }


def _summarise_rows(rows: Sequence[JsonObject], prefix: str) -> JsonObject:
    """Return number, passes, pass rate and percentiles in ms of the trials; each key begins with the prefix."""
    times = [row["elapsed_ms"] for row in rows]
    passed = sum(row["ok"] for row in rows)
    return {
        f"{prefix}runs": len(rows),
        f"{prefix}ok": passed,
        f"{prefix}ok_rate": passed / len(rows) if rows else None,
        f"{prefix}ms_p50": compute_nearest_rank_percentile(times, 50) if times else None,
        f"{prefix}ms_p95": compute_nearest_rank_percentile(times, 95) if times else None,
    }


def _compute_percentiles(report: ConfigReport, group: JsonObject) -> JsonObject:
    """Return the case study's percentiles over the trials of one group."""
    rows = [row for row in report.rows if row["scenario"] in group["scenarios"]]
    tools = [row for row in rows if not row["toolbench"]["control"]]
    figures = _summarise_rows(rows, "") | _summarise_rows(tools, "tool_")
    return {name: figures[name] for name in _TIME_KEYS}


def _build_toolbench_fields(report: ConfigReport) -> JsonObject:
    config = report.config
    return {
        "provider": config.provider_name,
        "provider_kind": config.provider_kind,
        "method": config.method,
        "examples": config.examples,
        "stream": config.stream,
        "policy_hash": config.policy_hash,
        "true_rates": config.true_rates or None,
        "rates": find_in_only_group(report.groups, "rates"),
        "metrics": find_in_only_group(report.groups, "metrics"),
        "groups": {
            name: group | {"percentiles": _compute_percentiles(report, group)} for name, group in report.groups.items()
        },
        "not_pooled": explain_not_pooled(report.groups),
        "failure_classes": _count_failure_classes(report.rows),
    }


def _count_failure_classes(rows: Iterable[JsonObject]) -> JsonObject:
    count_by_class = Counter(row["toolbench"]["failure_class"] for row in rows)
    return {name: count for name, count in count_by_class.most_common() if name}


def sum_by_scenario(rows: Iterable[JsonObject]) -> JsonObject:
    """Return counts of trials, passes and errors, as `{scenario: {runs, ok, errors: {category: count}}}`."""
    sums_by_scenario: JsonObject = {}
    for row in rows:
        sums = sums_by_scenario.setdefault(row["scenario"], {"runs": 0, "ok": 0, "errors": {}})
        sums["runs"] += 1
        sums["ok"] += bool(row["ok"])
        if not row["ok"]:
            category = row["error_category"] or "unknown"
            sums["errors"][category] = sums["errors"].get(category, 0) + 1
    return sums_by_scenario


def sum_by_scenario_and_strategy(rows: Sequence[JsonObject]) -> JsonObject:
    """Return the result of `sum_by_scenario` for each strategy, by strategy."""
    strategies = dict.fromkeys(row["strategy"] for row in rows)
    return {name: sum_by_scenario(row for row in rows if row["strategy"] == name) for name in strategies}


def build_run_mark(run: Run) -> JsonObject:
    """Return the fields that every summary file has: the run, whether it is simulated, and the report version."""
    return {"run": run.pk, "simulated": run.simulated, "version": REPORT_VERSION}


def build_summary(
    run: Run, reports: Sequence[ConfigReport], cells: Sequence[Cell], output_dir: str | None
) -> JsonObject:
    """Return the content of `summary.json`.

    A filter is given as the values that it selected, separated by commas. A field is null if the run does not store it,
    or if it has no meaning in Toolbench.

    Args:
        run: the run.
        reports: reports of the run's configurations.
        cells: cells of the run.
        output_dir: folder of the report's files; None if there is no folder.
    """
    scenarios = list(dict.fromkeys(cell.scenario for cell in cells))
    return {
        "ts": run.created_at.isoformat(timespec="seconds").replace("+00:00", "Z"),
        **_build_address(reports),
        "http_adapter": None,
        **dict.fromkeys(("language_policy_filter", "language_policy_matrix", "language_policy_strict")),
        "language_policies": None,
        "client_timeout": None,
        "client_open_timeout": run.connect_seconds,
        "client_read_timeout": run.read_seconds,
        **_build_settings(run, reports),
        **_build_selection(run, reports),
        "jobs": run.jobs,
        "trials_per_model": run.trials_per_cell,
        "scenarios": scenarios,
        "output_dir": output_dir,
        "models": [build_model_row(report, scenarios) for report in reports],
        "toolbench": _build_run_fields(run, reports, cells),
    }


def _build_address(reports: Sequence[ConfigReport]) -> JsonObject:
    """Return the base URL and the API prefix of the provider, with secrets masked.

    Both are null if there is not exactly one provider, or if it was deleted or has no base URL.
    """
    providers = {report.config.provider for report in reports}
    provider = providers.pop() if len(providers) == 1 else None
    if provider is None or not provider.base_url:
        return {"base_url": None, "api_prefix": None}
    parts = urlsplit(provider.base_url)
    base = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    provider_secrets = list_provider_secrets(provider)
    return {
        "base_url": mask_address(base, provider_secrets),
        "api_prefix": mask_address(provider.api_prefix, provider_secrets),
    }


def _build_settings(run: Run, reports: Sequence[ConfigReport]) -> JsonObject:
    policies = [report.policy for report in reports if report.policy]
    overrides = run.request.get("overrides") or {}
    return {
        "fix_empty_final": _find_shared(policy.fix_empty_final for policy in policies),
        "tool_use_mode": run.request.get("tool_use_mode"),
        "tool_failure_policy": run.request.get("tool_failure_policy"),
        "tool_calling_fallback_retry_count": _find_shared(policy.fallback_retry_count for policy in policies),
        "tool_allowlist": run.request.get("tool_allowlist") or None,
        "request_overrides": overrides.get("request_overrides") or {},
        "llm_options_defaults_overrides": overrides.get("llm_options_defaults") or {},
        "content_tag_tool_call_fallback_global_override": TAG_TRANSFORM in (overrides.get("response_transforms") or ()),
    }


def _build_selection(run: Run, reports: Sequence[ConfigReport]) -> JsonObject:
    models = list(dict.fromkeys(report.config.model_name for report in reports))
    strategies = list(dict.fromkeys(report.label.strategy for report in reports))
    fallbacks = list(dict.fromkeys(report.label.fallback_profile for report in reports))
    tag_workaround_models = [report.config.model_name for report in reports if _has_tag_workaround(report)]
    return {
        "sampling_profile_filter": ",".join(run.request.get("profiles") or ()),
        "sampling_profiles": list(dict.fromkeys(report.config.profile for report in reports)),
        "sampling_profile_enforce_applicability": run.request.get("enforce_applicability"),
        "model_filter": ",".join(models),
        "selected_models": models,
        "strategy_filter": ",".join(strategies),
        "strategy_matrix": set(strategies) == STRATEGY_MATRIX,
        "strategies": strategies,
        "best_effort_content_tag_tool_call_fallback_models": list(dict.fromkeys(tag_workaround_models)),
        "fallback_matrix": fallbacks != [BEST_EFFORT_PROFILE],
        "fallback_profiles": fallbacks,
    }


def _has_tag_workaround(report: ConfigReport) -> bool:
    return any(name == f"workaround {TAG_FALLBACK}" for name, _ in report.config.layers)


def _build_run_fields(run: Run, reports: Sequence[ConfigReport], cells: Sequence[Cell]) -> JsonObject:
    tally = tally_cells(cells)
    groups = {name: {"rates": build_cell_tallies(members).to_json()} for name, members in group_cells(cells).items()}
    return {
        **build_run_mark(run),
        "title": run.title,
        "label": run.label,
        "state": run.state,
        "stopped_reason": run.stopped_reason,
        "trials": run.trial_count,
        "open_trials": tally.queued + tally.running,
        "rates": find_in_only_group(groups, "rates"),
        "groups": groups,
        "not_pooled": explain_not_pooled(groups),
        "failure_classes": _count_failure_classes(row for report in reports for row in report.rows),
        "instance_kind": run.instance_kind,
        "seed": run.seed,
        "order_seed": run.order_seed,
        "engine_version": run.engine_version,
        "deadline_seconds": run.deadline_seconds,
        "request_cap": run.request_cap,
        "token_cap": run.token_cap,
        "requests_sent": run.requests_reserved,
        "tokens_used": run.tokens_used,
        "cost": tally.cost,
        "skipped": run.skipped,
        "request": run.request,
    }


def _find_shared(values: Iterable[Any]) -> Any:
    """Return the first value if all values are equal; None if they differ or there are none."""
    first, *others = [*values] or [None]
    return first if all(value == first for value in others) else None
