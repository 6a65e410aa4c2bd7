"""A conversation over several runs of the loop: its history and the plan of the next run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from toolbench.engine.events import EndReason, LoopResult
from toolbench.engine.loop.run import LoopPlan
from toolbench.engine.policy.settings import Policy, resolve_policy
from toolbench.engine.tools.choice import ToolChoice
from toolbench.engine.tools.definitions import ToolRegistry
from toolbench.engine.types import JsonObject, Message

INCOMPLETE_ENDS = frozenset(
    {EndReason.PROVIDER_ERROR, EndReason.DEADLINE_EXCEEDED, EndReason.CANCELLED, EndReason.BUDGET_SPENT}
)


@dataclass(slots=True)
class Conversation:
    """A conversation with a model. It holds no connection and runs nothing itself.

    `say` returns the plan of the next run of the loop. Run it, then pass the result to `take`, which keeps the history
    of a complete run for the next plan.

    Attributes:
        model: the name of the model in requests.
        tools: the tools of all runs.
        system: the system prompt; "" for none.
        options: further parameters of the request bodies.
        stream: whether answers are requested as streams.
        history: the messages of all runs that `take` kept.
    """

    model: str
    tools: ToolRegistry = field(default_factory=ToolRegistry)
    policy: Policy = field(default_factory=Policy)
    system: str = ""
    options: JsonObject = field(default_factory=dict)
    stream: bool = False
    history: tuple[Message, ...] = ()

    @classmethod
    def with_settings(
        cls,
        model: str,
        tools: ToolRegistry,
        *,
        tool_choice: ToolChoice | str | Mapping[str, Any] = "auto",
        **settings: Any,
    ) -> "Conversation":
        """Build a conversation from policy keys, such as `max_turns=4` or `tool_use_mode="enforced"`.

        Raises:
            PolicyError: a key is unknown or its value is not allowed.
        """
        patch = {"tool_choice": tool_choice, **settings}
        return cls(model, tools, resolve_policy([("conversation", patch)]).policy)

    def say(self, text: str) -> LoopPlan:
        """Return the plan of the next run, which sends a user message.

        Nothing is sent here and the conversation does not change.

        Args:
            text: the user message.
        """
        return LoopPlan(
            model=self.model,
            policy=self.policy,
            system=self.system,
            user_text=text,
            history=self.history,
            tools=self.tools,
            options=self.options,
            is_streamed=self.stream,
        )

    def take(self, result: LoopResult) -> bool:
        """Keep the history of a complete run for the next plan.

        Returns:
            Whether the history was kept: False after an incomplete run (provider error, deadline, cancellation or spent
            budget). To send its message again, call `say` with the same text.
        """
        if result.end in INCOMPLETE_ENDS:
            return False
        self.history = result.history
        return True
