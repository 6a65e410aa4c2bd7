"""Request for the prompt that a llama.cpp server renders from messages and tools."""

from collections.abc import Sequence

from toolbench.engine.strict_json import encode_json
from toolbench.engine.types import JsonObject, Message
from toolbench.providers.endpoint import Endpoint
from toolbench.providers.model_list import ProviderRequestError, request_json


async def fetch_rendered_prompt(
    endpoint: Endpoint, messages: Sequence[Message], tools: Sequence[JsonObject]
) -> str | None:
    """Request the prompt that the server's chat template makes of messages and tools.

    Returns:
        The exact text that the model gets; None if the server does not send it.
    """
    body = {"messages": list(messages)} | ({"tools": list(tools)} if tools else {})
    try:
        payload = await request_json(endpoint, "/apply-template", encode_json(body))  # the slash omits the API prefix
    except ProviderRequestError:
        return None
    prompt = payload.get("prompt") if isinstance(payload, dict) else None
    return prompt if isinstance(prompt, str) else None
