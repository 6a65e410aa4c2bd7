"""Run one trial: drive its loop, judge its end and give everything to the writer."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from toolbench.engine.errors import EngineError, PlanError
from toolbench.engine.events import EndReason, LoopResult
from toolbench.engine.transforms.registry import UnknownTransformError
from toolbench.engine.types import JsonObject
from toolbench.evals.expected_calls import ExpectedCalls, grade_calls
from toolbench.evals.judging.verdict import mark_tools_dropped
from toolbench.lab.engine_version import compute_engine_version
from toolbench.lab.traces.cause_columns import build_cause_columns
from toolbench.lab.traces.finished_steps import build_wire_steps
from toolbench.lab.traces.trial_columns import (
    AnyStep,
    FinishedExecution,
    build_failure_signature,
    build_spending_columns,
    build_trial_columns,
)
from toolbench.lab.worker.batch_writer import BatchWriter
from toolbench.lab.worker.claims import ClaimedTrial
from toolbench.lab.worker.database_thread import DatabaseThread
from toolbench.lab.worker.local_servers import MAX_SERVER_LOSSES, LocalServerCheck
from toolbench.lab.worker.refused_parameters import SessionRefusals
from toolbench.lab.worker.rendered_prompt import build_prompt_version, build_sent_prompt_columns, fetch_prompt_columns
from toolbench.lab.worker.request_gate import BudgetReserver, RequestGate
from toolbench.lab.worker.slots import Slots
from toolbench.lab.worker.storage import OutcomeWrite, StepWrite
from toolbench.lab.worker.trial_plan import (
    FrozenConfig,
    ProviderAccess,
    ScenarioChangedError,
    ServedElsewhereError,
    ServerNotReadyError,
    TrialPlan,
    build_trial_plan,
)
from toolbench.providers.driver.cancellation import CancellationToken
from toolbench.providers.driver.drive import RunContext, drive
from toolbench.providers.http.client import HttpClient
from toolbench.providers.http.request_template import build_endpoint_masker

logger = logging.getLogger(__name__)

INTERNAL_ERROR = "our_error"  # failure class


@dataclass(frozen=True, slots=True)
class SessionContext:
    """What the trials of one worker session share."""

    provider_id: int
    client: HttpClient
    database: DatabaseThread
    writer: BatchWriter
    reserver: BudgetReserver
    slots: Slots
    refusals: SessionRefusals = field(default_factory=SessionRefusals)


@dataclass(slots=True, eq=False)
class TrialJob:
    """One claimed trial while this worker holds it.

    Attributes:
        worst_lag_ms: the worst delay of the event loop during the trial; the session updates it.
        cancelled: the token of its run; the session sets it when the run is cancelled.
        lost_server: whether its local server died, so that it has to run again.
    """

    trial: ClaimedTrial
    context: SessionContext
    cancelled: CancellationToken
    worst_lag_ms: float = 0.0
    lost_server: bool = False
    steps: list[AnyStep] = field(default_factory=list)
    gate: RequestGate = field(init=False)
    model_name: str = ""  # empty until it runs

    def __post_init__(self) -> None:
        context = self.context
        self.gate = RequestGate(
            self.trial,
            context.provider_id,
            context.reserver,
            context.database,
            context.slots,
            reserved_requests=self.trial.reserved_requests,
        )

    def record(self, step: AnyStep) -> None:
        """Give a finished step to the writer. The driver calls it."""
        self.steps.append(step)
        self.context.refusals.add_step(self.trial, self.model_name, step)
        self.context.writer.put_step(self._build_step_write(step))

    async def run(self, config: FrozenConfig, access: ProviderAccess) -> bool:
        """Run the trial and return whether it ended.

        An internal error ends the trial, not the session.

        Returns:
            False when the trial has to run again: a limit of the run is reached, or its local server died or is
            not ready.
        """
        try:
            return await self._run(config, access)
        except ServerNotReadyError:
            return False

    async def _run(self, config: FrozenConfig, access: ProviderAccess) -> bool:
        """Run the trial and return whether it ended.

        Raises:
            ServerNotReadyError: the local server is not ready.
        """
        self.model_name = config.model_name
        try:
            plan = build_trial_plan(self.context.refusals.add_to_trial(self.trial, self.model_name), config, access)
        except ServedElsewhereError as error:
            self.end_without_verdict("local_model_elsewhere", str(error))
            return True
        except (EngineError, ScenarioChangedError, KeyError) as error:
            self.end_without_verdict("plan_refused", f"The trial cannot be started: {error}")
            return True
        try:
            return await self._drive(plan)
        except ServerNotReadyError:
            raise
        except (PlanError, UnknownTransformError) as error:
            self.end_without_verdict("plan_refused", f"The trial cannot be started: {error}")
        except Exception as error:
            logger.exception("Trial %s failed within Toolbench itself", self.trial.id)
            self.end_without_verdict(INTERNAL_ERROR, _describe_internal_error(error))
        return True

    async def _drive(self, plan: TrialPlan) -> bool:
        started = time.perf_counter()
        workspace = plan.scenario.open(plan.instance)
        self.gate.has_lost_server = partial(self._has_lost_server, plan)
        loop_result = await drive(plan.loop, self._build_run_context(plan, workspace.call))
        if loop_result.end is EndReason.BUDGET_SPENT or await self._has_lost_server(plan):
            return False
        verdict = plan.scenario.judge(plan.instance, loop_result, workspace)
        duration_ms = (time.perf_counter() - started) * 1000
        prompt = await self._build_prompt_columns(plan)
        if prompt.get("tools_dropped"):
            verdict = mark_tools_dropped(verdict, loop_result)
        verdict = build_endpoint_masker(plan.endpoint).mask_value(verdict)
        execution = FinishedExecution(loop_result, verdict, self.steps, self.trial.scenario, duration_ms)
        self._put_outcome({**self._build_columns(plan, execution), **prompt})
        return True

    async def _has_lost_server(self, plan: TrialPlan) -> bool:
        if plan.server is None or self.trial.server_losses >= MAX_SERVER_LOSSES:
            return False
        server = LocalServerCheck(plan.server, plan.endpoint, self.context.client, self.context.database)
        self.lost_server = await server.has_lost_server(self.steps)
        return self.lost_server

    async def _build_prompt_columns(self, plan: TrialPlan) -> JsonObject:
        if plan.loop.policy.method == "template":
            return build_sent_prompt_columns(self.steps)
        can_render = plan.local and not self.cancelled.is_set()
        return await fetch_prompt_columns(plan.endpoint, self.steps) if can_render else {}

    def end_without_verdict(self, failure_class: str, sentence: str) -> None:
        """End the trial with an infrastructure error or an internal error; the requests that were sent count."""
        outcome = {"outcome": "infra", "end": EndReason.PROVIDER_ERROR.value, "failure_class": failure_class}
        self._put_outcome(
            {
                **build_spending_columns(self.steps),
                **outcome,
                **self._build_cause_columns(outcome, ExpectedCalls()),
                "category": "EXCEPTION",
                "sentence": sentence[:4000],
                "signature": build_failure_signature(failure_class, self.trial.scenario, ""),
                "engine_version": compute_engine_version(),
            }
        )

    def end_with_internal_error(self, error: Exception) -> None:
        """End the trial with an internal error without reading its steps, since reading them may be what failed."""
        outcome = {"outcome": "infra", "end": EndReason.PROVIDER_ERROR.value, "failure_class": INTERNAL_ERROR}
        self._put_outcome({**outcome, "category": "EXCEPTION", "sentence": _describe_internal_error(error)})

    def _build_run_context(self, plan: TrialPlan, call_tool: Callable[[str, JsonObject, str], object]) -> RunContext:
        return RunContext(
            endpoint=plan.endpoint,
            client=self.context.client,
            call_tool=call_tool,
            gate=self.gate,
            recorder=self,
            clock=time.perf_counter,
            cancelled=self.cancelled,
        )

    def _build_columns(self, plan: TrialPlan, execution: FinishedExecution) -> JsonObject:
        outcome = build_trial_columns(execution)
        return {
            **outcome,
            **self._build_cause_columns(outcome, plan.scenario.build_expected_calls(plan.instance)),
            "seed_sent": plan.loop.seed is not None and _has_turns(execution.loop_result),
            "prompt_version": build_prompt_version(plan.loop.policy, plan.instance),
            "plan_hash": plan.hash,
            "engine_version": compute_engine_version(),
            "client_lag_ms": self.worst_lag_ms,
        }

    def _build_cause_columns(self, outcome: JsonObject, expected_calls: ExpectedCalls) -> JsonObject:
        steps = build_wire_steps(self.steps)
        return build_cause_columns(
            steps, outcome, scenario=self.trial.scenario, graded=grade_calls(steps, expected_calls)
        )

    def _put_outcome(self, columns: JsonObject) -> None:
        steps = tuple(map(self._build_step_write, self.steps))
        outcome = OutcomeWrite(
            self.trial.id, self.trial.lease, columns, unsent_requests=self.gate.reserved_requests, steps=steps
        )
        self.context.writer.put_outcome(outcome)

    def _build_step_write(self, step: AnyStep) -> StepWrite:
        return StepWrite(self.trial.id, self.trial.execution, self.trial.lease, step)


def _describe_internal_error(error: Exception) -> str:
    return f"Toolbench itself failed ({type(error).__name__}); the worker's log has more."


def _has_turns(loop_result: LoopResult) -> bool:
    return bool(loop_result.turns)
