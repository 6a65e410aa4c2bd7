"""What a running loop has seen: the conversation, the turns, the usage, and how good the tools' results were."""

from collections.abc import Sequence
from dataclasses import replace

from toolbench.engine.events import End, Ended, ExchangeError, Request, Stop, StopReason, ToolResult, TurnRecord
from toolbench.engine.messages import Message, Turn, Usage
from toolbench.engine.policy.policy import Policy
from toolbench.engine.wires.usage import add_usage

_STOPPED = {
    StopReason.DEADLINE: (End.DEADLINE_EXCEEDED, "The run took longer than it was allowed to."),
    StopReason.CANCELLED: (End.CANCELLED, "The run was cancelled."),
    StopReason.BUDGET: (End.BUDGET_SPENT, "The run's budget is spent."),
}


class Ledger:
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

    def asked(self, request: Request) -> None:
        self._turns.append(TurnRecord(request.turn, request, None))

    def failed(self, error: ExchangeError) -> None:
        self._turns[-1] = replace(self._turns[-1], failure=error)

    def answered(self, answer: Turn) -> None:
        self._turns[-1] = replace(self._turns[-1], answer=answer)
        self._usage = add_usage(self._usage, answer.usage)
        self._text = answer.text
        self._cut = answer.finish_reason == "length"
        self.any_calls = self.any_calls or bool(answer.calls)
        self.messages.append(answer.message)

    def resulted(self, results: tuple[ToolResult, ...], names: Sequence[str]) -> None:
        """Results in call order, each with the name it counts under."""
        self._turns[-1] = replace(self._turns[-1], results=results)
        for result, name in zip(results, names, strict=True):
            self._latest_ok[name] = result.envelope.ok
            self.any_success = self.any_success or result.envelope.ok

    def final(self) -> Ended:
        """The end after an answer without calls. Only the enforced mode can turn it into an error; LENGTH says that the
        token limit cut the answer."""
        return replace(self._judged(), final_text=self._text)

    def _judged(self) -> Ended:
        if self._policy.tool_use_mode != "enforced":
            return self._answered()
        if not self.any_calls:
            return self.ended(End.NO_TOOL_CALLS, "The model called no tool.")
        if self._policy.tool_failure_policy == "tolerated":
            if self.any_success:
                return self._answered()
            return self.ended(End.TOOL_ERROR, "No tool call succeeded.")
        failed = tuple(sorted(name for name, ok in self._latest_ok.items() if not ok))
        if failed:
            return replace(self.ended(End.TOOL_ERROR, f"Failed to the end: {', '.join(failed)}."), failed_tools=failed)
        return self._answered()

    def _answered(self) -> Ended:
        return self.ended(End.LENGTH, "The token limit cut the final answer.") if self._cut else self.ended(End.FINAL)

    def stopped(self, stop: Stop) -> Ended:
        return self.ended(*_STOPPED[stop.reason])

    def ended(self, end: End, message: str = "", error: ExchangeError | None = None) -> Ended:
        """The end with everything kept, without a final text."""
        return Ended(
            end=end,
            final_text="",
            history=tuple(self.messages),
            turns=tuple(self._turns),
            usage=self._usage,
            message=message,
            error=error,
            asked_again=self.asked_again,
        )
