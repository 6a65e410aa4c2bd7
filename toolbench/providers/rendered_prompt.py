"""Requests for the prompt that a llama.cpp server renders from a request."""

from collections.abc import Sequence
from dataclasses import replace

from toolbench.engine.strict_json import encode_json
from toolbench.engine.types import JsonObject, Message
from toolbench.providers.endpoint import Endpoint
from toolbench.providers.model_list import ProviderRequestError, request_json


async def fetch_rendered_prompt(
    endpoint: Endpoint, messages: Sequence[Message], tools: Sequence[JsonObject]
) -> str | None:
    """Return the exact text that the model gets; None where the server cannot show it."""
    body = {"messages": list(messages)} | ({"tools": list(tools)} if tools else {})
    try:
        payload = await request_json(_strip_api_prefix(endpoint), "apply-template", encode_json(body))
    except ProviderRequestError:
        return None
    prompt = payload.get("prompt") if isinstance(payload, dict) else None
    return prompt if isinstance(prompt, str) else None


def _strip_api_prefix(endpoint: Endpoint) -> Endpoint:
    """Return the same server without the API prefix: llama.cpp serves its own routes outside the prefix."""
    address = endpoint.url("").removesuffix("/" + endpoint.api_prefix.strip("/"))
    return replace(endpoint, base_url=address, api_prefix="")
