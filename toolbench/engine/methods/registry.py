"""The ways of asking for calls. Each shapes a request, reads an answer and writes history in its own form; the loop
does not know which one it uses."""

from collections.abc import Callable, Sequence
from typing import Protocol

from toolbench.engine.constraints.compiling import ConstraintOptions
from toolbench.engine.constraints.schema_support import CONSTRAINTS, TOOL_CONSTRAINTS
from toolbench.engine.errors import PlanError
from toolbench.engine.methods.constrained import ConstrainedMethod
from toolbench.engine.methods.native import NativeMethod
from toolbench.engine.methods.native_strict import NativeStrictMethod
from toolbench.engine.methods.parsed_answer import ParsedAnswer
from toolbench.engine.methods.streaming_calls import FindCalls
from toolbench.engine.methods.template import TemplateMethod
from toolbench.engine.methods.text_json import TextJsonMethod
from toolbench.engine.policy.settings import Policy
from toolbench.engine.tools.choice import RequestChoice
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.types import JsonObject, Message, ToolCall, TransformChange


class CallMethod(Protocol):
    """`prompt_version` names the instruction that is sent, "" for none."""

    method: str
    prompt_version: str

    def prepare_body(
        self,
        body: JsonObject,
        tools: Sequence[ToolDefinition],
        tools_json: list[JsonObject],
        tool_choice: RequestChoice,
    ) -> JsonObject:
        """A new body that asks for calls of these tools; without tools, the body as it is. `tools_json` is what the
        transforms made of them."""
        ...

    def read(self, message: Message, tools: Sequence[ToolDefinition]) -> ParsedAnswer:
        """The calls and the text of an answer."""
        ...

    def watch(self, tools: Sequence[ToolDefinition]) -> Callable[[], FindCalls] | None:
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

    def dropped(self, tools_json: list[JsonObject], tool_choice: RequestChoice) -> tuple[TransformChange, ...]:
        """What of the tools' schemas a constraint does not hold. Raises PlanError for a schema that it cannot use."""
        ...


def build_method(policy: Policy, asked: ConstraintOptions | None = None) -> CallMethod:
    """The way of asking that the policy names; `asked` matters to constrained alone. Raises PlanError for a method, a
    constraint or a text format that there is not."""
    method, constraint = policy.method, policy.constraint
    if method == "native":
        return NativeMethod(instructed=policy.tool_use_prompt)
    if method == "text_json":
        return TextJsonMethod(policy.argument_repairs)
    if method == "template":
        return TemplateMethod(policy.text_format, guess_untyped=policy.guess_untyped)
    if method == "constrained" and constraint in TOOL_CONSTRAINTS:
        return NativeStrictMethod(constraint, asked or ConstraintOptions())
    if method == "constrained" and constraint in CONSTRAINTS:
        return ConstrainedMethod(constraint, asked or ConstraintOptions())
    raise PlanError(f"No way of asking for {method!r} with {constraint!r}.")
