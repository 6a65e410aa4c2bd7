"""Repair of calls whose arguments are not a JSON object, and parse errors of answers.

Each such call is recorded as a parse error, and repaired if the policy names repairs. Other calls are not affected.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

from toolbench.engine.arguments import INVALID_JSON, read_arguments
from toolbench.engine.light_dataclass import light
from toolbench.engine.methods.parsed_answer import ParsedAnswer
from toolbench.engine.policy.settings import Policy
from toolbench.engine.repairs import RepairedArguments, repair_arguments
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

# Names of methods in parse errors, where they differ from the name in the policy.
MODE_BY_METHOD = {"native": "tool_use", "text_json": "json_fallback"}
_CUT_OFF_PROBLEM = "the token limit cut the answer before the arguments"


@light(frozen=True, slots=True)
class RepairedCalls:
    """Calls after repairs.

    Attributes:
        calls: all calls in OpenAI's format, some with repaired arguments.
        read_arguments: the parsed arguments of each call; None where they have to be parsed again.
        changes: one change for each repair.
        findings: one finding for each call whose arguments are readable after repairs, even if they are truncated, and
            one for a last call without arguments in a truncated answer.
        parse_errors: one parse error for each call whose arguments are not a JSON object.
    """

    calls: list[JsonObject]
    read_arguments: list[ReadArguments | None]
    changes: tuple[TransformChange, ...] = ()
    findings: tuple[Finding, ...] = ()
    parse_errors: tuple[ParseError, ...] = ()


def get_mode_name(method: str) -> str:
    """Return the name of a method in parse errors: tool_use, json_fallback, or the name of the method."""
    return MODE_BY_METHOD.get(method, method)


def repair_calls(
    calls: Sequence[JsonObject], policy: Policy, *, mode: str, is_truncated: bool, parsed_values: Sequence[object] = ()
) -> RepairedCalls:
    """Parse and repair the arguments of calls.

    Truncated arguments are recorded, but left unchanged, so that the call is refused later.

    Args:
        calls: calls in OpenAI's format.
        policy: the settings of the run.
        mode: name of the method in parse errors, from `get_mode_name`.
        is_truncated: whether the answer was truncated at the token limit.
        parsed_values: the arguments of each call if the method parsed them already; else empty.
    """
    repaired_calls = list(calls)
    all_arguments_read: list[ReadArguments | None] = []
    changes: list[TransformChange] = []
    findings: list[Finding] = []
    parse_errors: list[ParseError] = []
    for index, (call, parsed_value) in enumerate(zip_longest(calls, parsed_values)):
        raw_arguments = get_called_function(call).get("arguments")
        is_standard_only = policy.wire_standard_only
        arguments_read = read_arguments(
            raw_arguments, policy.max_tool_args_bytes, parsed_value=parsed_value, is_standard_only=is_standard_only
        )
        # Missing arguments become `{}` later and are parsed again, unless the policy accepts only published standards.
        is_reading_kept = raw_arguments is not None or is_standard_only
        all_arguments_read.append(arguments_read if is_reading_kept else None)
        if arguments_read.status != INVALID_JSON:
            continue
        repaired_arguments = None
        if isinstance(raw_arguments, str):
            repaired_arguments = repair_arguments(raw_arguments, policy.argument_repairs, is_truncated=is_truncated)
        if repaired_arguments is not None and not repaired_arguments.repair_names:
            repaired_arguments = None  # only blanks were trimmed, which is no repair
        path = f"$.tool_calls[{index}].function.arguments"
        raw_text, problem = str(raw_arguments), arguments_read.problem
        parse_errors.append(
            build_parse_error(mode, problem, raw_text, call_index=index, repaired_arguments=repaired_arguments)
        )
        if repaired_arguments is not None:
            findings.append(build_repair_finding(repaired_arguments, path))
        if repaired_arguments is not None and not repaired_arguments.is_truncated:
            repaired_calls[index] = {**call, "function": {**call["function"], "arguments": repaired_arguments.text}}
            all_arguments_read[index] = None
            changes += build_repair_changes(raw_text, repaired_arguments, path)
    return RepairedCalls(repaired_calls, all_arguments_read, tuple(changes), tuple(findings), tuple(parse_errors))


def refuse_blank_last_call(
    repaired_calls: RepairedCalls, received_calls: Sequence[JsonObject], mode: str
) -> RepairedCalls:
    """Refuse the last call of an answer if the answer was truncated before the arguments of this call.

    Call it only for an answer that was truncated at the token limit.

    Args:
        repaired_calls: the calls of the answer.
        received_calls: the calls before tool call transforms, which may fill in blank arguments.
        mode: name of the method in parse errors, from `get_mode_name`.

    Returns:
        The calls, unchanged if the last one was received with arguments. Otherwise the last call counts as unreadable,
        with a finding and a truncated parse error.
    """
    arguments = get_called_function(received_calls[-1]).get("arguments") if received_calls else "{}"
    if not (arguments is None or (isinstance(arguments, str) and not arguments.strip())):
        return repaired_calls
    index = len(repaired_calls.calls) - 1
    message = "This call was not executed: the token limit cut the answer before its arguments."
    return replace(
        repaired_calls,
        read_arguments=[
            *repaired_calls.read_arguments[:-1],
            ReadArguments(INVALID_JSON, 0, problem=_CUT_OFF_PROBLEM),
        ],
        findings=(
            *repaired_calls.findings,
            Finding("arguments_truncated", message, f"$.tool_calls[{index}].function.arguments"),
        ),
        parse_errors=(
            *(error for error in repaired_calls.parse_errors if error.call != index),
            ParseError(mode, _CUT_OFF_PROBLEM, "", index, truncated=True),
        ),
    )


def list_parse_errors(parsed_answer: ParsedAnswer, mode: str) -> tuple[ParseError, ...]:
    """Return the parse errors of an answer.

    They are the ones that the method recorded, or, if it recorded none, one for each `parse_error` finding.
    """
    if parsed_answer.parse_errors:
        return parsed_answer.parse_errors
    return _build_parse_errors(parsed_answer.findings, mode, parsed_answer.text)


def build_violation_errors(violations: Sequence[Finding], received: Message, mode: str) -> tuple[ParseError, ...]:
    """Return the parse errors of calls that no published standard allows.

    Args:
        violations: the findings about these calls.
        received: the message before response transforms, whose calls are quoted.
        mode: name of the method in parse errors.
    """
    calls = received.get("tool_calls") or received.get("function_call")
    return _build_parse_errors(violations, mode, write_json(calls) if violations else "")


def _build_parse_errors(findings: Sequence[Finding], mode: str, text: str) -> tuple[ParseError, ...]:
    """Return one parse error for each `parse_error` finding, with its message up to the first semicolon."""
    messages = [finding.message.partition(";")[0] for finding in findings if finding.code == "parse_error"]
    return tuple(build_parse_error(mode, error, text) for error in messages)


def build_parse_error(
    mode: str,
    error: str,
    text: str,
    *,
    call_index: int | None = None,
    repaired_arguments: RepairedArguments | None = None,
) -> ParseError:
    """Return the parse error of a call.

    Args:
        mode: name of the method in parse errors.
        error: why the call could not be read.
        text: the text of the call; the parse error keeps the beginning of it.
        call_index: index of the call, from 0; None if the error belongs to no call of the answer.
        repaired_arguments: the result of the repairs; None if no repair helped or was tried.
    """
    repair_names, is_truncated = (
        (repaired_arguments.repair_names, repaired_arguments.is_truncated) if repaired_arguments else ((), False)
    )
    return ParseError(mode, error, truncate_snippet(text), call_index, repair_names, is_truncated)


def build_repair_finding(repaired_arguments: RepairedArguments, path: str) -> Finding:
    """Return the finding that names the repairs of a call, and says if the call was truncated."""
    names = ", ".join(repaired_arguments.repair_names)
    if repaired_arguments.is_truncated:
        message = f"The arguments break off, and repairs added their end ({names}), so the call was not executed."
        return Finding("arguments_truncated", message, path)
    return Finding("arguments_repaired", f"The arguments were not a JSON object and were repaired: {names}.", path)


def build_repair_changes(
    text_before: str, repaired_arguments: RepairedArguments, path: str
) -> tuple[TransformChange, ...]:
    """Return one change for each repair.

    The first change holds the beginning of the text before all repairs, the last change the beginning of the text
    after all of them; the other sides are empty.
    """
    ((_, before_excerpt, after_excerpt),) = list_changes(text_before, repaired_arguments.text)
    last_index = len(repaired_arguments.repair_names) - 1
    return tuple(
        TransformChange(
            "argument", name, path, before_excerpt if index == 0 else "", after_excerpt if index == last_index else ""
        )
        for index, name in enumerate(repaired_arguments.repair_names)
    )
