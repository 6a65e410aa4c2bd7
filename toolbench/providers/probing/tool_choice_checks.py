"""Checks of how calls are made: tool choice, parallel calls, empty arguments, Unicode, streams."""

from dataclasses import replace

from toolbench.engine.types import JsonObject
from toolbench.providers.probing.check_result import CheckOutcome, ProbeCheck, build_inconclusive
from toolbench.providers.probing.first_use_checks import build_echo_request
from toolbench.providers.probing.prober import ECHO_TOOL, PING_TOOL, Prober, ProbeRequest, ProbeResult

UNICODE_TEXT = 'naïve 東京 🦜 "quoted" back\\slash'
UNFORCED_CHANGE = "forced_choice_to_auto"  # name of a change by the wire format
_HELLO_REQUEST = ProbeRequest("", "Say hello.", (PING_TOOL, ECHO_TOOL))
_TWO_CALLS_REQUEST = ProbeRequest(
    'In your FIRST message make both calls at once: probe_echo {"value": "red"} and probe_echo {"value": "blue"}.',
    "Make both calls now.",
    (ECHO_TOOL,),
)


async def check_choice_none(prober: Prober) -> ProbeCheck:
    """Check that no call comes while tool_choice is none, although the prompt asks for one."""
    result = await prober.ask(replace(build_echo_request(prober.word), policy={"tool_choice": "none"}, turns=1))
    return _judge_choice(
        "none", result, met=_count_calls(result) == 0, otherwise="The endpoint calls although the choice is none."
    )


async def check_choice_required(prober: Prober) -> ProbeCheck:
    """Check that a call comes while tool_choice is required, although the prompt asks for none."""
    result = await prober.ask(replace(_HELLO_REQUEST, policy={"tool_choice": "required"}))
    return _judge_choice(
        "required", result, met=_count_calls(result) > 0, otherwise="Required is taken and not honoured."
    )


async def check_choice_named(prober: Prober) -> ProbeCheck:
    """Check that only the named tool is called, although the prompt asks for no call."""
    named: JsonObject = {"type": "function", "function": {"name": ECHO_TOOL.name}}
    result = await prober.ask(replace(_HELLO_REQUEST, policy={"tool_choice": named}))
    names = {call.name for call in result.turn.calls_found} if result.turn else set()
    return _judge_choice(
        "named", result, met=names == {ECHO_TOOL.name}, otherwise="A named tool is taken and not honoured."
    )


def _judge_choice(value: str, result: ProbeResult, *, met: bool, otherwise: str) -> ProbeCheck:
    slug = f"tool_choice_{value}"
    if result.error is not None:
        return _judge_refusal(slug, result, f"tool_choice {value}")
    if not met:
        held_back = any(change.name == UNFORCED_CHANGE for step in result.exchanges for change in step.request.changes)
        message = "The model takes no forced choice: auto was sent." if held_back else otherwise
        return ProbeCheck(slug, "failed", message, {}, result.numbers)
    message = f"tool_choice {value} is honoured."
    return ProbeCheck(slug, "passed", message, {"tool_choice_values": [value]}, result.numbers)


async def check_parallel(prober: Prober) -> ProbeCheck:
    """Check that two calls come in one answer on request.

    When parallel_tool_calls is false, at most one may come.
    """
    together = await prober.ask(replace(_TWO_CALLS_REQUEST, options={"parallel_tool_calls": True}))
    if together.error is not None:
        return _judge_refusal("parallel", together, "parallel_tool_calls")
    if _count_calls(together) == 0:
        message = "Inconclusive: the model made no call."
        return ProbeCheck("parallel", "unknown", message, exchanges=together.numbers)
    alone = await prober.ask(replace(_TWO_CALLS_REQUEST, options={"parallel_tool_calls": False}))
    numbers = (*together.numbers, *alone.numbers)
    several = _count_calls(together) > 1
    known: JsonObject = {"supports_parallel_tools": several}
    if _count_calls(alone) > 1:
        message = "Several calls come in one answer although parallel_tool_calls is false."
        return ProbeCheck("parallel", "failed", message, {**known, "ignores": ["parallel_tool_calls"]}, numbers)
    message = (
        "Two calls in one answer when asked for, one when not." if several else "One call at a time, whatever is asked."
    )
    return ProbeCheck("parallel", "passed" if several else "failed", message, known, numbers)


async def check_empty_arguments(prober: Prober) -> ProbeCheck:
    """Check that a tool without parameters is called with an empty object."""
    wish = ProbeRequest(
        "Call the tool probe_ping with exactly these arguments: {}.", "Call probe_ping now.", (PING_TOOL,)
    )
    result = await prober.ask(wish)
    if result.error is not None:
        return build_inconclusive("empty_arguments", result.error, result.numbers)
    if _count_calls(result) == 0:
        message = "Inconclusive: the model made no call."
        return ProbeCheck("empty_arguments", "unknown", message, exchanges=result.numbers)
    fine = result.find_call_arguments(PING_TOOL.name) == {}
    message = "An empty object came." if fine else "The arguments of a call without any are not an empty object."
    return ProbeCheck("empty_arguments", "passed" if fine else "failed", message, {}, result.numbers)


async def check_unicode(prober: Prober) -> ProbeCheck:
    """Check that letters, symbols, quotes and backslashes come back unchanged."""
    spelled = UNICODE_TEXT.replace("\\", "\\\\").replace('"', '\\"')
    system = f'Call the tool probe_echo with exactly these arguments: {{"value": "{spelled}"}}.'
    result = await prober.ask(ProbeRequest(system, "Make that call now.", (ECHO_TOOL,)))
    if result.error is not None:
        return build_inconclusive("unicode", result.error, result.numbers)
    arguments = result.find_call_arguments(ECHO_TOOL.name)
    if arguments is None:
        message = "Inconclusive: the model did not make the call."
        return ProbeCheck("unicode", "unknown", message, exchanges=result.numbers)
    fine = arguments.get("value") == UNICODE_TEXT
    message = "Every character came back." if fine else "The value came back with other characters."
    return ProbeCheck("unicode", "passed" if fine else "failed", message, {}, result.numbers)


async def check_stream(prober: Prober, whole: ProbeResult) -> ProbeCheck:
    """Check that the streamed answer to the same question has the same call as the `whole` answer."""
    result = await prober.ask(replace(build_echo_request(prober.word), stream=True, turns=1))
    if result.error is not None:
        return _judge_refusal("stream", result, "a streamed request with tools")
    if result.turn is None or not _count_calls(whole):
        return ProbeCheck(
            "stream", "unknown", "Inconclusive: there is no whole call to compare with.", {}, result.numbers
        )
    streamed, plain = result.find_call_arguments(ECHO_TOOL.name), whole.find_call_arguments(ECHO_TOOL.name)
    remarks = [finding.message for finding in result.turn.findings if finding.code.startswith("stream_")]
    if streamed != plain or result.turn.cut:
        message = " ".join(["Streamed, the call is another one or none.", *remarks])
        return ProbeCheck("stream", "failed", message, {"supports_stream_tools": False}, result.numbers)
    outcome: CheckOutcome = "failed" if remarks else "passed"
    message = " ".join(["The streamed call is the same.", *remarks])
    return ProbeCheck("stream", outcome, message, {"supports_stream_tools": True}, result.numbers)


def _count_calls(result: ProbeResult) -> int:
    return len(result.turn.calls_found) if result.turn else 0


def _judge_refusal(slug: str, result: ProbeResult, description: str) -> ProbeCheck:
    error = result.error
    if error is None or error.infrastructure:
        return build_inconclusive(slug, error, result.numbers)
    return ProbeCheck(slug, "failed", f"The endpoint refuses {description}: {error.message}", {}, result.numbers)
