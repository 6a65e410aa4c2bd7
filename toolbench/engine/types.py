"""Value types that the engine shares with other packages.

The dataclasses are declared with `light`: type checkers treat them as frozen, but assignments are not refused at run
time. A message is a plain dict in OpenAI's format, so that unknown fields are kept and sent back unchanged. The field
names of Usage, Finding, TransformChange, ParseError, SchemaError and Envelope are keys of the stored step details, so
they cannot be changed.
"""

from dataclasses import field
from typing import Any, TypeAlias

from toolbench.engine.light_dataclass import light
from toolbench.engine.strict_json import get_object

JsonObject: TypeAlias = dict[str, Any]
Message: TypeAlias = JsonObject

# Codes of findings about calls that the model attempted and that did not run.
CALL_ATTEMPT_CODES = ("call_in_text", "parse_error", "unasked_tool_calls")


@light(frozen=True, slots=True)
class ReadArguments:
    """The arguments of a call after reading.

    Attributes:
        status: ok, invalid_json or too_large.
        size_bytes: the size of the arguments in UTF-8 bytes. A text is measured without white space around it and,
            where they are accepted, without code fence and double encoding; a text that was parsed before is measured
            as a whole. An object or list is measured as compact JSON. 0 for other values, and for objects and lists
            that are nested too deeply or cannot be written as JSON.
        arguments: the object; None unless the status is ok.
        problem: why there is no object; "" if the status is ok.
    """

    status: str
    size_bytes: int
    arguments: JsonObject | None = None
    problem: str = ""


@light(frozen=True, slots=True)
class ToolCall:
    """A call of the model.

    Attributes:
        id: the call's id, trimmed; "" if the model sent none. Each call in `Turn.calls` has an id.
        name: the tool's name in the call, trimmed.
        arguments: a text, an object or anything else; in `Turn.calls` after tool call transforms and repairs.
        read_arguments: the result of `read_arguments`; None if the arguments were not read yet.
    """

    id: str
    name: str
    arguments: object = None
    read_arguments: ReadArguments | None = field(default=None, compare=False, repr=False)


@light(frozen=True, slots=True)
class Usage:
    """Tokens and cost of one answer, or of several; None for a figure that is not reported or implausible.

    Attributes:
        input_tokens: all tokens of the request, including cached ones.
        output_tokens: all tokens of the answer, including reasoning.
        cached_tokens: the input tokens that were read from a cache.
        reasoning_tokens: the output tokens of the reasoning.
        cost: the cost in US dollars, as the provider reports it.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost: float | None = None


@light(frozen=True, slots=True)
class Finding:
    """An observation about an answer.

    Attributes:
        code: a name in snake_case, which does not change between versions.
        message: a sentence for users.
        path: the JSON path of the value in the answer that the finding is about.
    """

    code: str
    message: str
    path: str = "$"


@light(frozen=True, slots=True)
class TransformChange:
    """A change that one named transform, repair or wire format made.

    Attributes:
        kind: message, tool, request, response, tool_call or tool_result for a transform of this kind; argument for a
            repair; wire for a value that the wire format cannot represent unchanged. It is also tool for a keyword that
            a constraint does not enforce, and request for a parameter or stop text that was left out.
        name: the name of the transform, repair or change.
        path: the JSON path of the changed value.
        before: the value before the change as text, which may be truncated; "" if there was none.
        after: the value after the change in the same form; "" if there is none.
    """

    kind: str
    name: str
    path: str
    before: str
    after: str


@light(frozen=True, slots=True)
class ParseError:
    """A call that could not be read, or only after repairs.

    Attributes:
        mode: how the call was requested: tool_use, json_fallback or the name of the method.
        error: why the call could not be read.
        snippet: the beginning of the call's text.
        call: the index of the call, from 0, among the answer's calls after tool call transforms; None if the error
            belongs to none of these calls.
        repairs: the names of the repairs that made the call readable; () for none.
        truncated: whether the end of the call is missing; such a call is not executed.
    """

    mode: str
    error: str
    snippet: str
    call: int | None = None
    repairs: tuple[str, ...] = ()
    truncated: bool = False

    @property
    def is_repaired(self) -> bool:
        """Whether repairs made the call readable and it was not truncated."""
        return bool(self.repairs) and not self.truncated


@light(frozen=True, slots=True)
class Turn:
    """One answer of the model, parsed.

    Attributes:
        message: the answer as it is kept in the history.
        text: the text of the answer without its calls.
        calls: the calls that the loop dispatches, each with an id that is unique in the turn.
        calls_found: all calls that the method read from the answer, before tool call transforms, repairs and limits.
        ignored_call_count: the number of calls that were dropped because of the limit per turn, because tools are off,
            or because the stream was truncated.
        finish_reason: the finish reason in OpenAI's terms, such as `stop`, or an unknown one as received; None if the
            answer has none.
        usage: the tokens and cost; None if the endpoint reports none.
        method_used: the method used: tool_use, json_fallback, constrained, template or text.
        changes: the changes that transforms and repairs made to the answer.
        findings: deviations of the answer from its format.
        upstream: the upstream provider that a router names; "" for none.
        model_echoed: the model that the answer names; "" for none.
        fingerprint: the `system_fingerprint` of the answer; "" for none.
        is_truncated: whether the stream was truncated. `calls` is then empty.
        is_paused: whether the endpoint paused the turn and continues it in its answer to the next request.
        parse_errors: the calls that could not be read, or only after repairs.
        has_unexecuted_call: whether the model attempted a call that is not valid, so that no call of the answer ran.
        mode: how calls were requested, as in ParseError; "" without tools.
    """

    message: Message
    text: str
    calls: tuple[ToolCall, ...] = ()
    calls_found: tuple[ToolCall, ...] = ()
    ignored_call_count: int = 0
    finish_reason: str | None = None
    usage: Usage | None = None
    method_used: str = "tool_use"
    changes: tuple[TransformChange, ...] = ()
    findings: tuple[Finding, ...] = ()
    upstream: str = ""
    model_echoed: str = ""
    fingerprint: str = ""
    is_truncated: bool = False
    is_paused: bool = False
    parse_errors: tuple[ParseError, ...] = ()
    has_unexecuted_call: bool = False
    mode: str = ""

    @property
    def stop_reason(self) -> str:
        """Why the answer ended: tool_use if it has calls, length if the token limit truncated it, else stop."""
        return "tool_use" if self.calls else "length" if self.finish_reason == "length" else "stop"

    @property
    def unexecuted_reason(self) -> str:
        """Why a call that the model attempted did not run, as a clause; "" unless `has_unexecuted_call` is set."""
        message = next(
            (
                finding.message
                for finding in self.findings
                if self.has_unexecuted_call and finding.code in CALL_ATTEMPT_CODES
            ),
            "",
        )
        return message[:1].lower() + message[1:].partition(";")[0].rstrip(".")

    @property
    def notice(self) -> str:
        """A sentence for users about why no tool ran; "" unless `has_unexecuted_call` is set."""
        return f"Tool not executed: {self.unexecuted_reason}." if self.has_unexecuted_call else ""


@light(frozen=True, slots=True)
class SchemaError:
    """One violation of a tool's schema by the arguments of a call.

    Attributes:
        path: a JSON path such as `$.ops[0].path`.
        kind: missing, type, enum, range, extra or other.
        message: the violation in words.
    """

    path: str
    kind: str
    message: str


@light(frozen=True, slots=True)
class Envelope:
    """The result of a call as it is reported to the model, before result transforms.

    Attributes:
        ok: whether the call succeeded.
        tool_name: the tool's name, or the name in the call if there is no such tool.
        data: the tool's output.
        errors: objects with the keys `code` and `message`.
    """

    ok: bool
    tool_name: str
    data: JsonObject = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    errors: tuple[JsonObject, ...] = ()


def get_called_function(call: JsonObject) -> JsonObject:
    """Return the `function` object of a call in OpenAI's format; {} if it has none."""
    return get_object(call.get("function"))


def remove_calls(message: Message) -> Message:
    """Return a copy of the message without `tool_calls`; all other fields are kept, also unknown ones."""
    return {key: value for key, value in message.items() if key != "tool_calls"}


class ResultMessage(dict[str, Any]):
    """A user message that carries a tool's result.

    The type distinguishes it from a message that the user wrote.
    """
