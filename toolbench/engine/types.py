"""The words the engine and its neighbours speak in. All values are frozen; a message stays a plain OpenAI-shaped dict,
so that fields we do not know are kept and sent back untouched."""

from dataclasses import field
from typing import Any, TypeAlias

from toolbench.engine.light_dataclass import light
from toolbench.engine.strict_json import get_object

JsonObject: TypeAlias = dict[str, Any]
Message: TypeAlias = JsonObject

# Findings of calls that the model attempted and that did not run.
CALL_ATTEMPT_CODES = ("call_in_text", "parse_error", "unasked_tool_calls")


@light(frozen=True, slots=True)
class ReadArguments:
    """`status` is ok, invalid_json or too_large; `arguments` is None unless ok. `size` is UTF-8 bytes: of the trimmed,
    un-fenced text, or of the object as compact JSON. `problem` says what was wrong."""

    status: str
    size: int
    arguments: JsonObject | None = None
    problem: str = ""


@light(frozen=True, slots=True)
class ToolCall:
    """One call as the model made it. `arguments` is what came over the wire: a string, an object or anything else;
    `read` what was made of them, where they were read already."""

    id: str
    name: str
    arguments: object = None
    read: ReadArguments | None = field(default=None, compare=False, repr=False)


@light(frozen=True, slots=True)
class Usage:
    """Tokens of one answer or their sum; `None` means the endpoint did not say. `cost` in US dollars, the provider's
    own figure."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost: float | None = None


@light(frozen=True, slots=True)
class Finding:
    """Something worth saying about an answer. `code` is stable snake_case; `path` is a JSON path into what it speaks
    of."""

    code: str
    message: str
    path: str = "$"


@light(frozen=True, slots=True)
class TransformChange:
    """What one named transform did: `kind` is message, response, tool, tool_call or tool_result, or wire for what
    could not travel as it was; nothing changed gives no change."""

    kind: str
    name: str
    path: str
    before: str
    after: str


@light(frozen=True, slots=True)
class ParseError:
    """A call that could not be read as it came. `mode` is how it was asked for: tool_use, json_fallback or the method's
    name; `snippet` its beginning. `call` is its place among the calls found from 0, None where none was found at all.
    `repairs` made it readable, but a `truncated` one had to be ended by us and was not executed."""

    mode: str
    error: str
    snippet: str
    call: int | None = None
    repairs: tuple[str, ...] = ()
    truncated: bool = False

    @property
    def mended(self) -> bool:
        return bool(self.repairs) and not self.truncated


@light(frozen=True, slots=True)
class Turn:
    """One answer of the model, read. `calls_found` is before normalisation, `calls` what the loop keeps;
    `ignored_calls` were dropped by the per-turn cap or because tools are off. `path` says how calls were read:
    tool_use, json_fallback, constrained, template or text. `cut`: a stream broke off, and none of its calls is kept.
    `continues`: the endpoint paused and wants to be asked to go on. `not_executed`: the answer means a call that is
    none, and nothing of it ran. `mode` is how calls were asked for, as in ParseError; "" without tools."""

    message: Message
    text: str
    calls: tuple[ToolCall, ...] = ()
    calls_found: tuple[ToolCall, ...] = ()
    ignored_calls: int = 0
    finish_reason: str | None = None
    usage: Usage | None = None
    path: str = "tool_use"
    changes: tuple[TransformChange, ...] = ()
    findings: tuple[Finding, ...] = ()
    upstream: str = ""
    model_echoed: str = ""
    fingerprint: str = ""
    cut: bool = False
    continues: bool = False
    parse_errors: tuple[ParseError, ...] = ()
    not_executed: bool = False
    mode: str = ""

    @property
    def stop_reason(self) -> str:
        """tool_use only where a call exists; else length where the answer was cut there, or stop."""
        return "tool_use" if self.calls else "length" if self.finish_reason == "length" else "stop"

    @property
    def not_run_because(self) -> str:
        """Why a call that was meant did not run, as half a sentence; "" where none was meant."""
        said = next((one.message for one in self.findings if self.not_executed and one.code in CALL_ATTEMPT_CODES), "")
        return said[:1].lower() + said[1:].partition(";")[0].rstrip(".")

    @property
    def notice(self) -> str:
        """What the reader of this answer has to be told, "" for nothing: that no tool was run, and why."""
        return f"Tool not executed: {self.not_run_because}." if self.not_executed else ""


@light(frozen=True, slots=True)
class SchemaError:
    """One violation of a tool's schema: `path` is a JSON path such as `$.ops[0].path`, `kind` is missing, type, enum,
    range, extra or other."""

    path: str
    kind: str
    message: str


@light(frozen=True, slots=True)
class Envelope:
    """What the model is told about a call, before result transforms. `errors` holds {"code", "message"} objects."""

    ok: bool
    tool_name: str
    data: JsonObject = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    errors: tuple[JsonObject, ...] = ()


def get_called_function(call: JsonObject) -> JsonObject:
    """The name and the arguments of a call in OpenAI's shape; {} where it has none."""
    function = call.get("function")
    return get_object(function)


def remove_calls(message: Message) -> Message:
    """All else that it has, also fields nobody knows."""
    return {key: value for key, value in message.items() if key != "tool_calls"}


class ResultMessage(dict[str, Any]):
    """A message of the user's that tells a tool's result. It is known by its type: a user may say the same words."""
