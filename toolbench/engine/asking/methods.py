"""The ways of asking for calls. Each shapes a request, reads an answer and writes history in its own form; the loop
does not know which one it uses."""

from collections.abc import Callable, Sequence
from typing import Protocol

from toolbench.engine.asking.constrained import Constrained
from toolbench.engine.asking.native import Native
from toolbench.engine.asking.read import Read
from toolbench.engine.asking.strict_calls import StrictCalls
from toolbench.engine.asking.template import Template
from toolbench.engine.asking.text_json import TextJson
from toolbench.engine.asking.watching import Watch
from toolbench.engine.constrain.compiling import Asked
from toolbench.engine.constrain.dialects import CONSTRAINTS, OF_TOOLS
from toolbench.engine.errors import PlanError
from toolbench.engine.messages import JsonObject, Message, ToolCall, TransformChange
from toolbench.engine.policy.policy import Policy
from toolbench.engine.tools.choice import WireChoice
from toolbench.engine.tools.definitions import ToolDefinition


class Asking(Protocol):
    """`prompt_version` names the instruction that is sent, "" for none."""

    method: str
    prompt_version: str

    def shape(
        self, body: JsonObject, tools: Sequence[ToolDefinition], tools_json: list[JsonObject], tool_choice: WireChoice
    ) -> JsonObject:
        """A new body that asks for calls of these tools; without tools, the body as it is. `tools_json` is what the
        transforms made of them."""
        ...

    def read(self, message: Message, tools: Sequence[ToolDefinition]) -> Read:
        """The calls and the text of an answer."""
        ...

    def watch(self, tools: Sequence[ToolDefinition]) -> Callable[[], Watch] | None:
        """What makes, for each attempt, a Watch that finds calls in the text of a streamed answer; None where they come
        in their own field."""
        ...

    def assistant_message(self, message: Message, calls: Sequence[JsonObject]) -> Message:
        """The answer as it stands in the history, with only the calls that were kept."""
        ...

    def result_messages(self, call: ToolCall, content: str) -> list[Message]:
        """The messages that give a call's result back to the model."""
        ...

    def render_history(self, messages: Sequence[Message]) -> list[Message]:
        """Examples written in OpenAI's shape, in this method's own form."""
        ...

    def dropped(self, tools_json: list[JsonObject], tool_choice: WireChoice) -> tuple[TransformChange, ...]:
        """What of the tools' schemas a constraint does not hold. Raises PlanError for a schema that it cannot use."""
        ...


def ask_for(policy: Policy, asked: Asked | None = None) -> Asking:
    """The way of asking that the policy names; `asked` matters to constrained alone. Raises PlanError for a method, a
    constraint or a text format that there is not."""
    method, constraint = policy.method, policy.constraint
    if method == "native":
        return Native(instructed=policy.tool_use_prompt)
    if method == "text_json":
        return TextJson(policy.argument_repairs)
    if method == "template":
        return Template(policy.text_format, guess_untyped=policy.guess_untyped)
    if method == "constrained" and constraint in OF_TOOLS:
        return StrictCalls(constraint, asked or Asked())
    if method == "constrained" and constraint in CONSTRAINTS:
        return Constrained(constraint, asked or Asked())
    raise PlanError(f"No way of asking for {method!r} with {constraint!r}.")
