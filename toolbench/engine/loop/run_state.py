"""The state of a running loop, and the further messages of its user."""

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
    """The state of a running loop, which only the loop changes.

    Attributes:
        messages: the conversation without the system text.
        asked_again: number of re-prompts because a call could not run.
    """

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
        """Add a user message; blank text adds none."""
        if text.strip():
            self.messages.append({"role": "user", "content": text})

    def record_request(self, request: Request) -> None:
        """Record a request as a new turn record."""
        self._turns.append(TurnRecord(request.turn, request, None))

    def record_failure(self, error: ExchangeError) -> None:
        """Record the error of the last request."""
        self._turns[-1] = replace(self._turns[-1], failure=error)

    def record_answer(self, answer: Turn) -> None:
        """Record the answer to the last request and add it to the conversation."""
        self._turns[-1] = replace(self._turns[-1], answer=answer)
        self._usage = add_usage(self._usage, answer.usage)
        self._text = answer.text
        self._cut = answer.finish_reason == "length"
        self.any_calls = self.any_calls or bool(answer.calls)
        self.messages.append(answer.message)

    def record_results(self, results: tuple[ToolResult, ...], names: Sequence[str]) -> None:
        """Record results in the order of the calls.

        Args:
            results: the results.
            names: for each, the tool name that it counts for.
        """
        self._turns[-1] = replace(self._turns[-1], results=results)
        for result, name in zip(results, names, strict=True):
            self._latest_ok[name] = result.envelope.ok
            self.any_success = self.any_success or result.envelope.ok

    def final(self) -> LoopResult:
        """Return the result after an answer without calls.

        Only the enforced mode can turn it into an error. LENGTH means that the token limit cut the answer.
        """
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
        """Return the result after a stop."""
        return self.ended(*_END_BY_STOP_REASON[stop.reason])

    def ended(self, end: EndReason, message: str = "", error: ExchangeError | None = None) -> LoopResult:
        """Return the result with all that happened, without a final text."""
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
    """A further message of the user, sent after an answer without calls.

    Attributes:
        tools: offered from this message on, in addition to the earlier ones.
    """

    text: str
    tools: tuple[ToolDefinition, ...] = ()
