"""What a local model really read: the prompt its template made of the trial's first request, and whether the tools are
in it."""

import json
from collections.abc import Iterable

from toolbench.engine.messages import JsonObject
from toolbench.lab.figures import AnyStep
from toolbench.providers.endpoint import Endpoint
from toolbench.providers.recording import ExchangeStep
from toolbench.providers.rendering import rendered_prompt


async def prompt_columns(endpoint: Endpoint, steps: Iterable[AnyStep]) -> JsonObject:
    """The trial's `rendered_prompt`, in hexadecimal, and `tools_dropped`; {} where the server cannot show it. Sends
    one or two requests of its own, which are no part of the trial."""
    first = next((step for step in steps if isinstance(step, ExchangeStep)), None)
    if first is None:
        return {}
    asked = json.loads(first.request.body)
    tools = asked.get("tools") or ()
    prompt = await rendered_prompt(endpoint, asked["messages"], tools)
    if prompt is None:
        return {}
    dropped = bool(tools) and prompt == await rendered_prompt(endpoint, asked["messages"], ())
    return {"rendered_prompt": prompt.encode("utf-8", "surrogatepass").hex(), "tools_dropped": dropped}
