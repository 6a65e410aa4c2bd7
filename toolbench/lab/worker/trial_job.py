"""Job that runs one trial: it drives the loop, judges the result and queues writes to the database."""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from toolbench.engine.errors import EngineError, PlanError
from toolbench.engine.events import EndReason
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
from toolbench.lab.worker.job_failures import INTERNAL_ERROR, build_internal_error_columns, describe_internal_error
from toolbench.lab.worker.local_servers import MAX_SERVER_LOSSES, LocalServerCheck
from toolbench.lab.worker.pacing.pacer import Pacer
from toolbench.lab.worker.refused_parameters import SessionRefusals
from toolbench.lab.worker.rendered_prompt import build_prompt_version, build_sent_prompt_columns, fetch_prompt_columns
from toolbench.lab.worker.request_gate import BudgetReserver, RequestGate
from toolbench.lab.worker.slots import Slots, TrialLease
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
from toolbench.log_lines import log_ids
from toolbench.providers.driver.cancellation import CancellationToken
from toolbench.providers.driver.drive import RunContext, drive
from toolbench.providers.driver.step_records import ExchangeStep
from toolbench.providers.http.client import HttpClient
from toolbench.providers.http.request_template import build_endpoint_masker

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SessionContext:
    """Resources shared by the trial jobs of one worker session."""

    provider_id: int
    client: HttpClient
    database: DatabaseThread
    writer: BatchWriter
    reserver: BudgetReserver
    slots: Slots
    pacer: Pacer
    refusals: SessionRefusals = field(default_factory=SessionRefusals)


@dataclass(slots=True, eq=False)
class TrialJob:
    """Claimed trial while this worker runs it.

    Attributes:
        cancellation_token: token of the trial's run; the session sets it when the run is cancelled.
        worst_lag_ms: longest delay of the event loop during the trial; the session updates it.
        has_lost_server: whether the trial's local server died, so that the trial has to run again.
        steps: finished steps, in order.
        model_name: name of the trial's model; "" until `run` is called.
    """

    trial: ClaimedTrial
    context: SessionContext
    cancellation_token: CancellationToken
    worst_lag_ms: float = 0.0
    has_lost_server: bool = False
    steps: list[AnyStep] = field(default_factory=list)
    gate: RequestGate = field(init=False)
    model_name: str = ""

    def __post_init__(self) -> None:
        context = self.context
        self.gate = RequestGate(
            self.trial,
            context.provider_id,
            context.reserver,
            context.database,
            context.slots,
            context.pacer,
            reserved_requests=self.trial.reserved_requests,
        )

    @property
    def key(self) -> TrialLease:
        """Id and lease of the trial."""
        return TrialLease(self.trial.id, self.trial.lease)

    def record(self, step: AnyStep) -> None:
        """Queue a finished step for storage. The driver calls it after each step."""
        self.steps.append(step)
        if isinstance(step, ExchangeStep):
            self.gate.finish_request(step, self.model_name)
        self.context.refusals.add_step(self.trial, self.model_name, step)
        self.context.writer.put_step(self._build_step_write(step))

    async def run(self, config: FrozenConfig, access: ProviderAccess) -> bool:
        """Run the trial.

        Known errors of the plan and all errors of the loop and the judge become the outcome of the trial.

        Returns:
            Whether the trial ended. False if it has to run again, because a limit of its run is reached, or because the
            local server died or is not ready.

        Raises:
            Exception: the plan or the outcome could not be built. The caller ends the trial with an internal error.
        """
        with log_ids(run=self.trial.run_id, trial=self.trial.id, provider=self.context.provider_id):
            try:
                return await self._run(config, access)
            except ServerNotReadyError:
                return False
            finally:
                self.gate.close()
                logger.info("Execution %s ended after %s steps", self.trial.execution, len(self.steps))

    async def _run(self, config: FrozenConfig, access: ProviderAccess) -> bool:
        """Run the trial and return whether it ended.

        Raises:
            ServerNotReadyError: the local server is not ready, or it died before a retry.
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
        if self.trial.waits_for_slot:
            await self._wait_for_slot()
        try:
            return await self._drive(plan)
        except ServerNotReadyError:
            raise
        except (PlanError, UnknownTransformError) as error:
            self.end_without_verdict("plan_refused", f"The trial cannot be started: {error}")
        except Exception as error:
            logger.exception("Trial %s ends with an internal error", self.trial.id)
            self.end_without_verdict(INTERNAL_ERROR, describe_internal_error(error))
        return True

    async def _wait_for_slot(self) -> None:
        """Wait for a slot, or until the run is cancelled: then the trial ends before its first request.

        The database may still count the trial that had the slot before. So until the next renewal, the lease of this
        trial counts as confirmed no later than the lease of that trial.
        """
        try:
            async with asyncio.timeout(None) as timeout:
                with self.cancellation_token.expire_on_cancel(timeout):
                    slot = await self.context.slots.wait(self.key)
        except TimeoutError:
            return
        self.gate.lease_confirmed_at = min(self.gate.lease_confirmed_at, slot.confirmed_at)
        self.worst_lag_ms = 0.0

    async def _drive(self, plan: TrialPlan) -> bool:
        """Drive the loop, judge the result and queue the outcome; return False if the trial has to run again."""
        started_at = time.perf_counter()
        workspace = plan.scenario.open(plan.instance)
        self.gate.has_lost_server = partial(self._check_server_loss, plan)
        loop_result = await drive(plan.loop, self._build_run_context(plan, workspace.call))
        if loop_result.end is EndReason.BUDGET_SPENT or await self._check_server_loss(plan):
            return False
        verdict = plan.scenario.judge(plan.instance, loop_result, workspace)
        duration_ms = (time.perf_counter() - started_at) * 1000 - self.gate.paced_ms
        prompt_columns = await self._collect_prompt_columns(plan)
        if prompt_columns.get("tools_dropped"):
            verdict = mark_tools_dropped(verdict, loop_result)
        verdict = build_endpoint_masker(plan.endpoint).mask_value(verdict)
        execution = FinishedExecution(loop_result, verdict, self.steps, self.trial.scenario, duration_ms)
        self._put_outcome({**self._build_columns(plan, execution), **prompt_columns})
        return True

    async def _check_server_loss(self, plan: TrialPlan) -> bool:
        """Set and return `has_lost_server`, which stays False after MAX_SERVER_LOSSES losses."""
        if plan.server is None or self.trial.server_losses >= MAX_SERVER_LOSSES:
            return False
        server = LocalServerCheck(plan.server, plan.endpoint, self.context.client, self.context.database)
        self.has_lost_server = await server.has_lost_server(self.steps)
        return self.has_lost_server

    async def _collect_prompt_columns(self, plan: TrialPlan) -> JsonObject:
        """Return the columns of the rendered prompt; {} if it is unknown."""
        if plan.loop.policy.method == "template":
            return build_sent_prompt_columns(self.steps)
        can_render = plan.is_local and not self.cancellation_token.is_set()
        return await fetch_prompt_columns(plan.endpoint, self.steps) if can_render else {}

    def end_without_verdict(self, failure_class: str, sentence: str) -> None:
        """End the trial with an infrastructure error or an internal error.

        Requests that were sent are still counted.

        Args:
            failure_class: the failure class to store.
            sentence: explanation for the user, cut off at 4,000 characters.
        """
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
        """End the trial with an internal error. Its steps are not read: they may have caused the error."""
        self._put_outcome(build_internal_error_columns(describe_internal_error(error)))

    def _build_run_context(self, plan: TrialPlan, call_tool: Callable[[str, JsonObject, str], object]) -> RunContext:
        return RunContext(
            endpoint=plan.endpoint,
            client=self.context.client,
            call_tool=call_tool,
            gate=self.gate,
            recorder=self,
            clock=time.perf_counter,
            cancelled=self.cancellation_token,
        )

    def _build_columns(self, plan: TrialPlan, execution: FinishedExecution) -> JsonObject:
        outcome = build_trial_columns(execution)
        return {
            **outcome,
            **self._build_cause_columns(outcome, plan.scenario.build_expected_calls(plan.instance)),
            "seed_sent": plan.loop.seed is not None and bool(execution.loop_result.turns),
            "prompt_version": build_prompt_version(plan.loop.policy, plan.instance),
            "plan_hash": plan.hash,
            "engine_version": compute_engine_version(),
            "client_lag_ms": self.worst_lag_ms,
        }

    def _build_cause_columns(self, outcome: JsonObject, expected_calls: ExpectedCalls) -> JsonObject:
        steps = build_wire_steps(self.steps)
        return build_cause_columns(
            steps, outcome, scenario=self.trial.scenario, grades=grade_calls(steps, expected_calls)
        )

    def _put_outcome(self, columns: JsonObject) -> None:
        steps = tuple(map(self._build_step_write, self.steps))
        outcome = OutcomeWrite(
            self.trial.id, self.trial.lease, columns, unsent_requests=self.gate.reserved_requests, steps=steps
        )
        self.context.writer.put_outcome(outcome)

    def _build_step_write(self, step: AnyStep) -> StepWrite:
        return StepWrite(self.trial.id, self.trial.execution, self.trial.lease, step)
