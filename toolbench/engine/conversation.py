"""A conversation that goes on: what was said so far, and the plan of the loop's next run over it."""

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
    """Holds no socket and runs nothing: `say` gives the plan for one run of the loop, in which the answer's calls are
    run and their results fed back until there is a final text; `take` keeps what that run brought."""

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
        """From keys of the policy as they are documented (`max_turns=4`, `tool_use_mode="enforced"`). Raises
        PolicyError for a key or value that there is not."""
        patch = {"tool_choice": tool_choice, **settings}
        return cls(model, tools, resolve_policy([("conversation", patch)]).policy)

    def say(self, text: str) -> LoopPlan:
        """The plan of the next run. It changes nothing here; the run's end is to be given to `take`."""
        return LoopPlan(
            model=self.model,
            policy=self.policy,
            system=self.system,
            user_text=text,
            history=self.history,
            tools=self.tools,
            options=self.options,
            stream=self.stream,
        )

    def take(self, ended: LoopResult) -> bool:
        """Goes on from where the run ended. After one that broke off (a failing endpoint, a deadline, a cancel, a spent
        budget) nothing is kept and False is given: the same may be said again."""
        if ended.end in INCOMPLETE_ENDS:
            return False
        self.history = ended.history
        return True
