"""The prompt that a model received, and whether the tools are in it.

It is the prompt that was sent, or the text that a local model's chat template made of the first request.
"""

import asyncio
import json
from collections.abc import Iterable, Sequence

from toolbench.engine.methods.registry import build_method
from toolbench.engine.policy.settings import Policy
from toolbench.engine.types import JsonObject, Message
from toolbench.evals.types import Instance
from toolbench.lab.traces.trial_columns import AnyStep
from toolbench.providers.driver.step_records import ExchangeStep
from toolbench.providers.endpoint import Endpoint
from toolbench.providers.rendered_prompt import fetch_rendered_prompt

PROMPT_TIMEOUT_SECONDS = 1.0  # the outcome of the trial is stored only after this request


def build_sent_prompt_columns(steps: Iterable[AnyStep]) -> JsonObject:
    """Return the trial's `rendered_prompt` in hexadecimal if its first request was a prompt; else {}."""
    first = next((step for step in steps if isinstance(step, ExchangeStep)), None)
    prompt = json.loads(first.request_body).get("prompt") if first else None
    return {"rendered_prompt": _encode_hex(prompt)} if isinstance(prompt, str) else {}


def build_prompt_version(policy: Policy, instance: Instance) -> str:
    """Return the version of the scenario's prompts and of the method's instruction: `1`, or `1 · text_json 1`."""
    method_version = build_method(policy).prompt_version if instance.tools else ""
    return " · ".join(part for part in (instance.prompt_version, method_version) if part)[:40]


async def fetch_prompt_columns(endpoint: Endpoint, steps: Iterable[AnyStep]) -> JsonObject:
    """Return the trial's `rendered_prompt` in hexadecimal, and `tools_dropped`.

    It sends one or two requests, which are not part of the trial.

    Returns:
        {} where the server cannot render the prompt within a second.
    """
    first = next((step for step in steps if isinstance(step, ExchangeStep)), None)
    request_json = json.loads(first.request.body) if first else {}
    if not request_json.get("messages"):
        return {}
    try:
        async with asyncio.timeout(PROMPT_TIMEOUT_SECONDS):
            return await _fetch_columns(endpoint, request_json["messages"], request_json.get("tools") or ())
    except TimeoutError:
        return {}


async def _fetch_columns(endpoint: Endpoint, messages: Sequence[Message], tools: Sequence[JsonObject]) -> JsonObject:
    prompt = await fetch_rendered_prompt(endpoint, messages, tools)
    if prompt is None:
        return {}
    dropped = bool(tools) and prompt == await fetch_rendered_prompt(endpoint, messages, ())
    return {"rendered_prompt": _encode_hex(prompt), "tools_dropped": dropped}


def _encode_hex(prompt: str) -> str:
    return prompt.encode("utf-8", "surrogatepass").hex()
