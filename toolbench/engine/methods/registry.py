"""The methods of requesting calls: each builds requests, parses answers and renders the history."""

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
    """A method of requesting calls.

    Attributes:
        method: name of the method in the policy.
        prompt_version: name and version of the instruction or prompt template that is sent; "" for none.
    """

    method: str
    prompt_version: str

    def prepare_body(
        self,
        body: JsonObject,
        tools: Sequence[ToolDefinition],
        tools_json: list[JsonObject],
        tool_choice: RequestChoice,
    ) -> JsonObject:
        """Return a new request body that requests calls of these tools.

        Without tools, the new body is equal to `body`. The method template is an exception: it always replaces the
        messages by a prompt.

        Args:
            body: the body so far, with `messages`.
            tools: the offered tools; empty for a request without tools.
            tools_json: the same tools in OpenAI's format, after tool transforms.
            tool_choice: the tool choice.
        """
        ...

    def parse_answer(self, message: Message, tools: Sequence[ToolDefinition]) -> ParsedAnswer:
        """Return the calls and the text of an answer; `tools` is empty if the request had no tools."""
        ...

    def build_watcher(self, tools: Sequence[ToolDefinition]) -> Callable[[], FindCalls] | None:
        """Return a function that builds a FindCalls for each attempt of a streamed answer.

        Returns:
            The function; None if calls have their own field, so that the decoder already emits their parts.
        """
        ...

    def build_assistant_message(self, message: Message, calls: Sequence[JsonObject]) -> Message:
        """Return the answer for the history; `calls` are the calls that the loop keeps."""
        ...

    def build_result_messages(self, call: ToolCall, content: str) -> list[Message]:
        """Return the messages that give a call's result to the model."""
        ...

    def render_history(self, messages: Sequence[Message]) -> list[Message]:
        """Return the history, given in OpenAI's format, in the form of this method."""
        ...

    def list_dropped_keywords(
        self, tools_json: list[JsonObject], tool_choice: RequestChoice
    ) -> tuple[TransformChange, ...]:
        """Return one change for each schema keyword that the constraint does not enforce.

        Raises:
            PlanError: a schema cannot be used.
        """
        ...


def build_method(policy: Policy, options: ConstraintOptions | None = None) -> CallMethod:
    """Return the method that the policy names.

    Args:
        policy: the settings of the run.
        options: options of a constraint; None for the defaults.

    Raises:
        PlanError: there is no such method, constraint or text format, or the method template does not know the turn
            tokens of the text format.
    """
    method, constraint = policy.method, policy.constraint
    if method == "native":
        return NativeMethod(sends_instruction=policy.tool_use_prompt)
    if method == "text_json":
        return TextJsonMethod(policy.argument_repairs)
    if method == "template":
        return TemplateMethod(policy.text_format, guess_untyped=policy.guess_untyped)
    if method == "constrained" and constraint in TOOL_CONSTRAINTS:
        return NativeStrictMethod(constraint, options or ConstraintOptions())
    if method == "constrained" and constraint in CONSTRAINTS:
        return ConstrainedMethod(constraint, options or ConstraintOptions())
    raise PlanError(f"There is no method {method!r} with the constraint {constraint!r}.")
