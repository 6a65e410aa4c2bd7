"""What a way of asking makes of an answer."""

from toolbench.engine.light_dataclass import light
from toolbench.engine.types import Finding, JsonObject, Message, ParseError, TransformChange


@light(frozen=True, slots=True)
class ParsedAnswer:
    """One answer, read. `calls` are in OpenAI's shape, `text` what is left beside them, `path` one of tool_use,
    json_fallback, constrained, template, text. `not_executed` is true when the model meant a call that will not run.
    `message` is the answer for the history, where that is not the message as it came. `values` are the arguments of
    each call where `calls` were written from them, so that nobody has to read them again."""

    calls: tuple[JsonObject, ...]
    text: str
    path: str
    findings: tuple[Finding, ...] = ()
    not_executed: bool = False
    message: Message | None = None
    parse_errors: tuple[ParseError, ...] = ()
    changes: tuple[TransformChange, ...] = ()
    values: tuple[object, ...] = ()
