"""What a way of asking makes of an answer."""

from toolbench.engine.formats import split_reasoning
from toolbench.engine.json_text import string_in
from toolbench.engine.messages import Finding, JsonObject, Message, ParseError, TransformChange
from toolbench.engine.values import light
from toolbench.engine.wires.reading import text_of

_REASONING = "reasoning_content"


@light(frozen=True, slots=True)
class Read:
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


def thought_apart(message: Message) -> tuple[str, Message | None]:
    """The answer's text without the reasoning that stands closed in it, in which nothing is called; and the message
    with that reasoning in its own field, None where there is none."""
    text, thought = split_reasoning(text_of(message))
    if not thought:
        return text, None
    together = "\n".join(filter(None, (string_in(message.get(_REASONING)), thought)))
    return text, {**message, "content": text, _REASONING: together}
