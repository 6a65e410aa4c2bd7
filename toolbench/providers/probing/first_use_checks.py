"""Checks of the probe at first use: one call, its result sent back, and a final answer.

They decide which method is used to request calls.
"""

from dataclasses import replace

from toolbench.engine.events import ExchangeError
from toolbench.engine.policy.optional_parameters import OPTIONAL_PARAMETERS, list_refused_parameters
from toolbench.engine.types import JsonObject, Turn
from toolbench.engine.visible_text import is_blank
from toolbench.providers.probing.check_result import ProbeCheck, build_inconclusive
from toolbench.providers.probing.format_detection import detect_format
from toolbench.providers.probing.prober import ECHO_TOOL, Prober, ProbeRequest, ProbeResult

_REJECTED_STATUSES = (400, 404, 405, 415, 422)
_TOOL_WORDS = ("tool", "function")


def build_echo_request(word: str) -> ProbeRequest:
    """Build a request for one call of `probe_echo` with this word and for a sentence about its result."""
    system = (
        f'Call the tool probe_echo with exactly these arguments: {{"value": "{word}"}}. '
        "When its result has come back, say in one sentence what it gave back."
    )
    going_on = {"drop_refused_parameters": True}  # a refused optional parameter says nothing about tools
    return ProbeRequest(system, f"Call probe_echo with the value {word} now.", (ECHO_TOOL,), policy=going_on, turns=3)


async def check_tools(prober: Prober) -> tuple[ProbeCheck, ProbeResult]:
    """Check whether calls come back in their own field.

    Returns:
        The check, and the result of the first request for checks that need no request of their own.
    """
    result = await prober.ask(build_echo_request(prober.word))
    error, turn = result.error, result.turn
    if error is not None or turn is None:
        return _judge_error(error, result), result
    if _has_native_call(turn):
        return _judge_call(result, prober.word), result
    if dialect := detect_format(turn.text, (ECHO_TOOL.to_openai(),)):
        message = f"The call stands in the text, in the dialect {dialect}, and not in tool_calls."
        known: JsonObject = {"supports_tool_use": False, "tools_field": "accepted", "text_format": dialect}
        return ProbeCheck("tools", "failed", message, known, result.numbers), result
    if turn.finish_reason == "length":
        message = "Inconclusive: the answer was cut before a call."
        return ProbeCheck("tools", "unknown", message, exchanges=result.numbers), result
    return await _check_without_call(prober, result), result


async def _check_without_call(prober: Prober, result: ProbeResult) -> ProbeCheck:
    """Ask again with tool_choice required, and compare token counts with a request without tools.

    A call that comes back decides. Equal token counts show dropped tools only if no call comes either: some endpoints
    leave tools out of their count.
    """
    bare = await prober.ask(replace(build_echo_request(prober.word), tools=(), turns=1))
    held = await prober.ask(replace(build_echo_request(prober.word), policy={"tool_choice": "required"}, turns=1))
    numbers = (*result.numbers, *bare.numbers, *held.numbers)
    if held.turn is not None and _has_native_call(held.turn):
        known: JsonObject = {"supports_tool_use": True, "tools_field": "accepted", "tool_choice_values": ["required"]}
        message = "The model calls only when tool_choice is required; left to itself it answers in words."
        return ProbeCheck("tools", "passed", message, known, numbers)
    if held.error is not None:
        return build_inconclusive("tools", held.error, numbers)
    if has_equal_token_counts(result, bare):
        message = "The endpoint drops the tools: as many tokens with them as without, and no call when one is required."
        return ProbeCheck("tools", "failed", message, {"supports_tool_use": False, "tools_field": "dropped"}, numbers)
    message = "The model answers in words, and tool_choice required does not change that."
    return ProbeCheck("tools", "failed", message, {"supports_tool_use": False, "tools_field": "accepted"}, numbers)


def check_round_trip(result: ProbeResult) -> ProbeCheck:
    """Check whether the endpoint accepts its own call with a result, and then answers with text."""
    later = [record for record in result.ended.turns if record.turn > 0]
    numbers = result.numbers
    if not later:
        return ProbeCheck("round_trip", "unknown", "Inconclusive: there was no call to give a result to.")
    if (error := later[0].failure) is not None:
        if error.infrastructure:
            return build_inconclusive("round_trip", error, numbers)
        return ProbeCheck("round_trip", "failed", f"Given its own call back, it answers: {error.message}", {}, numbers)
    last = later[-1].answer
    if last is None or is_blank(last.text):
        return ProbeCheck("round_trip", "failed", "After the result the answer is empty.", {}, numbers)
    return ProbeCheck("round_trip", "passed", "The result was taken and spoken about.", {}, numbers)


def has_equal_token_counts(with_tools: ProbeResult, without: ProbeResult) -> bool:
    """Return whether the endpoint reports the same number of input tokens with tools and without.

    The result is False when either answer has no token count.
    """
    counts = [result.turn.usage.input_tokens for result in (with_tools, without) if result.turn and result.turn.usage]
    return len(counts) == 2 and None not in counts and counts[0] == counts[1]


def _has_native_call(turn: Turn) -> bool:
    return turn.path == "tool_use" and bool(turn.calls)


def _judge_call(result: ProbeResult, word: str) -> ProbeCheck:
    known: JsonObject = {"supports_tool_use": True, "tools_field": "accepted", "tool_choice_values": ["auto"]}
    arguments = result.find_call_arguments(ECHO_TOOL.name)
    if arguments is None:
        message = "The answer calls, but not the tool it was asked for, or with arguments that break its schema."
        return ProbeCheck("tools", "failed", message, known, result.numbers)
    exact = arguments.get("value") == word
    message = "The call came back in tool_calls, its arguments valid" + ("." if exact else ", with another value.")
    return ProbeCheck("tools", "passed", message, known, result.numbers)


def _judge_error(error: ExchangeError | None, result: ProbeResult) -> ProbeCheck:
    """Return the check for an error; only an error that names tools shows something about tools."""
    if error is None or not _refuses_tools(error):
        return replace(build_inconclusive("tools", error, result.numbers), blocked=True)
    message = f"The endpoint refuses requests with tools: {error.message}"
    return ProbeCheck(
        "tools", "failed", message, {"supports_tool_use": False, "tools_field": "refused"}, result.numbers
    )


def _refuses_tools(error: ExchangeError) -> bool:
    """Return whether the error refuses tools.

    An error about the key, billing, rate limits, the server or an optional parameter is no refusal of tools.
    """
    named = any(word in error.message.lower() for word in _TOOL_WORDS)
    if list_refused_parameters(error, OPTIONAL_PARAMETERS):
        return False
    return error.status in _REJECTED_STATUSES and (error.tool_support or named)
