"""Checks of accepted histories and requests.

They concern foreign history, later system messages, reasoning sent back, invalid requests and the prefix.
"""

from dataclasses import replace

from toolbench.engine.events import ExchangeError
from toolbench.engine.types import JsonObject, Message
from toolbench.providers.model_list import ProviderRequestError, list_models
from toolbench.providers.probing.answer_shape import find_reasoning_field, parse_raw_message
from toolbench.providers.probing.check_result import CheckOutcome, ProbeCheck, build_inconclusive
from toolbench.providers.probing.first_use_checks import build_echo_request, has_equal_token_counts
from toolbench.providers.probing.prober import ECHO_TOOL, Prober, ProbeRequest, ProbeResult

FOREIGN_ID, NINE_CHARACTER_ID = "call_probe_0123456789abcdef", "prb0a1b2c"
NINE_CHARACTER_PATTERN = "^[a-zA-Z0-9]{9}$"
PREFIXES = ("/v1", "", "/api/v1", "/openai/v1")
_NOT_FOUND_CODES = ("not_found", "not_an_answer", "redirect_refused", "server_failed")


def check_dropped_tools(result: ProbeResult, bare: ProbeResult) -> ProbeCheck:
    """Compare the endpoint's token counts of one request with tools and without.

    Equal counts alone prove nothing, because an endpoint may leave tools out of its count. A call that came back to the
    request with tools shows that they arrived.
    """
    numbers = (*result.numbers[:1], *bare.numbers)
    counts = [
        answered.turn.usage.input_tokens if answered.turn and answered.turn.usage else None
        for answered in (result, bare)
    ]
    if None in counts:
        return ProbeCheck("dropped_tools", "unknown", "Inconclusive: the endpoint counts no tokens.", {}, numbers)
    if result.turn and result.turn.path == "tool_use" and result.turn.calls:
        message = (
            f"A call came back, so the tools reached the model ({counts[0]} tokens with them, {counts[1]} without)."
        )
        return ProbeCheck("dropped_tools", "passed", message, {"tools_field": "accepted"}, numbers)
    if has_equal_token_counts(result, bare):
        message = (
            f"The request has {counts[0]} tokens with tools and without, and no call came: they seem to be dropped."
        )
        return ProbeCheck("dropped_tools", "failed", message, exchanges=numbers)
    message = f"{counts[0]} tokens with tools, {counts[1]} without: they reach the prompt."
    return ProbeCheck("dropped_tools", "passed", message, {"tools_field": "accepted"}, numbers)


async def ask_without_tools(prober: Prober) -> ProbeResult:
    """Send the question of the first use without its tools."""
    return await prober.ask(replace(build_echo_request(prober.word), tools=(), turns=1))


def _build_history(call_id: str, content: str | None) -> tuple[Message, ...]:
    """Build a conversation in which another endpoint's call was answered."""
    call = {"id": call_id, "type": "function", "function": {"name": ECHO_TOOL.name, "arguments": '{"value": "blue"}'}}
    return (
        {"role": "user", "content": "Call probe_echo with blue."},
        {"role": "assistant", "content": content, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": '{"value": "blue"}'},
        {"role": "assistant", "content": "It gave back blue."},
    )


async def check_foreign_history(prober: Prober) -> ProbeCheck:
    """Check whether the history may hold calls with another endpoint's ids and with content null."""
    wish = ProbeRequest("", "Which colour was it? Answer in one word.", (ECHO_TOOL,))
    numbers: tuple[int, ...] = ()
    error: ExchangeError | None = None
    for call_id, content, learned, expected in _HISTORY_CASES:
        result = await prober.ask(replace(wish, history=_build_history(call_id, content)))
        numbers = (*numbers, *result.numbers)
        error = result.error
        if error is None:
            outcome: CheckOutcome = "passed" if call_id == FOREIGN_ID and content is None else "failed"
            return ProbeCheck("foreign_history", outcome, expected, learned, numbers)
        if error.infrastructure:
            return build_inconclusive("foreign_history", error, numbers)
    expected = f"A conversation with calls of another endpoint is refused: {error.message if error else ''}"
    return ProbeCheck("foreign_history", "failed", expected, {}, numbers)


_HISTORY_CASES: tuple[tuple[str, str | None, JsonObject, str], ...] = (
    (FOREIGN_ID, None, {"content_null_ok": True}, "Foreign ids and content null are taken."),
    (
        NINE_CHARACTER_ID,
        None,
        {"content_null_ok": True, "tool_id_pattern": NINE_CHARACTER_PATTERN},
        "Only ids of nine characters are taken.",
    ),
    (FOREIGN_ID, "", {"content_null_ok": False}, "Foreign ids are taken, content null beside calls is not."),
    (
        NINE_CHARACTER_ID,
        "",
        {"content_null_ok": False, "tool_id_pattern": NINE_CHARACTER_PATTERN},
        "Only ids of nine characters are taken, and content null beside calls is not.",
    ),
)


async def check_midturn_system(prober: Prober) -> ProbeCheck:
    """Check whether a system message is accepted in the middle of a conversation.

    The Messages format has no such message, so no request is sent to such an endpoint.
    """
    if prober.uses_messages:
        message = "Messages takes a system text at the beginning only: later ones go into the user's turn."
        return ProbeCheck("midturn_system", "failed", message, {"allows_midturn_system": False})
    history: tuple[Message, ...] = (
        {"role": "user", "content": "Hello."},
        {"role": "assistant", "content": "Hello."},
        {"role": "system", "content": "From now on answer in one word."},
    )
    result = await prober.ask(ProbeRequest("Be brief.", "Which colour is the sky?", history=history))
    error = result.error
    if error is None:
        known: JsonObject = {"allows_midturn_system": True}
        return ProbeCheck("midturn_system", "passed", "A later system message is taken.", known, result.numbers)
    if error.infrastructure and error.status != 500:
        return build_inconclusive("midturn_system", error, result.numbers)
    plain = await prober.ask(ProbeRequest("Be brief.", "Which colour is the sky?", history=history[:2]))
    numbers = (*result.numbers, *plain.numbers)
    if plain.error is not None:
        return build_inconclusive("midturn_system", plain.error, numbers)
    message = f"A later system message is refused, without it the request is taken: {error.message}"
    return ProbeCheck("midturn_system", "failed", message, {"allows_midturn_system": False}, numbers)


async def check_error_bodies(prober: Prober) -> ProbeCheck:
    """Check that an invalid request is refused with a status below 500 and a JSON body with a reason."""
    reply = await prober.post_raw({"messages": "this is no list"})
    numbers = (reply.number,)
    if reply.status is None or reply.status in (401, 402, 403, 429):
        return build_inconclusive("error_bodies", reply.error, numbers)
    if reply.status < 400:
        message = f"Messages that are no list are answered with {reply.status}."
        return ProbeCheck("error_bodies", "failed", message, exchanges=numbers)
    said_why = isinstance(reply.payload, dict | list) and bool(reply.error and reply.error.message)
    if reply.status < 500 and said_why:
        return ProbeCheck(
            "error_bodies", "passed", f"Nonsense is refused with {reply.status} and a reason.", {}, numbers
        )
    manner = "as its own failure" if reply.status >= 500 else "without a JSON body"
    return ProbeCheck("error_bodies", "failed", f"Nonsense is refused with {reply.status}, {manner}.", {}, numbers)


def check_reasoning(result: ProbeResult) -> ProbeCheck:
    """Check where reasoning is in the answer, and whether the endpoint accepts it back beside a call."""
    fields = {find_reasoning_field(parse_raw_message(step)) for step in result.exchanges} - {""}
    if not fields:
        message = "Inconclusive: no reasoning was seen."
        return ProbeCheck("reasoning_replay", "unknown", message, exchanges=result.numbers)
    later = [record for record in result.ended.turns if record.turn > 0]
    if not later:
        message = "There is reasoning, but no call to replay it with."
        return ProbeCheck("reasoning_replay", "unknown", message, exchanges=result.numbers)
    if (error := later[0].failure) is not None:
        if error.infrastructure:
            return build_inconclusive("reasoning_replay", error, result.numbers)
        message = f"Reasoning sent back as it came is refused: {error.message}"
        return ProbeCheck("reasoning_replay", "failed", message, {"reasoning_replay": "none"}, result.numbers)
    place = "tags" if "tags" in fields else "details" if "reasoning_details" in fields else "field"
    message = f"Reasoning in {', '.join(sorted(fields))} is taken back beside its call."
    return ProbeCheck("reasoning_replay", "passed", message, {"reasoning_replay": place}, result.numbers)


async def check_prefix(prober: Prober, tools: ProbeCheck, error: ExchangeError | None) -> ProbeCheck:
    """Check whether another prefix leads to the API, when nothing was found at the address."""
    if not tools.blocked:
        return ProbeCheck("prefix", "passed", "The address leads to the API.", exchanges=tools.exchanges)
    if error is None or error.code not in _NOT_FOUND_CODES:
        return ProbeCheck("prefix", "unknown", "Inconclusive: the endpoint did not answer.", exchanges=tools.exchanges)
    current = prober.endpoint.api_prefix.rstrip("/")
    for prefix in PREFIXES:
        if prefix == current:
            continue
        await prober.reserve()
        try:
            await list_models(replace(prober.endpoint, api_prefix=prefix))
        except ProviderRequestError:
            continue
        message = f"Nothing is found under {current or 'no prefix'}; under {prefix or 'no prefix'} a list of models is."
        return ProbeCheck("prefix", "failed", message, exchanges=tools.exchanges)
    message = "Nothing is found here, nor under the usual prefixes: check the address and the model's name."
    return ProbeCheck("prefix", "unknown", message, exchanges=tools.exchanges)
