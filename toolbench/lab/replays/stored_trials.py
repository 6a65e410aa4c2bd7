"""Replay of stored trials: loop, driver and judge run again on the stored answers.

No request is sent. Tools run again in the scenario's workspace, since the judge needs its state. They are expected to
be deterministic. If one answers differently, the next request differs from the stored one, and the replay stops with an
unknown outcome.
"""

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from uuid import UUID

from django.db.models import F

from toolbench.engine.errors import EngineError
from toolbench.engine.events import EndReason, LoopResult, OmittedParameter, StopReason
from toolbench.engine.types import JsonObject
from toolbench.engine.wire_formats.registry import get_wire_format
from toolbench.evals.bfcl.cases import BfclUnavailableError
from toolbench.evals.judging import failure_classes
from toolbench.evals.judging.verdict import mark_tools_dropped
from toolbench.evals.types import Scenario, Verdict
from toolbench.lab.models import Judgement, Step, Trial
from toolbench.lab.scenarios.catalogue import load_judging_scenario, load_scenario
from toolbench.lab.traces.omitted_parameters import parse_omitted_parameters
from toolbench.lab.traces.removed_bodies import explain_removed_bodies
from toolbench.lab.traces.step_facts import load_details, load_exchange_error
from toolbench.lab.traces.trial_columns import AnyStep, FinishedExecution, build_trial_columns
from toolbench.lab.worker.claims import ClaimedTrial
from toolbench.lab.worker.trial_plan import (
    FrozenConfig,
    ProviderAccess,
    ScenarioChangedError,
    TrialPlan,
    build_trial_plan,
    load_frozen_configs,
)
from toolbench.providers.driver.cancellation import CancellationToken
from toolbench.providers.driver.drive import RunContext, drive
from toolbench.providers.endpoint import Endpoint
from toolbench.providers.http.client import HttpClient
from toolbench.providers.recorded_transport import (
    NotRecordedError,
    RecordedTransport,
    Recording,
    StoredExchange,
    run_in_virtual_time,
)

TRIALS_PER_BATCH = 40  # limits the bodies that are in memory at once
VERDICT_COLUMNS = (
    "outcome",
    "end",
    "task_pass",
    "parity_pass",
    "failure_class",
    "category",
    "sentence",
    "signature",
    "behaviour_seen",
    "avoided",
    "verdict",
    "first_bad_ordinal",
)
_STOP_REASON_BY_END = {
    EndReason.DEADLINE_EXCEEDED.value: StopReason.DEADLINE,
    EndReason.CANCELLED.value: StopReason.CANCELLED,
}
_SCENARIO_FIELDS = ("trial__scenario", "scenario_version")
_PLACEHOLDER_URL = "http://recorded.invalid"
TransformConfig = Callable[[FrozenConfig], FrozenConfig]
FIRST_JUDGING_VERSION = 1  # judging version of stored verdicts without one


@dataclass(frozen=True, slots=True)
class ReplayedTrial:
    """The result of replaying one trial.

    Attributes:
        columns: the VERDICT_COLUMNS; {} if the replay stopped early or was not possible.
        counts: the trial's counts by column; {} if the replay did not use all stored answers, and so counted too few.
        version: the scenario version that judged; 0 without columns.
        unknown_from: 1-based number of the first step that could not be replayed; 1 after an error of the engine or
            of the scenario; None if the replay did not stop early or `is_not_replayable`.
        reason: why the replay stopped early or was not possible; "" otherwise.
        is_not_replayable: whether the trial sent no request, was ended without a verdict, or lost its bodies.
        differing_fields: names of fields in which requests differ from the stored ones without an effect on the model.
    """

    trial: Trial
    columns: JsonObject = field(default_factory=dict)
    counts: JsonObject = field(default_factory=dict)
    version: int = 0
    unknown_from: int | None = None
    reason: str = ""
    is_not_replayable: bool = False
    differing_fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _ReplayOptions:
    """Options of a replay.

    Attributes:
        has_original_plan: whether trials are replayed with the settings of their run.
        scenarios: scenarios by trial id; a trial without an entry is replayed with the scenario version of its launch.
    """

    has_original_plan: bool
    scenarios: Mapping[int, Scenario]

    def add_scenario(self, config: FrozenConfig, trial: Trial) -> FrozenConfig:
        """Return the configuration with the scenario that `scenarios` has for the trial, if it has one."""
        scenario = self.scenarios.get(trial.pk)
        if scenario is None:
            return config
        return replace(config, cases={**config.cases, (scenario.slug, scenario.version): scenario})

    def get_scenario_version(self, trial: Trial) -> int:
        """Return the scenario version to use for the trial."""
        scenario = self.scenarios.get(trial.pk)
        return scenario.version if scenario else trial.scenario_version


def replay_trials(
    trial_ids: Iterable[int], transform_config: TransformConfig | None = None, *, use_current_scenarios: bool = False
) -> Iterator[ReplayedTrial]:
    """Yield the replayed trials in the order of the ids. Iterate outside a running event loop.

    Trials of deleted runs and trials that have not ended are skipped.

    Args:
        trial_ids: the trials.
        transform_config: returns the configuration to replay with; None for the settings of the trial's run.
        use_current_scenarios: True: a test case is used in its newest version, a scenario in code in the version at
            launch or, if that no longer exists, in its newest. False: the scenario version of the trial's current
            verdict is used or, if that no longer exists, the version at launch.

    Raises:
        PolicyError: `transform_config` raised it.
    """
    ids = list(trial_ids)
    configs: dict[int, FrozenConfig] = {}
    for start in range(0, len(ids), TRIALS_PER_BATCH):
        trials = _load_trials(ids[start : start + TRIALS_PER_BATCH])
        missing = {trial.config_id for trial in trials} - configs.keys()
        for config_id, config in load_frozen_configs(missing).items():
            configs[config_id] = transform_config(config) if transform_config else config
        scenarios = _find_judging_scenarios(trials) if use_current_scenarios else _find_scenarios_of_verdicts(trials)
        options = _ReplayOptions(transform_config is None, scenarios)
        yield from run_in_virtual_time(_replay_batch(trials, configs, _load_steps(trials), options))


def _find_judging_scenarios(trials: Sequence[Trial]) -> dict[int, Scenario]:
    """Return the scenario that judges each trial now, by trial id, without scenarios that no longer exist."""
    return _map_scenarios(
        {trial.pk: (trial.scenario, trial.scenario_version) for trial in trials}, load_judging_scenario
    )


def _find_scenarios_of_verdicts(trials: Sequence[Trial]) -> dict[int, Scenario]:
    """Return, by trial id, the scenarios of current verdicts made with another version than at launch.

    Versions that no longer exist are omitted.
    """
    rows = Judgement.objects.filter_last_executions().filter(trial__in=trials, current=True)
    rejudged = rows.exclude(scenario_version=F("trial__scenario_version")).order_by()
    versions = {pk: (slug, version) for pk, slug, version in rejudged.values_list("trial", *_SCENARIO_FIELDS)}
    return {
        pk: scenario
        for pk, scenario in _map_scenarios(versions, load_scenario).items()
        if scenario.version == versions[pk][1]
    }


def _map_scenarios(
    versions: Mapping[int, tuple[str, int]], load: Callable[[str, int], Scenario]
) -> dict[int, Scenario]:
    """Load each (slug, version) once; return the scenarios by trial id, without those that do not exist."""
    scenarios: dict[tuple[str, int], Scenario] = {}
    for slug, version in set(versions.values()):
        with suppress(KeyError):
            scenarios[slug, version] = load(slug, version)
    return {pk: scenarios[key] for pk, key in versions.items() if key in scenarios}


def _load_trials(ids: Sequence[int]) -> list[Trial]:
    rows = Trial.objects.filter(pk__in=ids, state=Trial.State.DONE, run__deleted_at=None)
    trials = {trial.pk: trial for trial in rows.select_related("config").defer("rendered_prompt", "final_text")}
    return [trials[pk] for pk in ids if pk in trials]


def _load_steps(trials: Sequence[Trial]) -> dict[int, list[Step]]:
    """Return the steps of each trial's last execution, with their bodies, by trial id."""
    rows = Step.objects.filter(trial__in=trials, execution=F("trial__execution")).select_related("body")
    ordered = rows.order_by("trial_id", "ordinal")
    return {trial_id: list(trial_steps) for trial_id, trial_steps in groupby(ordered, key=lambda step: step.trial_id)}


async def _replay_batch(
    trials: Sequence[Trial], configs: dict[int, FrozenConfig], steps: dict[int, list[Step]], options: _ReplayOptions
) -> list[ReplayedTrial]:
    return [await _replay_trial(trial, configs[trial.config_id], steps.get(trial.pk, []), options) for trial in trials]


async def _replay_trial(
    trial: Trial, config: FrozenConfig, steps: Sequence[Step], options: _ReplayOptions
) -> ReplayedTrial:
    """Replay one trial; a trial without bodies, without requests or without a verdict is not replayable."""
    if trial.bodies_removed_at is not None:
        return ReplayedTrial(trial, is_not_replayable=True, reason=explain_removed_bodies(trial))
    exchanges = [step for step in steps if step.kind == Step.Kind.EXCHANGE]
    if not exchanges or not _was_judged(trial):
        return ReplayedTrial(trial, is_not_replayable=True, reason=trial.sentence)
    recording = _build_recording(trial, steps, has_original_plan=options.has_original_plan)
    try:
        sent_config = _use_sent_model_name(options.add_scenario(config, trial), exchanges[0])
        plan = build_trial_plan(
            _build_claimed_trial(trial, options.get_scenario_version(trial)),
            sent_config,
            _build_provider_access(trial, exchanges),
        )
    except (EngineError, ScenarioChangedError, KeyError) as error:
        return ReplayedTrial(trial, unknown_from=1, reason=str(error))
    return await _run_loop(trial, plan, recording)


async def _run_loop(trial: Trial, plan: TrialPlan, recording: Recording) -> ReplayedTrial:
    """Run the loop on recorded answers and judge it; after an error or without an answer, the result is unknown."""
    collector = _StepCollector()
    cancellation = CancellationToken()
    transport = RecordedTransport(recording, cancellation)
    clock = asyncio.get_running_loop().time
    workspace = plan.scenario.open(plan.instance)
    context = RunContext(
        endpoint=plan.endpoint,
        client=HttpClient(transport, clock=clock),
        call_tool=transport.wrap_tools(workspace.call),
        gate=transport,
        recorder=collector,
        clock=clock,
        cancelled=cancellation,
    )
    try:
        loop_result = await drive(plan.loop, context)
        verdict = plan.scenario.judge(plan.instance, loop_result, workspace)
    except NotRecordedError as error:
        return ReplayedTrial(trial, unknown_from=len(collector.steps) + 1, reason=str(error))
    except (EngineError, BfclUnavailableError) as error:
        return ReplayedTrial(trial, unknown_from=1, reason=str(error))
    if trial.tools_dropped:
        verdict = mark_tools_dropped(verdict, loop_result)
    columns = _build_columns(trial, loop_result, verdict, collector)
    counts = verdict.counts if transport.is_exhausted else {}
    return ReplayedTrial(
        trial, columns, counts, plan.scenario.version, differing_fields=tuple(sorted(transport.differing_fields))
    )


def _build_columns(trial: Trial, loop_result: LoopResult, verdict: Verdict, collector: "_StepCollector") -> JsonObject:
    columns = build_trial_columns(FinishedExecution(loop_result, verdict, collector.steps, trial.scenario, 0.0))
    return {name: columns[name] for name in VERDICT_COLUMNS}


def list_differences(replayed: ReplayedTrial) -> tuple[str, ...]:
    """Return the columns in which a replay differs from the stored trial; () if the replay has no columns.

    The judging version in `verdict` is ignored.
    """
    new = _remove_judging_version(replayed.columns)
    stored = _remove_judging_version({name: getattr(replayed.trial, name) for name in replayed.columns})
    return tuple(name for name, value in new.items() if stored[name] != value)


def read_judging_version(verdict: JsonObject) -> int:
    """Return the version of the judging rules in a stored verdict; without one, FIRST_JUDGING_VERSION."""
    return int(verdict.get("judging", FIRST_JUDGING_VERSION))


def _remove_judging_version(columns: JsonObject) -> JsonObject:
    """Return the columns without the version of the judging rules in the verdict."""
    if "verdict" not in columns:
        return columns
    return {**columns, "verdict": {name: value for name, value in columns["verdict"].items() if name != "judging"}}


@dataclass(eq=False, slots=True)
class _StepCollector:
    """Step recorder that collects the steps in memory; nothing is stored."""

    steps: list[AnyStep] = field(default_factory=list)

    def record(self, step: AnyStep) -> None:
        """Add the step to the list."""
        self.steps.append(step)


def _was_judged(trial: Trial) -> bool:
    """Return whether the trial was judged.

    It was not if it was ended without a verdict, such as by an internal error or because its provider was deleted. A
    failure class that is no longer in the table counts as judged.
    """
    judged_by_class = {row.code: row.judged for row in failure_classes.load_classes()}
    return not trial.failure_class or judged_by_class.get(trial.failure_class, True) or bool(trial.verdict)


def _build_recording(trial: Trial, steps: Sequence[Step], *, has_original_plan: bool) -> Recording:
    last = steps[-1]
    stop_reason = _STOP_REASON_BY_END.get(trial.end)
    return Recording(
        exchanges=tuple(_build_stored_exchange(step) for step in steps if step.kind == Step.Kind.EXCHANGE),
        stop_reason=stop_reason,
        # After a complete answer, only tools were still running.
        stopped_in_tools=stop_reason is not None and last.kind == Step.Kind.EXCHANGE and bool(last.ok),
        has_original_plan=has_original_plan,
    )


def _build_stored_exchange(step: Step) -> StoredExchange:
    details = load_details(step.body.facts)
    return StoredExchange(
        url=step.url,
        request=bytes(step.body.request),
        status=step.status,
        headers=details.get("response_headers") or {},
        body=bytes(step.body.response),
        error=load_exchange_error(details),
        chunks=tuple(size for _, size in details.get("chunks") or ()),
        call_count=len(details.get("calls_found") or ()),
        is_masked=step.masked,
        is_truncated=step.body_cut,
        omitted_parameters=frozenset(details.get("left_out") or ()),
    )


def _build_claimed_trial(trial: Trial, scenario_version: int) -> ClaimedTrial:
    return ClaimedTrial(
        id=trial.pk,
        run_id=trial.run_id,
        config_id=trial.config_id,
        cell_id=trial.cell_id,
        execution=trial.execution,
        lease=UUID(int=0),
        scenario=trial.scenario,
        scenario_version=scenario_version,
        instance_kind=trial.instance_kind,
        instance_seed=trial.instance_seed,
        seed=trial.seed,
        omitted_parameters=tuple(
            OmittedParameter(parameter.name, parameter.reason)
            for parameter in parse_omitted_parameters(trial.left_out)
            if parameter.was_known
        ),
    )


def _use_sent_model_name(config: FrozenConfig, first_exchange: Step) -> FrozenConfig:
    """Return the configuration with the model name that the first request contains.

    A local server may have chosen another name than that of the configuration. If the request is not JSON or
    names no model, the configuration is returned unchanged.
    """
    try:
        body = json.loads(bytes(first_exchange.body.request))
    except ValueError:
        return config
    name = body.get("model") if isinstance(body, dict) else None
    return replace(config, model_name=name) if isinstance(name, str) and name else config


def _build_provider_access(trial: Trial, exchanges: Sequence[Step]) -> ProviderAccess:
    """Return a provider access that behaves as the recorded one.

    Its wire format and attempt limit follow from the stored exchanges, its seed support from `Trial.seed_sent`.
    """
    last_error = load_exchange_error(load_details(exchanges[-1].body.facts))
    # A retryable error ends a trial only at the limit. Without such an end, any limit above the attempts used will do.
    is_limit_reached = trial.end == EndReason.PROVIDER_ERROR.value and last_error is not None and last_error.retryable
    attempts = exchanges[-1].attempt if is_limit_reached else max(step.attempt for step in exchanges) + 1
    endpoint = Endpoint(
        _PLACEHOLDER_URL,
        "",
        api_prefix="",
        max_attempts=attempts,
        wire=_find_wire(exchanges[0].url),
        sends_seed=trial.seed_sent,
    )
    return ProviderAccess(endpoint, is_local=False, services={})


def _find_wire(url: str) -> str:
    """Return the wire format whose path ends the URL; "chat" for any other path (raw completions too)."""
    path = url.partition("?")[0]
    return next(
        (wire for wire in ("anthropic", "responses") if path.endswith(f"/{get_wire_format(wire).path}")), "chat"
    )
