"""Checks of a model's calls: tool choice, parallel calls, empty arguments, Unicode, streamed calls."""

from dataclasses import replace

from toolbench.engine.types import JsonObject
from toolbench.providers.probing.check_result import CheckOutcome, ProbeCheck, build_inconclusive
from toolbench.providers.probing.first_use_checks import build_echo_request
from toolbench.providers.probing.prober import ECHO_TOOL, PING_TOOL, Prober, ProbeRequest, ProbeResult

UNICODE_TEXT = 'naïve 東京 🦜 "quoted" back\\slash'
UNFORCED_CHANGE = "forced_choice_to_auto"  # the Messages format makes this change for models without forced choice
_HELLO_REQUEST = ProbeRequest("", "Say hello.", (PING_TOOL, ECHO_TOOL))
_TWO_CALLS_REQUEST = ProbeRequest(
    'In your FIRST message make both calls at once: probe_echo {"value": "red"} and probe_echo {"value": "blue"}.',
    "Make both calls now.",
    (ECHO_TOOL,),
)


async def check_choice_none(prober: Prober) -> ProbeCheck:
    """Check that no call is made if tool_choice is none, although the prompt asks for one."""
    result = await prober.ask(replace(build_echo_request(prober.word), policy={"tool_choice": "none"}, turns=1))
    is_honoured = _count_calls(result) == 0
    return _judge_choice(
        "none", result, is_honoured=is_honoured, violation="A call is made although the choice is none."
    )


async def check_choice_required(prober: Prober) -> ProbeCheck:
    """Check that a call is made if tool_choice is required, although the prompt asks for none."""
    result = await prober.ask(replace(_HELLO_REQUEST, policy={"tool_choice": "required"}))
    is_honoured = _count_calls(result) > 0
    return _judge_choice("required", result, is_honoured=is_honoured, violation="tool_choice required has no effect.")


async def check_choice_named(prober: Prober) -> ProbeCheck:
    """Check that only the tool that tool_choice names is called, although the prompt asks for no call."""
    named: JsonObject = {"type": "function", "function": {"name": ECHO_TOOL.name}}
    result = await prober.ask(replace(_HELLO_REQUEST, policy={"tool_choice": named}))
    names = {call.name for call in result.turn.calls_found} if result.turn else set()
    is_honoured = names == {ECHO_TOOL.name}
    return _judge_choice("named", result, is_honoured=is_honoured, violation="tool_choice with a name has no effect.")


def _judge_choice(choice: str, result: ProbeResult, *, is_honoured: bool, violation: str) -> ProbeCheck:
    """Return the result of a check of tool_choice.

    Args:
        choice: none, required or named.
        result: result of the request.
        is_honoured: whether the answer obeys tool_choice.
        violation: sentence of the check if the answer does not obey.
    """
    slug = f"tool_choice_{choice}"
    if result.error is not None:
        return _judge_refusal(slug, result, f"tool_choice {choice}")
    if not is_honoured:
        was_unforced = any(
            change.name == UNFORCED_CHANGE for step in result.exchanges for change in step.request.changes
        )
        message = "The model does not support a forced choice, so auto was sent." if was_unforced else violation
        return ProbeCheck(slug, "failed", message, {}, result.exchange_numbers)
    message = f"tool_choice {choice} is honoured."
    return ProbeCheck(slug, "passed", message, {"tool_choice_values": [choice]}, result.exchange_numbers)


async def check_parallel(prober: Prober) -> ProbeCheck:
    """Check that an answer has several calls, but at most one if parallel_tool_calls is false.

    The prompt asks for two calls.
    """
    allowed = await prober.ask(replace(_TWO_CALLS_REQUEST, options={"parallel_tool_calls": True}))
    if allowed.error is not None:
        return _judge_refusal("parallel", allowed, "parallel_tool_calls")
    if _count_calls(allowed) == 0:
        message = "Inconclusive: the model made no call."
        return ProbeCheck("parallel", "unknown", message, exchanges=allowed.exchange_numbers)
    forbidden = await prober.ask(replace(_TWO_CALLS_REQUEST, options={"parallel_tool_calls": False}))
    exchange_numbers = (*allowed.exchange_numbers, *forbidden.exchange_numbers)
    has_more_than_one = _count_calls(allowed) > 1
    learned: JsonObject = {"supports_parallel_tools": has_more_than_one}
    if forbidden.error is not None:
        refusal = _judge_refusal("parallel", forbidden, "parallel_tool_calls false")
        return replace(refusal, learned=learned, exchanges=exchange_numbers)
    if _count_calls(forbidden) > 1:
        message = "An answer has several calls although parallel_tool_calls is false."
        return ProbeCheck(
            "parallel", "failed", message, {**learned, "ignores": ["parallel_tool_calls"]}, exchange_numbers
        )
    message = (
        "An answer has several calls only if they are allowed." if has_more_than_one else "Every answer has one call."
    )
    return ProbeCheck("parallel", "passed" if has_more_than_one else "failed", message, learned, exchange_numbers)


async def check_empty_arguments(prober: Prober) -> ProbeCheck:
    """Check that the arguments of a call to a tool without parameters are an empty object."""
    request = ProbeRequest(
        "Call the tool probe_ping with exactly these arguments: {}.", "Call probe_ping now.", (PING_TOOL,)
    )
    result = await prober.ask(request)
    if result.error is not None:
        return build_inconclusive("empty_arguments", result.error, result.exchange_numbers)
    if _count_calls(result) == 0:
        message = "Inconclusive: the model made no call."
        return ProbeCheck("empty_arguments", "unknown", message, exchanges=result.exchange_numbers)
    is_empty = result.find_call_arguments(PING_TOOL.name) == {}
    message = "The arguments are an empty object." if is_empty else "The arguments are not an empty object."
    return ProbeCheck("empty_arguments", "passed" if is_empty else "failed", message, {}, result.exchange_numbers)


async def check_unicode(prober: Prober) -> ProbeCheck:
    """Check that letters, symbols, quotes and backslashes of the prompt are unchanged in a call."""
    escaped = UNICODE_TEXT.replace("\\", "\\\\").replace('"', '\\"')
    system = f'Call the tool probe_echo with exactly these arguments: {{"value": "{escaped}"}}.'
    result = await prober.ask(ProbeRequest(system, "Make that call now.", (ECHO_TOOL,)))
    if result.error is not None:
        return build_inconclusive("unicode", result.error, result.exchange_numbers)
    arguments = result.find_call_arguments(ECHO_TOOL.name)
    if arguments is None:
        message = "Inconclusive: the model did not make the call."
        return ProbeCheck("unicode", "unknown", message, exchanges=result.exchange_numbers)
    is_unchanged = arguments.get("value") == UNICODE_TEXT
    message = "Every character is unchanged." if is_unchanged else "Characters of the value are changed."
    return ProbeCheck("unicode", "passed" if is_unchanged else "failed", message, {}, result.exchange_numbers)


async def check_stream(prober: Prober, whole: ProbeResult) -> ProbeCheck:
    """Check that a streamed answer has the same call as an answer without a stream.

    Args:
        prober: the prober.
        whole: result of the first request, whose answer was not streamed.
    """
    result = await prober.ask(replace(build_echo_request(prober.word), stream=True, turns=1))
    if result.error is not None:
        return _judge_refusal("stream", result, "a streamed request with tools")
    if result.turn is None or not _count_calls(whole):
        return ProbeCheck(
            "stream", "unknown", "Inconclusive: there is no call to compare with.", {}, result.exchange_numbers
        )
    streamed, expected = result.find_call_arguments(ECHO_TOOL.name), whole.find_call_arguments(ECHO_TOOL.name)
    remarks = [finding.message for finding in result.turn.findings if finding.code.startswith("stream_")]
    if streamed != expected or result.turn.is_truncated:
        message = " ".join(["The streamed call is missing or differs.", *remarks])
        return ProbeCheck("stream", "failed", message, {"supports_stream_tools": False}, result.exchange_numbers)
    outcome: CheckOutcome = "failed" if remarks else "passed"
    message = " ".join(["The streamed call is the same.", *remarks])
    return ProbeCheck("stream", outcome, message, {"supports_stream_tools": True}, result.exchange_numbers)


def _count_calls(result: ProbeResult) -> int:
    return len(result.turn.calls_found) if result.turn else 0


def _judge_refusal(slug: str, result: ProbeResult, description: str) -> ProbeCheck:
    """Return the result of a check whose request failed; `description` names what the request contained."""
    error = result.error
    if error is None or error.infrastructure:
        return build_inconclusive(slug, error, result.exchange_numbers)
    return ProbeCheck(
        slug, "failed", f"The endpoint refuses {description}: {error.message}", {}, result.exchange_numbers
    )
