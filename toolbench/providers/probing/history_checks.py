"""Checks of accepted histories, dropped tools, invalid requests, reasoning and the API prefix."""

from dataclasses import replace

from toolbench.engine.events import ExchangeError
from toolbench.engine.types import JsonObject, Message
from toolbench.providers.endpoint import Endpoint
from toolbench.providers.http.error_body import find_message
from toolbench.providers.model_list import ProviderRequestError, list_models
from toolbench.providers.probing.answer_shape import find_reasoning_field, parse_raw_message
from toolbench.providers.probing.check_result import CheckOutcome, ProbeCheck, build_inconclusive
from toolbench.providers.probing.first_use_checks import build_echo_request, has_equal_token_counts
from toolbench.providers.probing.prober import ECHO_TOOL, Prober, ProbeRequest, ProbeResult

FOREIGN_ID, NINE_CHARACTER_ID = "call_probe_0123456789abcdef", "prb0a1b2c"
NINE_CHARACTER_PATTERN = "^[a-zA-Z0-9]{9}$"
_USUAL_PREFIXES = ("/v1", "", "/api/v1", "/openai/v1")
_NOT_FOUND_CODES = ("not_found", "not_an_answer", "redirect_refused", "server_failed")  # possible for a wrong address


def check_dropped_tools(result: ProbeResult, result_without_tools: ProbeResult) -> ProbeCheck:
    """Check whether tools reach the prompt, by the endpoint's counts of input tokens and by calls.

    If one of the counts is missing, the check is inconclusive, even with a call. Otherwise a call shows that the tools
    reached the model, and equal counts without a call show that they did not.

    Args:
        result: result of a request with tools.
        result_without_tools: result of the same request without tools.
    """
    exchange_numbers = (*result.exchange_numbers[:1], *result_without_tools.exchange_numbers)
    counts = [
        probe_result.turn.usage.input_tokens if probe_result.turn and probe_result.turn.usage else None
        for probe_result in (result, result_without_tools)
    ]
    if None in counts:
        return ProbeCheck(
            "dropped_tools", "unknown", "Inconclusive: the endpoint reports no tokens.", {}, exchange_numbers
        )
    if result.turn and result.turn.method_used == "tool_use" and result.turn.calls:
        message = f"The model made a call, so tools reach it ({counts[0]} tokens with them, {counts[1]} without)."
        return ProbeCheck("dropped_tools", "passed", message, {"tools_field": "accepted"}, exchange_numbers)
    if has_equal_token_counts(result, result_without_tools):
        message = f"The tools seem to be dropped: {counts[0]} tokens with them and without, and no call."
        return ProbeCheck("dropped_tools", "failed", message, exchanges=exchange_numbers)
    message = f"The tools reach the prompt: {counts[0]} tokens with them, {counts[1]} without."
    return ProbeCheck("dropped_tools", "passed", message, {"tools_field": "accepted"}, exchange_numbers)


async def ask_without_tools(prober: Prober) -> ProbeResult:
    """Send the request of `check_tools` without its tools, for `check_dropped_tools`."""
    return await prober.ask(replace(build_echo_request(prober.word), tools=(), turns=1))


def _build_history(call_id: str, content: str | None) -> tuple[Message, ...]:
    """Build a conversation with a call that another endpoint could have made, its result and an answer."""
    call = {"id": call_id, "type": "function", "function": {"name": ECHO_TOOL.name, "arguments": '{"value": "blue"}'}}
    return (
        {"role": "user", "content": "Call probe_echo with blue."},
        {"role": "assistant", "content": content, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": '{"value": "blue"}'},
        {"role": "assistant", "content": "It gave back blue."},
    )


async def check_foreign_history(prober: Prober) -> ProbeCheck:
    """Check whether the history may have call ids of another endpoint, and content null beside calls.

    The cases of `_HISTORY_CASES` are tried in order until one is accepted.
    """
    request = ProbeRequest("", "Which colour was it? Answer in one word.", (ECHO_TOOL,))
    exchange_numbers: tuple[int, ...] = ()
    error: ExchangeError | None = None
    for call_id, content, learned, sentence in _HISTORY_CASES:
        result = await prober.ask(replace(request, history=_build_history(call_id, content)))
        exchange_numbers = (*exchange_numbers, *result.exchange_numbers)
        error = result.error
        if error is None:
            outcome: CheckOutcome = "passed" if call_id == FOREIGN_ID and content is None else "failed"
            return ProbeCheck("foreign_history", outcome, sentence, learned, exchange_numbers)
        if error.infrastructure:
            return build_inconclusive("foreign_history", error, exchange_numbers)
    sentence = f"A conversation with calls of another endpoint is refused: {error.message if error else ''}"
    return ProbeCheck("foreign_history", "failed", sentence, {}, exchange_numbers)


# Each case: call id, content beside the call, and the capabilities and the sentence for an accepted history.
_HISTORY_CASES: tuple[tuple[str, str | None, JsonObject, str], ...] = (
    (FOREIGN_ID, None, {"content_null_ok": True}, "Ids of another endpoint and content null are accepted."),
    (
        NINE_CHARACTER_ID,
        None,
        {"content_null_ok": True, "tool_id_pattern": NINE_CHARACTER_PATTERN},
        "Only ids of nine characters are accepted.",
    ),
    (
        FOREIGN_ID,
        "",
        {"content_null_ok": False},
        "Ids of another endpoint are accepted, content null beside calls is not.",
    ),
    (
        NINE_CHARACTER_ID,
        "",
        {"content_null_ok": False, "tool_id_pattern": NINE_CHARACTER_PATTERN},
        "Only ids of nine characters are accepted, and content null beside calls is not.",
    ),
)


async def check_midturn_system(prober: Prober) -> ProbeCheck:
    """Check whether a system message is accepted in the middle of a conversation.

    The Messages API has no such message, so no request is sent to an endpoint with that wire format.
    """
    if prober.uses_messages:
        message = "The Messages API has a system text at the beginning only; later ones become part of a user message."
        return ProbeCheck("midturn_system", "failed", message, {"allows_midturn_system": False})
    history: tuple[Message, ...] = (
        {"role": "user", "content": "Hello."},
        {"role": "assistant", "content": "Hello."},
        {"role": "system", "content": "From now on answer in one word."},
    )
    result = await prober.ask(ProbeRequest("Be brief.", "Which colour is the sky?", history=history))
    error = result.error
    if error is None:
        message = "A later system message is accepted."
        return ProbeCheck("midturn_system", "passed", message, {"allows_midturn_system": True}, result.exchange_numbers)
    if error.infrastructure and error.status != 500:  # a refusal may have status 500, too
        return build_inconclusive("midturn_system", error, result.exchange_numbers)
    control = await prober.ask(ProbeRequest("Be brief.", "Which colour is the sky?", history=history[:2]))
    exchange_numbers = (*result.exchange_numbers, *control.exchange_numbers)
    if control.error is not None:
        return build_inconclusive("midturn_system", control.error, exchange_numbers)
    message = f"A request is refused because of a later system message: {error.message}"
    return ProbeCheck("midturn_system", "failed", message, {"allows_midturn_system": False}, exchange_numbers)


async def check_error_bodies(prober: Prober) -> ProbeCheck:
    """Check that an invalid request is refused with a status below 500 and a JSON body with a reason."""
    reply = await prober.post_raw({"messages": "this is no list"})
    exchange_numbers = (reply.exchange_number,)
    if reply.status is None or reply.status in (401, 402, 403, 429):
        return build_inconclusive("error_bodies", reply.error, exchange_numbers)
    if reply.status < 400:
        message = f"An invalid request is answered with {reply.status}."
        return ProbeCheck("error_bodies", "failed", message, exchanges=exchange_numbers)
    has_reason = bool(find_message(reply.payload)) and not isinstance(reply.payload, str)
    if reply.status < 500 and has_reason:
        message = f"An invalid request is refused with {reply.status} and a reason."
        return ProbeCheck("error_bodies", "passed", message, {}, exchange_numbers)
    problem = "which means a failure of the server" if reply.status >= 500 else "without a reason in a JSON body"
    message = f"An invalid request is refused with {reply.status}, {problem}."
    return ProbeCheck("error_bodies", "failed", message, {}, exchange_numbers)


def check_reasoning(result: ProbeResult) -> ProbeCheck:
    """Check where answers have reasoning, and whether the endpoint accepts it in the next request."""
    fields = {find_reasoning_field(parse_raw_message(step)) for step in result.exchanges} - {""}
    if not fields:
        message = "Inconclusive: no answer had reasoning."
        return ProbeCheck("reasoning_replay", "unknown", message, exchanges=result.exchange_numbers)
    later_turns = [record for record in result.loop_result.turns if record.turn > 0]
    if not later_turns:
        message = "Inconclusive: the answer had reasoning, but no call."
        return ProbeCheck("reasoning_replay", "unknown", message, exchanges=result.exchange_numbers)
    if (error := later_turns[0].failure) is not None:
        if error.infrastructure:
            return build_inconclusive("reasoning_replay", error, result.exchange_numbers)
        message = f"The endpoint refuses its own reasoning: {error.message}"
        return ProbeCheck("reasoning_replay", "failed", message, {"reasoning_replay": "none"}, result.exchange_numbers)
    place = "tags" if "tags" in fields else "details" if "reasoning_details" in fields else "field"
    message = f"Reasoning in {', '.join(sorted(fields))} is accepted in the next request."
    return ProbeCheck("reasoning_replay", "passed", message, {"reasoning_replay": place}, result.exchange_numbers)


async def check_prefix(prober: Prober, tools: ProbeCheck, error: ExchangeError | None) -> ProbeCheck:
    """Check whether the address is that of an API; if it is not, try the usual prefixes.

    A list of models shows that there is an API, even if the endpoint's model is not in the list.

    Args:
        prober: the prober.
        tools: result of `check_tools`.
        error: the error of the first request of `check_tools`, or None.
    """
    if not tools.blocked:
        return ProbeCheck("prefix", "passed", "The address is that of an API.", exchanges=tools.exchanges)
    if error is None or error.code not in _NOT_FOUND_CODES:
        return ProbeCheck("prefix", "unknown", "Inconclusive: the endpoint did not answer.", exchanges=tools.exchanges)
    endpoint, current = prober.endpoint, prober.endpoint.api_prefix.rstrip("/")
    if await _has_models(prober, endpoint):
        message = "The address is that of an API, which has a list of models: check the name of the model."
        return ProbeCheck("prefix", "passed", message, exchanges=tools.exchanges)
    for prefix in _USUAL_PREFIXES:
        other = replace(endpoint, api_prefix=prefix)
        if other.build_url("models") == endpoint.build_url("models") or not await _has_models(prober, other):
            continue
        message = (
            f"There is no API under {current or 'no prefix'}, but a list of models under {prefix or 'no prefix'}. "
            "Change the prefix of the provider."
        )
        return ProbeCheck("prefix", "failed", message, exchanges=tools.exchanges)
    message = "There is no API here or under the usual prefixes: check the address and the name of the model."
    return ProbeCheck("prefix", "unknown", message, exchanges=tools.exchanges)


async def _has_models(prober: Prober, endpoint: Endpoint) -> bool:
    """Return whether the endpoint has a list of models."""
    await prober.reserve()
    try:
        await list_models(endpoint)
    except ProviderRequestError:
        return False
    return True
