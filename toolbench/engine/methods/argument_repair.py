"""Repair of calls whose arguments are not a JSON object.

Each such call is recorded as a parse error, and repaired if the policy names repairs. Other calls are not affected.
"""

from collections.abc import Sequence
from itertools import zip_longest

from toolbench.engine.arguments import INVALID_JSON, read_arguments
from toolbench.engine.light_dataclass import light
from toolbench.engine.methods.parsed_answer import ParsedAnswer
from toolbench.engine.policy.settings import Policy
from toolbench.engine.repairs import RepairedArguments, repair
from toolbench.engine.strict_json import write_json
from toolbench.engine.transforms.changes import list_changes
from toolbench.engine.types import (
    Finding,
    JsonObject,
    Message,
    ParseError,
    ReadArguments,
    TransformChange,
    get_called_function,
)
from toolbench.engine.wire_formats.parse_answer import truncate_snippet

MODE_BY_METHOD = {"native": "tool_use", "text_json": "json_fallback"}


@light(frozen=True, slots=True)
class RepairedCalls:
    """Calls after repairs.

    Attributes:
        calls: the calls, some with repaired arguments.
        reads: the parsed arguments of each call; None where they have to be parsed again.
    """

    calls: list[JsonObject]
    reads: list[ReadArguments | None]
    changes: tuple[TransformChange, ...] = ()
    findings: tuple[Finding, ...] = ()
    parse_errors: tuple[ParseError, ...] = ()


def get_mode(method: str) -> str:
    """Return how parse errors name the method: tool_use, json_fallback, or the method."""
    return MODE_BY_METHOD.get(method, method)


def repair_calls(
    calls: Sequence[JsonObject], policy: Policy, *, mode: str, is_truncated: bool, values: Sequence[object] = ()
) -> RepairedCalls:
    """Parse and repair the arguments of calls.

    Truncated arguments are recorded, but left unchanged, so that the call is refused.

    Args:
        calls: calls in OpenAI's format.
        policy: the settings of the run.
        mode: how the calls were requested.
        is_truncated: whether the answer was truncated at the token limit.
        values: arguments that are parsed already, as in ParsedAnswer.
    """
    repaired_calls = list(calls)
    reads: list[ReadArguments | None] = []
    changes: list[TransformChange] = []
    findings: list[Finding] = []
    errors: list[ParseError] = []
    for index, (call, value) in enumerate(zip_longest(calls, values)):
        raw_arguments = get_called_function(call).get("arguments")
        standard_only = policy.wire_standard_only
        read = read_arguments(raw_arguments, policy.max_tool_args_bytes, value=value, standard_only=standard_only)
        is_kept_as_read = (
            raw_arguments is not None or standard_only
        )  # missing arguments become `{}` later and are parsed again
        reads.append(read if is_kept_as_read else None)
        if read.status != INVALID_JSON:
            continue
        repaired = (
            repair(raw_arguments, policy.argument_repairs, cut=is_truncated) if isinstance(raw_arguments, str) else None
        )
        path = f"$.tool_calls[{index}].function.arguments"
        errors.append(build_parse_error(mode, read.problem, str(raw_arguments), call=index, repaired=repaired))
        if repaired is not None:
            findings.append(build_repair_finding(repaired, path))
        if repaired is not None and not repaired.truncated:
            repaired_calls[index] = {**call, "function": {**call["function"], "arguments": repaired.text}}
            reads[index] = None
            changes += build_repair_changes(str(raw_arguments), repaired, path)
    return RepairedCalls(repaired_calls, reads, tuple(changes), tuple(findings), tuple(errors))


def list_unreadable_calls(parsed: ParsedAnswer, mode: str) -> tuple[ParseError, ...]:
    """Return the parse errors of an answer.

    They are those of the method, or else one for each `parse_error` finding.
    """
    if parsed.parse_errors:
        return parsed.parse_errors
    return _build_parse_errors(parsed.findings, mode, parsed.text)


def build_departure_errors(departures: Sequence[Finding], received: Message, mode: str) -> tuple[ParseError, ...]:
    """Return the parse errors of calls that no wire standard allows."""
    calls = received.get("tool_calls") or received.get("function_call")
    return _build_parse_errors(departures, mode, write_json(calls) if departures else "")


def _build_parse_errors(findings: Sequence[Finding], mode: str, text: str) -> tuple[ParseError, ...]:
    messages = [finding.message.partition(";")[0] for finding in findings if finding.code == "parse_error"]
    return tuple(build_parse_error(mode, error, text) for error in messages)


def build_parse_error(
    mode: str, error: str, text: str, *, call: int | None = None, repaired: RepairedArguments | None = None
) -> ParseError:
    """Return the record of unreadable text, with the beginning of `text`."""
    names, truncated = (repaired.repairs, repaired.truncated) if repaired else ((), False)
    return ParseError(mode, error, truncate_snippet(text), call, names, truncated)


def build_repair_finding(repaired: RepairedArguments, path: str) -> Finding:
    """Return the finding that names the repairs of a call."""
    names = ", ".join(repaired.repairs)
    if repaired.truncated:
        message = (
            f"The arguments break off; to read them their end had to be made up ({names}), so they were not executed."
        )
        return Finding("arguments_truncated", message, path)
    return Finding("arguments_repaired", f"The arguments were no JSON object and were repaired: {names}.", path)


def build_repair_changes(before: str, repaired: RepairedArguments, path: str) -> tuple[TransformChange, ...]:
    """Return one change for each repair; the first has the text before, the last the text after."""
    ((_, before_excerpt, after_excerpt),) = list_changes(before, repaired.text)
    last_index = len(repaired.repairs) - 1
    return tuple(
        TransformChange(
            "argument", name, path, before_excerpt if place == 0 else "", after_excerpt if place == last_index else ""
        )
        for place, name in enumerate(repaired.repairs)
    )
