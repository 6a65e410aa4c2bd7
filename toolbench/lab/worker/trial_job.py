"""Trying one trial: driving its loop, judging the end, and handing everything to the writer."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from toolbench.engine.errors import EngineError, PlanError
from toolbench.engine.events import End, Ended
from toolbench.engine.messages import JsonObject
from toolbench.engine.transforms.registry import UnknownTransform
from toolbench.evals.expected_calls import ExpectedCalls, grade_calls
from toolbench.evals.judging.verdict import mark_tools_dropped
from toolbench.lab.engine_version import engine_version
from toolbench.lab.traces.cause_columns import cause_columns
from toolbench.lab.traces.finished_steps import driven_steps
from toolbench.lab.traces.trial_columns import AnyStep, Drive, signature, spent_columns, trial_columns
from toolbench.lab.worker.batch_writer import Writer
from toolbench.lab.worker.claims import ClaimedTrial
from toolbench.lab.worker.database_thread import DatabaseThread
from toolbench.lab.worker.local_server_checks import MOST_LOSSES, LocalServer
from toolbench.lab.worker.refused_parameters import SessionRefusals
from toolbench.lab.worker.rendered_prompt import prompt_columns, prompt_version, sent_prompt
from toolbench.lab.worker.request_gate import Permits, TrialGate
from toolbench.lab.worker.slots import Slots
from toolbench.lab.worker.storage import OutcomeWrite, StepWrite
from toolbench.lab.worker.trial_plan import (
    FrozenConfig,
    NotHere,
    NotReady,
    Reach,
    ScenarioChanged,
    TrialPlan,
    trial_plan,
)
from toolbench.providers.driver.cancellation import CancellationToken
from toolbench.providers.driver.drive import RunContext, drive
from toolbench.providers.http.client import HttpClient
from toolbench.providers.http.request_template import build_endpoint_masker

logger = logging.getLogger(__name__)

INTERNAL_ERROR = "our_error"  # failure class


@dataclass(frozen=True, slots=True)
class Bench:
    """What the trials of one shift share."""

    provider_id: int
    client: HttpClient
    database: DatabaseThread
    writer: Writer
    permits: Permits
    slots: Slots
    refusals: SessionRefusals = field(default_factory=SessionRefusals)


@dataclass(slots=True, eq=False)
class Try:
    """One claimed trial while it is ours. `worst_lag_ms` is kept up by the shift; `cancelled` is set by it.
    `lost_server` says that its local server died and that it has to be tried again."""

    trial: ClaimedTrial
    bench: Bench
    cancelled: CancellationToken
    worst_lag_ms: float = 0.0
    lost_server: bool = False
    steps: list[AnyStep] = field(default_factory=list)
    gate: TrialGate = field(init=False)
    model_name: str = ""  # once it runs

    def __post_init__(self) -> None:
        bench = self.bench
        self.gate = TrialGate(
            self.trial, bench.provider_id, bench.permits, bench.database, bench.slots, ahead=self.trial.ahead
        )

    def record(self, step: AnyStep) -> None:
        """The driver's recorder: a step goes to the writer as soon as it is finished."""
        self.steps.append(step)
        self.bench.refusals.learn(self.trial, self.model_name, step)
        self.bench.writer.put_step(self._step_write(step))

    async def run(self, config: FrozenConfig, to: Reach) -> bool:
        """True when the trial came to its end, good or bad; False when it has to be tried again: the run's cap is
        reached, or the local server is gone. A defect of ours ends the trial, not the shift."""
        try:
            return await self._run(config, to)
        except NotReady:
            return False

    async def _run(self, config: FrozenConfig, to: Reach) -> bool:
        """Raises NotReady."""
        self.model_name = config.model_name
        try:
            plan = trial_plan(self.bench.refusals.informed(self.trial, self.model_name), config, to)
        except NotHere as error:
            self.refuse("local_model_elsewhere", str(error))
            return True
        except (EngineError, ScenarioChanged, KeyError) as error:
            self.refuse("plan_refused", f"The trial cannot be started: {error}")
            return True
        try:
            return await self._drive(plan)
        except NotReady:
            raise
        except (PlanError, UnknownTransform) as error:
            self.refuse("plan_refused", f"The trial cannot be started: {error}")
        except Exception as error:
            logger.exception("Trial %s failed within Toolbench itself", self.trial.id)
            self.refuse(INTERNAL_ERROR, _internal_error(error))
        return True

    async def _drive(self, plan: TrialPlan) -> bool:
        started = time.perf_counter()
        workspace = plan.scenario.open(plan.instance)
        self.gate.lost = partial(self._lost_its_server, plan)
        ended = await drive(plan.loop, self._world(plan, workspace.call))
        if ended.end is End.BUDGET_SPENT or await self._lost_its_server(plan):
            return False
        verdict = plan.scenario.judge(plan.instance, ended, workspace)
        duration_ms = (time.perf_counter() - started) * 1000
        prompt = await self._prompt(plan)
        if prompt.get("tools_dropped"):
            verdict = mark_tools_dropped(verdict, ended)
        verdict = build_endpoint_masker(plan.endpoint).mask_value(verdict)
        driven = Drive(ended, verdict, self.steps, self.trial.scenario, duration_ms)
        self._end({**self._columns(plan, driven), **prompt})
        return True

    async def _lost_its_server(self, plan: TrialPlan) -> bool:
        if plan.server is None or self.trial.server_losses >= MOST_LOSSES:
            return False
        server = LocalServer(plan.server, plan.endpoint, self.bench.client, self.bench.database)
        self.lost_server = await server.lost(self.steps)
        return self.lost_server

    async def _prompt(self, plan: TrialPlan) -> JsonObject:
        if plan.loop.policy.method == "template":
            return sent_prompt(self.steps)
        looks = plan.local and not self.cancelled.is_set()
        return await prompt_columns(plan.endpoint, self.steps) if looks else {}

    def refuse(self, failure_class: str, sentence: str) -> None:
        """Ends the trial without a verdict: the world's failure or ours, never the model's; what was sent counts."""
        refused = {"outcome": "infra", "end": End.PROVIDER_ERROR.value, "failure_class": failure_class}
        self._end(
            {
                **spent_columns(self.steps),
                **refused,
                **self._causes(refused, ExpectedCalls()),
                "category": "EXCEPTION",
                "sentence": sentence[:4000],
                "signature": signature(failure_class, self.trial.scenario, ""),
                "engine_version": engine_version(),
            }
        )

    def fail(self, error: Exception) -> None:
        """End the trial as an internal error, without reading its steps: reading them may be what failed."""
        refused = {"outcome": "infra", "end": End.PROVIDER_ERROR.value, "failure_class": INTERNAL_ERROR}
        self._end({**refused, "category": "EXCEPTION", "sentence": _internal_error(error)})

    def _world(self, plan: TrialPlan, call_tool: Callable[[str, JsonObject, str], object]) -> RunContext:
        return RunContext(
            endpoint=plan.endpoint,
            client=self.bench.client,
            call_tool=call_tool,
            gate=self.gate,
            recorder=self,
            clock=time.perf_counter,
            cancelled=self.cancelled,
        )

    def _columns(self, plan: TrialPlan, drive: Drive) -> JsonObject:
        outcome = trial_columns(drive)
        return {
            **outcome,
            **self._causes(outcome, plan.scenario.build_expected_calls(plan.instance)),
            "seed_sent": plan.loop.seed is not None and _sent_something(drive.ended),
            "prompt_version": prompt_version(plan.loop.policy, plan.instance),
            "plan_hash": plan.hash,
            "engine_version": engine_version(),
            "client_lag_ms": self.worst_lag_ms,
        }

    def _causes(self, outcome: JsonObject, due: ExpectedCalls) -> JsonObject:
        steps = driven_steps(self.steps)
        return cause_columns(steps, outcome, scenario=self.trial.scenario, graded=grade_calls(steps, due))

    def _end(self, columns: JsonObject) -> None:
        steps = tuple(map(self._step_write, self.steps))
        outcome = OutcomeWrite(self.trial.id, self.trial.lease, columns, unused=self.gate.ahead, steps=steps)
        self.bench.writer.put_outcome(outcome)

    def _step_write(self, step: AnyStep) -> StepWrite:
        return StepWrite(self.trial.id, self.trial.execution, self.trial.lease, step)


def _internal_error(error: Exception) -> str:
    return f"Toolbench itself failed ({type(error).__name__}); the worker's log has more."


def _sent_something(ended: Ended) -> bool:
    return bool(ended.turns)
