"""Check of whether the endpoint continues a raw prompt."""

from typing import Any

from toolbench.engine.strict_json import get_object
from toolbench.engine.types import JsonObject
from toolbench.engine.wire_formats.registry import get_wire_format
from toolbench.providers.probing.check_result import ProbeCheck, build_inconclusive
from toolbench.providers.probing.prober import Prober


async def check_completion(prober: Prober) -> ProbeCheck:
    """Check whether OpenAI's route for completions or llama.cpp's own route continues a raw prompt.

    The method `template` is used with chat completions only, so no request is sent if the endpoint has another wire
    format.
    """
    if not prober.uses_chat:
        message = "Not checked: the method template needs an endpoint with chat completions."
        return ProbeCheck("completion", "failed", message, {"raw_completion": False})
    exchange_numbers: tuple[int, ...] = ()
    for name in ("completions", "llama"):
        wire = get_wire_format(name)
        encoded, _ = wire.encode({"prompt": "One, two, three,", "max_tokens": 8})
        reply = await prober.post_raw(encoded, wire.path)
        exchange_numbers = (*exchange_numbers, reply.exchange_number)
        if _has_continuation(reply.payload):
            message = (
                f"{wire.path} continues a raw prompt, so the method template can be used with a known text format."
            )
            learned: JsonObject = {"raw_completion": True, "prompt_endpoint": name}
            return ProbeCheck("completion", "passed", message, learned, exchange_numbers)
        if reply.status not in (400, 404, 405, 422, 501):
            return build_inconclusive("completion", reply.error, exchange_numbers)
    message = "The endpoint does not continue a raw prompt."
    return ProbeCheck("completion", "failed", message, {"raw_completion": False}, exchange_numbers)


def _has_continuation(payload: Any) -> bool:
    """Return whether a response has the text of a completion.

    OpenAI has it in `choices[0].text`, llama.cpp in `content`.
    """
    body = get_object(payload)
    choices = body.get("choices")
    first_choice = choices[0] if isinstance(choices, list) and choices else None
    text = first_choice.get("text") if isinstance(first_choice, dict) else body.get("content")
    return isinstance(text, str)
