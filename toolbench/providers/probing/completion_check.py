"""Check whether the endpoint continues a raw prompt."""

from typing import Any

from toolbench.engine.strict_json import get_object
from toolbench.engine.types import JsonObject
from toolbench.engine.wire_formats.registry import get_wire_format
from toolbench.providers.probing.check_result import ProbeCheck, build_inconclusive
from toolbench.providers.probing.prober import Prober


async def check_completion(prober: Prober) -> ProbeCheck:
    """Check OpenAI's completions endpoint, then llama.cpp's own.

    The method template is only used with the chat format, so no request is sent to an endpoint with another.
    """
    if not prober.uses_chat:
        message = "A raw prompt is only sent to an endpoint that speaks chat completions."
        return ProbeCheck("completion", "failed", message, {"raw_completion": False})
    numbers: tuple[int, ...] = ()
    for name in ("completions", "llama"):
        wire = get_wire_format(name)
        encoded, _ = wire.encode({"prompt": "One, two, three,", "max_tokens": 8})
        reply = await prober.post_raw(encoded, wire.path)
        numbers = (*numbers, reply.number)
        if _has_continuation(reply.payload):
            message = (
                f"A raw prompt is continued by {wire.path}: the method template can be used where its dialect is known."
            )
            known: JsonObject = {"raw_completion": True, "prompt_endpoint": name}
            return ProbeCheck("completion", "passed", message, known, numbers)
        if reply.status not in (400, 404, 405, 422, 501):
            return build_inconclusive("completion", reply.error, numbers)
    return ProbeCheck("completion", "failed", "There is no raw completion here.", {"raw_completion": False}, numbers)


def _has_continuation(payload: Any) -> bool:
    """Return whether an answer has a text where OpenAI's or llama.cpp's completion has it."""
    body = get_object(payload)
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return isinstance(first.get("text") if isinstance(first, dict) else body.get("content"), str)
