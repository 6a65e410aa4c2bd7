"""The result of parsing an answer by a method."""

from toolbench.engine.light_dataclass import light
from toolbench.engine.types import Finding, JsonObject, Message, ParseError, TransformChange


@light(frozen=True, slots=True)
class ParsedAnswer:
    """A parsed answer.

    Attributes:
        calls: calls in OpenAI's format.
        text: the text without the calls.
        path: the method used: tool_use, json_fallback, constrained, template or text.
        not_executed: whether the model intended a call that will not run.
        message: the answer for the history; None for the received message.
        values: parsed arguments of each call, if the method parsed them already; else empty.
    """

    calls: tuple[JsonObject, ...]
    text: str
    path: str
    findings: tuple[Finding, ...] = ()
    not_executed: bool = False
    message: Message | None = None
    parse_errors: tuple[ParseError, ...] = ()
    changes: tuple[TransformChange, ...] = ()
    values: tuple[object, ...] = ()
