"""The state of a running loop, and the type of further user messages."""

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
        has_calls: whether any answer so far had a call that the loop kept.
        has_success: whether any call so far succeeded.
        reprompt_count: number of re-prompts because a call could not run; the loop counts them.
    """

    def __init__(self, policy: Policy, history: Sequence[Message]) -> None:
        self.messages: list[Message] = list(history)
        self.has_calls = False
        self.has_success = False
        self.reprompt_count = 0
        self._policy = policy
        self._turns: list[TurnRecord] = []
        self._usage = Usage()
        self._is_ok_by_tool: dict[str, bool] = {}  # whether the latest call of each tool succeeded
        self._last_text = ""
        self._is_truncated = False

    def add_user_message(self, text: str) -> None:
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
        self._last_text = answer.text
        self._is_truncated = answer.finish_reason == "length"
        self.has_calls = self.has_calls or bool(answer.calls)
        self.messages.append(answer.message)

    def record_results(self, results: tuple[ToolResult, ...], tool_names: Sequence[str]) -> None:
        """Record results in the order of the calls.

        Args:
            results: the results.
            tool_names: for each result, the name of the tool, or the name in the call if there is no such tool.
        """
        self._turns[-1] = replace(self._turns[-1], results=results)
        for result, tool_name in zip(results, tool_names, strict=True):
            self._is_ok_by_tool[tool_name] = result.envelope.ok
            self.has_success = self.has_success or result.envelope.ok

    def build_final_result(self) -> LoopResult:
        """Return the result after an answer without calls.

        The end is FINAL, or LENGTH if the answer was truncated at the token limit. In enforced mode the end may be the
        error NO_TOOL_CALLS or TOOL_ERROR instead.
        """
        return replace(self._build_judged_result(), final_text=self._last_text)

    def _build_judged_result(self) -> LoopResult:
        """Return the result without its text, by the tool use mode and the tool failure policy."""
        if self._policy.tool_use_mode != "enforced":
            return self._build_answered_result()
        if not self.has_calls:
            return self.build_result(EndReason.NO_TOOL_CALLS, "The model called no tool.")
        if self._policy.tool_failure_policy == "tolerated":
            if self.has_success:
                return self._build_answered_result()
            return self.build_result(EndReason.TOOL_ERROR, "No tool call succeeded.")
        failed_tools = tuple(sorted(name for name, is_ok in self._is_ok_by_tool.items() if not is_ok))
        if failed_tools:
            message = f"The last call of these tools failed: {', '.join(failed_tools)}."
            return replace(self.build_result(EndReason.TOOL_ERROR, message), failed_tools=failed_tools)
        return self._build_answered_result()

    def _build_answered_result(self) -> LoopResult:
        return (
            self.build_result(EndReason.LENGTH, "The final answer was truncated at the token limit.")
            if self._is_truncated
            else self.build_result(EndReason.FINAL)
        )

    def build_stopped_result(self, stop: StopRun) -> LoopResult:
        """Return the result of a run that the driver ended early."""
        return self.build_result(*_END_BY_STOP_REASON[stop.reason])

    def build_result(self, end: EndReason, message: str = "", error: ExchangeError | None = None) -> LoopResult:
        """Return the result with messages, turns and usage so far; its final text is ""."""
        return LoopResult(
            end=end,
            final_text="",
            history=tuple(self.messages),
            turns=tuple(self._turns),
            usage=self._usage,
            message=message,
            error=error,
            reprompt_count=self.reprompt_count,
        )


@dataclass(frozen=True, slots=True)
class FurtherMessage:
    """A further message of the user, sent after an answer without calls.

    Attributes:
        text: the text. If it is blank, no message is added, but an answer is requested.
        tools: the tools that are offered from this message on, in addition to the earlier ones.
    """

    text: str
    tools: tuple[ToolDefinition, ...] = ()
