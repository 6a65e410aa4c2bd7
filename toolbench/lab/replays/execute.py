"""Trials once more from what is stored: the same loop, driver and judge, no request.

Tools are run again by the scenario's own workspace: the judge needs its state, and it is deterministic. Whether a tool
said the same as then shows in the next request, which has to be the stored one."""

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from uuid import UUID

from django.db.models import F

from toolbench.engine.errors import EngineError
from toolbench.engine.events import EndReason, ExchangeError, LoopResult, OmittedParameter, StopReason
from toolbench.engine.types import JsonObject
from toolbench.evals.judging import failure_classes
from toolbench.evals.judging.verdict import mark_tools_dropped
from toolbench.evals.types import Scenario, Verdict
from toolbench.lab.models import Judgement, Step, Trial
from toolbench.lab.scenarios.catalogue import load_judging_scenario, load_scenario
from toolbench.lab.traces.omitted_parameters import parse_omitted_parameters
from toolbench.lab.traces.step_facts import load_details
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

TRIALS_PER_BATCH = 40  # trials whose bodies are in memory at once
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
ChangeConfig = Callable[[FrozenConfig], FrozenConfig]
FIRST_JUDGING_VERSION = 1  # of verdicts that do not say which version judged them


@dataclass(frozen=True, slots=True)
class ReplayedTrial:
    """What became of one trial. `columns` are those of COLUMNS, {} where the end cannot be known: then `unknown_from`
    is the step (from 1) from which on, and `why`. `never_sent`: there is nothing to replay, and no setting would
    have changed that. `assumed` are request fields no model sees in which the requests would differ."""

    trial: Trial
    columns: JsonObject = field(default_factory=dict)
    version: int = 0  # of the scenario that judged
    unknown_from: int | None = None
    why: str = ""
    never_sent: bool = False
    assumed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _ReplayOptions:
    """`own_plan`: under the trial's own settings. `played`: by trial, the scenario that is played in its version,
    whatever version was launched."""

    own_plan: bool
    played: Mapping[int, Scenario]

    def config(self, config: FrozenConfig, trial: Trial) -> FrozenConfig:
        """The configuration with the scenario that is played among its cases."""
        scenario = self.played.get(trial.pk)
        return (
            replace(config, cases={**config.cases, (scenario.slug, scenario.version): scenario}) if scenario else config
        )

    def version(self, trial: Trial) -> int:
        scenario = self.played.get(trial.pk)
        return scenario.version if scenario else trial.scenario_version


def replay_trials(
    trial_ids: Iterable[int], change: ChangeConfig | None = None, *, anew: bool = False
) -> Iterator[ReplayedTrial]:
    """In the order of the ids; deleted ones and those still to do are passed over. `change` makes another plan of what
    was frozen. The scenario judges in the version by which the trial is judged now; with `anew` what judges trials of
    that version now is played and judges: a case in its newest version, code in the version that was launched while
    that is known. Where it would have shown the model something else, the end is unknown. To be called in a thread
    without an event loop."""
    wanted = list(trial_ids)
    configs: dict[int, FrozenConfig] = {}
    for start in range(0, len(wanted), TRIALS_PER_BATCH):
        trials = _load_trials(wanted[start : start + TRIALS_PER_BATCH])
        missing = {trial.config_id for trial in trials} - configs.keys()
        for config_id, config in load_frozen_configs(missing).items():
            configs[config_id] = change(config) if change else config
        recorded = _load_steps(trials)
        terms = _ReplayOptions(
            change is None, _find_current_scenarios(trials) if anew else _find_judging_scenarios(trials)
        )
        yield from run_in_virtual_time(_replay_batch(trials, configs, recorded, terms))


def _find_current_scenarios(trials: Sequence[Trial]) -> dict[int, Scenario]:
    """What judges them now, by trial; what is not there any more is left out."""
    return _map_scenarios(
        {trial.pk: (trial.scenario, trial.scenario_version) for trial in trials}, load_judging_scenario
    )


def _find_judging_scenarios(trials: Sequence[Trial]) -> dict[int, Scenario]:
    """Of the trials that were judged again, where that version is still there. One query."""
    rows = Judgement.objects.filter(trial__in=trials, current=True, judged_at__gte=F("trial__finished_at"))
    again = rows.exclude(scenario_version=F("trial__scenario_version")).order_by()
    wanted = {pk: (slug, version) for pk, slug, version in again.values_list("trial", *_SCENARIO_FIELDS)}
    return {pk: one for pk, one in _map_scenarios(wanted, load_scenario).items() if one.version == wanted[pk][1]}


def _map_scenarios(wanted: Mapping[int, tuple[str, int]], find: Callable[[str, int], Scenario]) -> dict[int, Scenario]:
    """The scenario that `find` gives for slug and version, by trial."""
    found: dict[tuple[str, int], Scenario] = {}
    for slug, version in set(wanted.values()):
        with suppress(KeyError):
            found[slug, version] = find(slug, version)
    return {pk: found[asked] for pk, asked in wanted.items() if asked in found}


def _load_trials(ids: Sequence[int]) -> list[Trial]:
    rows = Trial.objects.filter(pk__in=ids, state=Trial.State.DONE, run__deleted_at=None)
    found = {trial.pk: trial for trial in rows.select_related("config").defer("rendered_prompt", "final_text")}
    return [found[pk] for pk in ids if pk in found]


def _load_steps(trials: Sequence[Trial]) -> dict[int, list[Step]]:
    """The steps of each trial's last execution, with their bodies."""
    rows = Step.objects.filter(trial__in=trials, execution=F("trial__execution")).select_related("body")
    ordered = rows.order_by("trial_id", "ordinal")
    return {trial_id: list(own) for trial_id, own in groupby(ordered, key=lambda step: step.trial_id)}


async def _replay_batch(
    trials: Sequence[Trial], configs: dict[int, FrozenConfig], steps: dict[int, list[Step]], terms: _ReplayOptions
) -> list[ReplayedTrial]:
    return [await _replay_trial(trial, configs[trial.config_id], steps.get(trial.pk, []), terms) for trial in trials]


async def _replay_trial(
    trial: Trial, config: FrozenConfig, steps: Sequence[Step], terms: _ReplayOptions
) -> ReplayedTrial:
    exchanges = [step for step in steps if step.kind == Step.Kind.EXCHANGE]
    if not exchanges or not _has_run_to_end(trial):
        return ReplayedTrial(trial, never_sent=True, why=trial.sentence)
    recording = _build_recording(trial, steps, own_plan=terms.own_plan)
    try:
        sent = _use_sent_model_name(terms.config(config, trial), exchanges[0])
        plan = build_trial_plan(
            _build_claimed_trial(trial, terms.version(trial)), sent, _build_provider_access(trial, exchanges)
        )
    except (EngineError, ScenarioChangedError, KeyError) as error:
        return ReplayedTrial(trial, unknown_from=1, why=str(error))
    return await _run_loop(trial, plan, recording)


async def _run_loop(trial: Trial, plan: TrialPlan, recording: Recording) -> ReplayedTrial:
    notes = _StepCollector()
    cancelled = CancellationToken()
    transport = RecordedTransport(recording, cancelled)
    clock = asyncio.get_running_loop().time
    workspace = plan.scenario.open(plan.instance)
    world = RunContext(
        endpoint=plan.endpoint,
        client=HttpClient(transport, clock=clock),
        call_tool=transport.wrap_tools(workspace.call),
        gate=transport,
        recorder=notes,
        clock=clock,
        cancelled=cancelled,
    )
    try:
        ended = await drive(plan.loop, world)
    except NotRecordedError as unknown:
        return ReplayedTrial(trial, unknown_from=len(notes.steps) + 1, why=str(unknown))
    except EngineError as error:
        return ReplayedTrial(trial, unknown_from=1, why=str(error))
    verdict = plan.scenario.judge(plan.instance, ended, workspace)
    if trial.tools_dropped:
        verdict = mark_tools_dropped(verdict, ended)
    columns = _build_columns(trial, ended, verdict, notes)
    return ReplayedTrial(trial, columns, plan.scenario.version, assumed=tuple(sorted(transport.assumed)))


def _build_columns(trial: Trial, ended: LoopResult, verdict: Verdict, notes: "_StepCollector") -> JsonObject:
    columns = build_trial_columns(FinishedExecution(ended, verdict, notes.steps, trial.scenario, 0.0))
    return {name: columns[name] for name in VERDICT_COLUMNS}


def list_differences(replayed: ReplayedTrial) -> tuple[str, ...]:
    """The columns in which a replay differs from what is stored; () for one whose end is not known."""
    made = _remove_judging_version(replayed.columns)
    stored = _remove_judging_version({name: getattr(replayed.trial, name) for name in replayed.columns})
    return tuple(name for name, value in made.items() if stored[name] != value)


def read_judging_version(verdict: JsonObject) -> int:
    return int(verdict.get("judging", FIRST_JUDGING_VERSION))


def _remove_judging_version(columns: JsonObject) -> JsonObject:
    """The columns without the version that judged."""
    if "verdict" not in columns:
        return columns
    return {**columns, "verdict": {name: value for name, value in columns["verdict"].items() if name != "judging"}}


@dataclass(eq=False, slots=True)
class _StepCollector:
    """The driver's recorder: only here, never stored."""

    steps: list[AnyStep] = field(default_factory=list)

    def record(self, step: AnyStep) -> None:
        self.steps.append(step)


def _has_run_to_end(trial: Trial) -> bool:
    """Whether the loop came to an end and the judge spoke; not so where Toolbench itself gave the trial up."""
    known = {row.code: row.judged for row in failure_classes.load_classes()}
    return not trial.failure_class or known.get(trial.failure_class, True) or bool(trial.verdict)


def _build_recording(trial: Trial, steps: Sequence[Step], *, own_plan: bool) -> Recording:
    last = steps[-1]
    stopped = _STOP_REASON_BY_END.get(trial.end)
    return Recording(
        exchanges=tuple(_build_stored_exchange(step) for step in steps if step.kind == Step.Kind.EXCHANGE),
        stopped=stopped,
        in_tools=stopped is not None and last.kind == Step.Kind.EXCHANGE and bool(last.ok),
        own_plan=own_plan,
    )


def _build_stored_exchange(step: Step) -> StoredExchange:
    facts = load_details(step.body.facts)
    error = facts.get("error")
    return StoredExchange(
        url=step.url,
        request=bytes(step.body.request),
        status=step.status,
        headers=facts.get("response_headers") or {},
        body=bytes(step.body.response),
        error=ExchangeError(**{**error, "named": tuple(error.get("named") or ())}) if error else None,
        chunks=tuple(size for _, size in facts.get("chunks") or ()),
        calls=len(facts.get("calls_found") or ()),
        masked=step.masked,
        cut=step.body_cut,
        left_out=frozenset(facts.get("left_out") or ()),
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
        left_out=tuple(
            OmittedParameter(one.name, one.why) for one in parse_omitted_parameters(trial.left_out) if one.known
        ),
    )


def _use_sent_model_name(config: FrozenConfig, first: Step) -> FrozenConfig:
    """With the model's name as it went over the wire: a local server has one of its own."""
    try:
        body = json.loads(bytes(first.body.request))
    except ValueError:
        return config
    name = body.get("model") if isinstance(body, dict) else None
    return replace(config, model_name=name) if isinstance(name, str) and name else config


def _build_provider_access(trial: Trial, exchanges: Sequence[Step]) -> ProviderAccess:
    """An endpoint that says what the record says of the real one: its wire, whether it took seeds, how often it was
    asked again."""
    last = load_details(exchanges[-1].body.facts).get("error") or {}
    given_up = trial.end == EndReason.PROVIDER_ERROR.value and last.get("retryable")
    attempts = exchanges[-1].attempt if given_up else max(step.attempt for step in exchanges) + 1
    wire = "anthropic" if exchanges[0].url.endswith("/messages") else "chat"
    endpoint = Endpoint(_PLACEHOLDER_URL, "", api_prefix="", max_attempts=attempts, wire=wire, seeded=trial.seed_sent)
    return ProviderAccess(endpoint, local=False, services={})
