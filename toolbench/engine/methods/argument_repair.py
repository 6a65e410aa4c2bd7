"""Calls whose arguments are not a JSON object: each is recorded, and repaired if the policy names repairs.

One unreadable call leaves the others unchanged.
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
    calls: Sequence[JsonObject], policy: Policy, *, mode: str, cut: bool, values: Sequence[object] = ()
) -> RepairedCalls:
    """Parse and repair the arguments of calls.

    Arguments that break off are read, but left unchanged, so that the call is refused.

    Args:
        calls: calls in OpenAI's format.
        policy: the settings of the run.
        mode: how the calls were requested.
        cut: whether the answer was ended from outside.
        values: arguments that are parsed already, as in ParsedAnswer.
    """
    mended = list(calls)
    reads: list[ReadArguments | None] = []
    changes: list[TransformChange] = []
    findings: list[Finding] = []
    errors: list[ParseError] = []
    for place, (call, value) in enumerate(zip_longest(calls, values)):
        written = get_called_function(call).get("arguments")
        standard_only = policy.wire_standard_only
        read = read_arguments(written, policy.max_tool_args_bytes, value=value, standard_only=standard_only)
        stays = written is not None or standard_only  # else an empty object will stand in its place
        reads.append(read if stays else None)
        if read.status != INVALID_JSON:
            continue
        found = repair(written, policy.argument_repairs, cut=cut) if isinstance(written, str) else None
        path = f"$.tool_calls[{place}].function.arguments"
        errors.append(build_parse_error(mode, read.problem, str(written), call=place, repaired=found))
        if found is not None:
            findings.append(build_repair_finding(found, path))
        if found is not None and not found.truncated:
            mended[place] = {**call, "function": {**call["function"], "arguments": found.text}}
            reads[place] = None
            changes += build_repair_changes(str(written), found, path)
    return RepairedCalls(mended, reads, tuple(changes), tuple(findings), tuple(errors))


def list_unreadable_calls(read: ParsedAnswer, mode: str) -> tuple[ParseError, ...]:
    """Return the parse errors of an answer's text: those of the method, or else one for each finding that is one."""
    if read.parse_errors:
        return read.parse_errors
    return _build_parse_errors(read.findings, mode, read.text)


def build_departure_errors(departures: Sequence[Finding], received: Message, mode: str) -> tuple[ParseError, ...]:
    """Return the parse errors of calls that no wire standard allows."""
    calls = received.get("tool_calls") or received.get("function_call")
    return _build_parse_errors(departures, mode, write_json(calls) if departures else "")


def _build_parse_errors(findings: Sequence[Finding], mode: str, written: str) -> tuple[ParseError, ...]:
    messages = [finding.message.partition(";")[0] for finding in findings if finding.code == "parse_error"]
    return tuple(build_parse_error(mode, error, written) for error in messages)


def build_parse_error(
    mode: str, error: str, written: str, *, call: int | None = None, repaired: RepairedArguments | None = None
) -> ParseError:
    """Return the record of unreadable text, with the beginning of `written`."""
    names, truncated = (repaired.repairs, repaired.truncated) if repaired else ((), False)
    return ParseError(mode, error, truncate_snippet(written), call, names, truncated)


def build_repair_finding(found: RepairedArguments, path: str) -> Finding:
    """Return the finding that names the repairs of a call."""
    names = ", ".join(found.repairs)
    if found.truncated:
        message = (
            f"The arguments break off; to read them their end had to be made up ({names}), so they were not executed."
        )
        return Finding("arguments_truncated", message, path)
    return Finding("arguments_repaired", f"The arguments were no JSON object and were repaired: {names}.", path)


def build_repair_changes(before: str, found: RepairedArguments, path: str) -> tuple[TransformChange, ...]:
    """Return one change for each repair; the first has the text before, the last the text after."""
    ((_, old, new),) = list_changes(before, found.text)
    last = len(found.repairs) - 1
    return tuple(
        TransformChange("argument", name, path, old if place == 0 else "", new if place == last else "")
        for place, name in enumerate(found.repairs)
    )
