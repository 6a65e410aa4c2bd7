"""Checks of the probe at first use, in which a model makes one call, receives its result and answers.

The results decide which method is used to request calls.
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
    """Build a request for one call of `probe_echo` with this word, then a sentence about its result."""
    system = (
        f'Call the tool probe_echo with exactly these arguments: {{"value": "{word}"}}. '
        "When its result has come back, say in one sentence what it gave back."
    )
    policy = {"drop_refused_parameters": True}  # the refusal of an optional parameter is no evidence about tools
    return ProbeRequest(system, f"Call probe_echo with the value {word} now.", (ECHO_TOOL,), policy=policy, turns=3)


async def check_tools(prober: Prober) -> tuple[ProbeCheck, ProbeResult]:
    """Check whether the endpoint returns calls in their own field.

    Returns:
        The result of the check, and the result of its first request, which other checks use as well.
    """
    result = await prober.ask(build_echo_request(prober.word))
    error, turn = result.error, result.turn
    if error is not None or turn is None:
        return _judge_error(error, result), result
    if _has_native_call(turn):
        return _judge_call(result, prober.word), result
    if text_format := detect_format(turn.text, (ECHO_TOOL.to_openai(),)):
        message = f"The call is in the text, in the format {text_format}, and not in tool_calls."
        learned: JsonObject = {"supports_tool_use": False, "tools_field": "accepted", "text_format": text_format}
        return ProbeCheck("tools", "failed", message, learned, result.exchange_numbers), result
    if turn.finish_reason == "length":
        message = "Inconclusive: the answer was truncated before a call."
        return ProbeCheck("tools", "unknown", message, exchanges=result.exchange_numbers), result
    return await _check_without_call(prober, result), result


async def _check_without_call(prober: Prober, result: ProbeResult) -> ProbeCheck:
    """Check whether a required call is made; if it is not, check whether the endpoint drops the tools.

    Tools count as dropped if no call is made and the endpoint reports as many input tokens without tools as with them.
    Equal counts alone are no evidence, because some endpoints do not count tools.
    """
    without_tools = await prober.ask(replace(build_echo_request(prober.word), tools=(), turns=1))
    required = await prober.ask(replace(build_echo_request(prober.word), policy={"tool_choice": "required"}, turns=1))
    exchange_numbers = (*result.exchange_numbers, *without_tools.exchange_numbers, *required.exchange_numbers)
    if required.turn is not None and _has_native_call(required.turn):
        learned: JsonObject = {"supports_tool_use": True, "tools_field": "accepted", "tool_choice_values": ["required"]}
        message = "The model makes calls only if tool_choice is required; otherwise it answers with text."
        return ProbeCheck("tools", "passed", message, learned, exchange_numbers)
    if required.error is not None:
        return build_inconclusive("tools", required.error, exchange_numbers)
    if has_equal_token_counts(result, without_tools):
        message = "The endpoint drops the tools: they add no tokens, and a required call is not made."
        return ProbeCheck(
            "tools", "failed", message, {"supports_tool_use": False, "tools_field": "dropped"}, exchange_numbers
        )
    message = "The model answers with text, also if tool_choice is required."
    return ProbeCheck(
        "tools", "failed", message, {"supports_tool_use": False, "tools_field": "accepted"}, exchange_numbers
    )


def check_round_trip(result: ProbeResult) -> ProbeCheck:
    """Check whether the endpoint accepts its own call with a result and then answers with text.

    Args:
        result: result of the first request of `check_tools`.
    """
    later_turns = [record for record in result.loop_result.turns if record.turn > 0]
    exchange_numbers = result.exchange_numbers
    if not later_turns:
        return ProbeCheck("round_trip", "unknown", "Inconclusive: there was no call, so no result was sent.")
    if (error := later_turns[0].failure) is not None:
        if error.infrastructure:
            return build_inconclusive("round_trip", error, exchange_numbers)
        message = f"The endpoint refuses its own call with a result: {error.message}"
        return ProbeCheck("round_trip", "failed", message, {}, exchange_numbers)
    final_answer = later_turns[-1].answer
    if final_answer is None or is_blank(final_answer.text):
        return ProbeCheck("round_trip", "failed", "The answer to the result is empty.", {}, exchange_numbers)
    return ProbeCheck("round_trip", "passed", "The model answered the result with text.", {}, exchange_numbers)


def has_equal_token_counts(with_tools: ProbeResult, without_tools: ProbeResult) -> bool:
    """Return whether the endpoint reports the same number of input tokens with tools and without.

    Returns:
        False also if one of the answers has no token count.
    """
    results = (with_tools, without_tools)
    counts = [result.turn.usage.input_tokens for result in results if result.turn and result.turn.usage]
    return len(counts) == 2 and None not in counts and counts[0] == counts[1]


def _has_native_call(turn: Turn) -> bool:
    return turn.method_used == "tool_use" and bool(turn.calls)


def _judge_call(result: ProbeResult, word: str) -> ProbeCheck:
    learned: JsonObject = {"supports_tool_use": True, "tools_field": "accepted", "tool_choice_values": ["auto"]}
    arguments = result.find_call_arguments(ECHO_TOOL.name)
    if arguments is None:
        message = "The answer calls another tool than probe_echo, or its arguments do not match the schema."
        return ProbeCheck("tools", "failed", message, learned, result.exchange_numbers)
    is_exact = arguments.get("value") == word
    message = "The call is in tool_calls and its arguments are valid" + (
        "." if is_exact else ", but the value is not the requested one."
    )
    return ProbeCheck("tools", "passed", message, learned, result.exchange_numbers)


def _judge_error(error: ExchangeError | None, result: ProbeResult) -> ProbeCheck:
    """Return the result for a first answer that is an error or missing.

    An error that refuses tools shows that they are unsupported. Any other error, or a missing answer, blocks the probe.
    """
    if error is None or not _refuses_tools(error):
        return replace(build_inconclusive("tools", error, result.exchange_numbers), blocked=True)
    message = f"The endpoint refuses requests with tools: {error.message}"
    return ProbeCheck(
        "tools", "failed", message, {"supports_tool_use": False, "tools_field": "refused"}, result.exchange_numbers
    )


def _refuses_tools(error: ExchangeError) -> bool:
    """Return whether the endpoint refuses the tools with this error.

    An error about the key, billing, rate limits, the server or an optional parameter is no refusal of tools.
    """
    names_tools = any(word in error.message.lower() for word in _TOOL_WORDS)
    if list_refused_parameters(error, OPTIONAL_PARAMETERS):
        return False
    return error.status in _REJECTED_STATUSES and (error.tool_support or names_tools)
