"""Report file of one trial.

The file has the fields of the case study's reports under the same names. Those without a meaning in Toolbench are null.
The fields that only Toolbench has are under `toolbench`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from toolbench.engine.errors import PolicyError
from toolbench.engine.policy.settings import Policy, build_policy_json, resolve_policy
from toolbench.engine.types import JsonObject
from toolbench.evals.record_counts import TAG_TRANSFORM
from toolbench.evals.statistics.rounding import round_to_int
from toolbench.lab.interchange.file_json import decode_text, parse_object
from toolbench.lab.interchange.report.labels import ConfigLabel, sanitise_file_name
from toolbench.lab.interchange.report.trial_history import build_history, build_trace, rebuild_final_draft
from toolbench.lab.metrics.retries import TRIAL_RETRY_COLUMNS
from toolbench.lab.models import RunConfig, Trial
from toolbench.lab.models.counters import TRIAL_COUNTERS
from toolbench.lab.scenarios.catalogue import load_scenario
from toolbench.lab.traces.reading import StepWithDetails, list_steps

MAX_RAW_CHARS = 20_000  # of `error_raw_body`
MAX_ERROR_CHARS = 400  # of `error`, unless it lists failed checks
COUNTED_OUTCOMES = (Trial.Outcome.PASS, Trial.Outcome.FAIL, Trial.Outcome.INFRA)  # the summaries count these trials
# The case study's fields of a trial in the summary; none of them holds a body.
SUMMARY_FIELDS = (
    "model",
    "model_base",
    "strategy",
    "fallback_profile",
    "sampling_profile",
    "empty_response_retry_attempts",
    "language_policy",
    "assistant_text_language_shape",
    "assistant_text_language_ok",
    "content_tag_tool_call_fallback",
    "scenario",
    "trial",
    "ok",
    "elapsed_ms",
    "error",
    "error_hint",
    "error_status",
    "error_category",
)
_TRIAL_COLUMNS = (
    "outcome",
    "task_pass",
    "parity_pass",
    "end",
    "failure_class",
    "sentence",
    "signature",
    "behaviour_seen",
    "avoided",
    "verdict",
    "instance_kind",
    "instance_seed",
    "seed",
    "seed_sent",
    "scenario_version",
    "prompt_version",
    "plan_hash",
    "engine_version",
    "added_by_hand",
    "duration_ms",
    "backoff_ms",
    "model_ms",
    "tool_ms",
    "first_byte_ms",
    "turns",
    "requests",
    "retries",
    "errors_retried",
    "output_retries",
    *TRIAL_COUNTERS,
    "call_expected",
    "first_token_ms",
    "first_call_ms",
    "cause",
    "cause_signature",
    "causes",
    "wrong_paths",
    "taxonomy",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "cost",
    "paths",
    "upstream",
    "fingerprint",
    "model_echoed",
    "tools_dropped",
    "not_executed",
    "client_lag_ms",
    "left_out",
    "label",
    "note",
    *TRIAL_RETRY_COLUMNS,
)


@dataclass(frozen=True, slots=True)
class TrialReport:
    """Report of one trial.

    Attributes:
        name: name of the file.
        content: JSON of the file.
        row: the entry of the trial in the summary.
        quirks: ("transform", name) for each change of a request, an answer or a tool result, by the name of the
            transform or repair; ("finding", code) for each finding.
    """

    trial: Trial
    name: str
    content: JsonObject
    row: JsonObject
    quirks: frozenset[tuple[str, str]]

    @property
    def is_counted(self) -> bool:
        """Whether the summaries count the trial: it passed, failed or had an infrastructure error."""
        return self.trial.outcome in COUNTED_OUTCOMES


@dataclass(frozen=True, slots=True)
class TrialReportBuilder:
    """Builder of the reports of a run's trials. It resolves a policy once for each configuration and scenario version.

    Attributes:
        labels: labels by configuration id.
        simulated: whether the run has a simulated model.
    """

    labels: dict[int, ConfigLabel]
    simulated: bool
    _policies: dict[tuple[int, str, int], Policy | None] = field(default_factory=dict)

    def build_report(self, trial: Trial) -> TrialReport:
        """Return the report of a trial.

        Args:
            trial: a trial with its configuration, its cell, the columns TRIAL_RETRY_COLUMNS, and its steps with their
                bodies loaded.
        """
        label = self.labels[trial.config_id]
        steps = list_steps(trial)
        name = f"{label.file_prefix}__{sanitise_file_name(trial.scenario)}__trial_{trial.index:02d}.json"
        content = self._build_content(trial, label, steps)
        row = {key: content.get(key) for key in SUMMARY_FIELDS}
        row |= {"empty_response_retry_attempts": None, "language_policy": None, "report_path": name}
        row["toolbench"] = {
            "trial_id": trial.pk,
            "outcome": trial.outcome,
            "failure_class": trial.failure_class,
            "control": trial.cell.control,
        }
        return TrialReport(trial, name, content, row, _list_quirks(steps))

    def get_policy(self, config: RunConfig, scenario: str, version: int = 0) -> Policy | None:
        """Return the policy of a configuration with the layer of a scenario.

        Args:
            config: the configuration.
            scenario: slug of the scenario; empty for no layer. A scenario that does not exist has no layer either.
            version: version of the scenario. A version that does not exist stands for the newest version of a built-in
                scenario; for a test case, it has no layer.

        Returns:
            The policy; None if the engine no longer accepts the stored layers.
        """
        key = (config.pk, scenario, version)
        if key not in self._policies:
            self._policies[key] = _resolve_policy(config, scenario, version)
        return self._policies[key]

    def _build_content(self, trial: Trial, label: ConfigLabel, steps: Sequence[StepWithDetails]) -> JsonObject:
        policy = self.get_policy(trial.config, trial.scenario, trial.scenario_version)
        policy_json = build_policy_json(policy) if policy else None
        content: JsonObject = {
            "model": label.label,
            "model_base": trial.config.model_name,
            "strategy": label.strategy,
            "fallback_profile": label.fallback_profile,
            "sampling_profile": trial.config.profile,
            "empty_response_retry": {"max_retries": None, "attempts": None},
            "language_policy": {"id": None, "enabled": None, "target_lang": None, "strict": None},
            "llm_options_defaults": policy.llm_options_defaults if policy else trial.config.options,
            "content_tag_tool_call_fallback": is_tag_fallback_on(policy),
            "scenario": trial.scenario,
            "trial": trial.index,
            "ok": has_passed(trial),
            "elapsed_ms": round_elapsed_ms(trial),
            "tool_use_mode": policy.tool_use_mode if policy else trial.config.tool_use_mode,
            "tools_enabled": policy.tool_use_mode != "disabled" if policy else None,
            "runtime_tool_calling": policy_json,
            "context_tool_calling": policy_json,
            "assistant_text": decode_text(trial.final_text),
            "assistant_text_language_shape": None,
            "assistant_text_language_ok": None,
            "draft": rebuild_final_draft(trial, steps),
            **_build_error_fields(trial, steps),
            "history": build_history(steps),
            "trace": build_trace(steps, policy),
        }
        if trial.error_hint:
            content["error_hint"] = trial.error_hint
        return content | {"toolbench": self._build_toolbench_fields(trial)}

    def _build_toolbench_fields(self, trial: Trial) -> JsonObject:
        config = trial.config
        return {
            "simulated": self.simulated,
            "run": trial.run_id,
            "trial_id": trial.pk,
            "provider": config.provider_name,
            "canonical_model": config.canonical,
            "method": config.method,
            "examples": config.examples,
            "stream": config.stream,
            "policy_hash": config.policy_hash,
            "executions": trial.execution,
            **{name: getattr(trial, name) for name in _TRIAL_COLUMNS},
        }


def has_passed(trial: Trial) -> bool | None:
    """Return whether a trial passed, by the case study rule if it gave a verdict, else by the rule of the scenario.

    Returns:
        Whether the trial passed; None if its outcome is not in COUNTED_OUTCOMES.
    """
    if trial.outcome not in COUNTED_OUTCOMES:
        return None
    return bool(trial.parity_pass if trial.parity_pass is not None else trial.task_pass)


def round_elapsed_ms(trial: Trial) -> int:
    """Return the duration of a trial in milliseconds, rounded to an integer; 0 if it is unknown."""
    return round_to_int(trial.duration_ms or 0)


def is_tag_fallback_on(policy: Policy | None) -> bool | None:
    """Return whether the method is native and calls between tags in the text are read too; None without a policy."""
    return policy.method == "native" and TAG_TRANSFORM in policy.response_transforms if policy else None


def _resolve_policy(config: RunConfig, scenario: str, version: int) -> Policy | None:
    try:
        layer = load_scenario(scenario, version).draw_instance(0, kind="parity").layer if scenario else {}
    except KeyError:
        layer = {}
    try:
        return resolve_policy([*((name, patch) for name, patch in config.layers), ("scenario", layer)]).policy
    except PolicyError:
        return None


def _build_error_fields(trial: Trial, steps: Sequence[StepWithDetails]) -> JsonObject:
    """Return the error fields of a trial; all are null unless `has_passed` is False.

    Status and bodies are those of the last failed exchange if the trial ended with PROVIDER_ERROR, else null.
    """
    has_failed = has_passed(trial) is False
    category = (trial.category or "EXCEPTION") if has_failed else None
    failed_exchanges = [step.step for step in steps if not step.is_tool and not step.step.ok]
    is_provider_error = has_failed and trial.end == "PROVIDER_ERROR"
    last_failed = failed_exchanges[-1] if is_provider_error and failed_exchanges else None
    return {
        "error": _build_error_text(trial, str(category)) if has_failed else None,
        "error_status": last_failed.status if last_failed else None,
        "error_body": parse_object(last_failed.body.response) if last_failed else None,
        "error_raw_body": decode_text(last_failed.body.response)[:MAX_RAW_CHARS] if last_failed else None,
        "error_category": category,
    }


def _build_error_text(trial: Trial, category: str) -> str:
    """Return the error of a trial as the case study writes it: `CATEGORY: message`."""
    if category == "ASSERTION_FAILED":
        checks = [check for check in trial.verdict.get("checks", ()) if not check["ok"]]
        reasons = "; ".join(f"{check['name']}: {check['detail']}" for check in checks)
        return f"{category}: {reasons or trial.sentence}"
    return f"{category}: {trial.sentence}"[:MAX_ERROR_CHARS]


def _list_quirks(steps: Sequence[StepWithDetails]) -> frozenset[tuple[str, str]]:
    change_keys = ("request_changes", "response_changes", "changes")
    changes = (change for step in steps for key in change_keys for change in step.facts.get(key, ()))
    findings = (finding for step in steps for finding in step.facts.get("findings", ()))
    return frozenset(
        (
            *(("transform", str(change["name"])) for change in changes),
            *(("finding", str(finding["code"])) for finding in findings),
        )
    )
