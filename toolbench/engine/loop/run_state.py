"""What a running loop has seen and what its user says next: conversation, turns, usage and results of tools."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from toolbench.engine.events import (
    EndReason,
    ExchangeError,
    LoopResult,
    Request,
    StopReason,
    StopRun,
    ToolResult,
    TurnRecord,
)
from toolbench.engine.policy.settings import Policy
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.types import Message, Turn, Usage
from toolbench.engine.wire_formats.usage import add_usage

_END_BY_STOP_REASON = {
    StopReason.DEADLINE: (EndReason.DEADLINE_EXCEEDED, "The run took longer than it was allowed to."),
    StopReason.CANCELLED: (EndReason.CANCELLED, "The run was cancelled."),
    StopReason.BUDGET: (EndReason.BUDGET_SPENT, "The run's budget is spent."),
}


class RunState:
    """Kept by the loop and by nobody else. `messages` is the conversation without the system text."""

    def __init__(self, policy: Policy, history: Sequence[Message]) -> None:
        self.messages: list[Message] = list(history)
        self.any_calls = False
        self.any_success = False
        self.asked_again = 0
        self._policy = policy
        self._turns: list[TurnRecord] = []
        self._usage = Usage()
        self._latest_ok: dict[str, bool] = {}
        self._text = ""
        self._cut = False

    def say(self, text: str) -> None:
        """Adds a user message; blank text adds none."""
        if text.strip():
            self.messages.append({"role": "user", "content": text})

    def record_request(self, request: Request) -> None:
        self._turns.append(TurnRecord(request.turn, request, None))

    def record_failure(self, error: ExchangeError) -> None:
        self._turns[-1] = replace(self._turns[-1], failure=error)

    def record_answer(self, answer: Turn) -> None:
        self._turns[-1] = replace(self._turns[-1], answer=answer)
        self._usage = add_usage(self._usage, answer.usage)
        self._text = answer.text
        self._cut = answer.finish_reason == "length"
        self.any_calls = self.any_calls or bool(answer.calls)
        self.messages.append(answer.message)

    def record_results(self, results: tuple[ToolResult, ...], names: Sequence[str]) -> None:
        """Results in call order, each with the name it counts under."""
        self._turns[-1] = replace(self._turns[-1], results=results)
        for result, name in zip(results, names, strict=True):
            self._latest_ok[name] = result.envelope.ok
            self.any_success = self.any_success or result.envelope.ok

    def final(self) -> LoopResult:
        """The end after an answer without calls. Only the enforced mode can turn it into an error; LENGTH says that the
        token limit cut the answer."""
        return replace(self._judged(), final_text=self._text)

    def _judged(self) -> LoopResult:
        if self._policy.tool_use_mode != "enforced":
            return self._answered()
        if not self.any_calls:
            return self.ended(EndReason.NO_TOOL_CALLS, "The model called no tool.")
        if self._policy.tool_failure_policy == "tolerated":
            if self.any_success:
                return self._answered()
            return self.ended(EndReason.TOOL_ERROR, "No tool call succeeded.")
        failed = tuple(sorted(name for name, ok in self._latest_ok.items() if not ok))
        if failed:
            return replace(
                self.ended(EndReason.TOOL_ERROR, f"Failed to the end: {', '.join(failed)}."), failed_tools=failed
            )
        return self._answered()

    def _answered(self) -> LoopResult:
        return (
            self.ended(EndReason.LENGTH, "The token limit cut the final answer.")
            if self._cut
            else self.ended(EndReason.FINAL)
        )

    def stopped(self, stop: StopRun) -> LoopResult:
        return self.ended(*_END_BY_STOP_REASON[stop.reason])

    def ended(self, end: EndReason, message: str = "", error: ExchangeError | None = None) -> LoopResult:
        """The end with everything kept, without a final text."""
        return LoopResult(
            end=end,
            final_text="",
            history=tuple(self.messages),
            turns=tuple(self._turns),
            usage=self._usage,
            message=message,
            error=error,
            asked_again=self.asked_again,
        )


@dataclass(frozen=True, slots=True)
class FurtherMessage:
    """One further message. `tools` are offered from then on, beside those that were offered before."""

    text: str
    tools: tuple[ToolDefinition, ...] = ()
