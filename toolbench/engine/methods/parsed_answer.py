"""The result of parsing an answer by a method."""

from toolbench.engine.light_dataclass import light
from toolbench.engine.types import Finding, JsonObject, Message, ParseError, TransformChange


@light(frozen=True, slots=True)
class ParsedAnswer:
    """A parsed answer.

    Attributes:
        calls: calls in OpenAI's format.
        text: the visible text. Calls and reasoning that were read from it are removed; a final answer that the model
            wrote as JSON is replaced by its text.
        method_used: tool_use, json_fallback, constrained or template; text if neither a call nor a final answer in JSON
            was read.
        has_unexecuted_call: whether the model attempted a call that will not run.
        message: the answer for the history; None if it is the message that was parsed.
        parse_errors: parse errors with details; if empty, the loop builds one for each `parse_error` finding.
        changes: the changes that repairs made.
        parsed_arguments: the arguments of each call, if the method parsed them already; else empty.
        token_limit_findings: more findings, which apply only if the answer ended at the token limit.
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
    token_limit_findings: tuple[Finding, ...] = ()


def build_unexecuted_answer(text: str, code: str, message: str, path: str = "$.content") -> ParsedAnswer:
    """Return a parsed answer without calls, with one finding about an attempted call that will not run."""
    return ParsedAnswer((), text, "text", (Finding(code, message, path),), has_unexecuted_call=True)


def build_unasked_calls_answer(text: str) -> ParsedAnswer:
    """Return a parsed answer for `tool_calls` in an answer whose request had no `tools`; none will run."""
    message = "The answer has tool_calls although no tools were sent; they were not executed."
    return build_unexecuted_answer(text, "unasked_tool_calls", message, "$.tool_calls")
