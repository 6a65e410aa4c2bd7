"""The result of parsing an answer by a method."""

from toolbench.engine.light_dataclass import light
from toolbench.engine.types import Finding, JsonObject, Message, ParseError, TransformChange


@light(frozen=True, slots=True)
class ParsedAnswer:
    """A parsed answer.

    Attributes:
        calls: calls in OpenAI's format.
        text: the text without the calls.
        method_used: the method used: tool_use, json_fallback, constrained, template or text.
        has_unexecuted_call: whether the model intended a call that will not run.
        message: the answer for the history; None for the received message.
        parsed_arguments: parsed arguments of each call, if the method parsed them already; else empty.
    """

    calls: tuple[JsonObject, ...]
    text: str
    method_used: str
    findings: tuple[Finding, ...] = ()
    has_unexecuted_call: bool = False
    message: Message | None = None
    parse_errors: tuple[ParseError, ...] = ()
    changes: tuple[TransformChange, ...] = ()
    parsed_arguments: tuple[object, ...] = ()
