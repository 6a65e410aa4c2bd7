"""Columns of a trial for its prompt: the rendered prompt, whether it contains the tools, and its version.

The rendered prompt is the prompt of a completions request, or the text that a local server's chat template makes of the
first request.
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
    """Return the column `rendered_prompt` in hexadecimal if the first request sent a prompt, else {}."""
    exchange = _find_first_exchange(steps)
    prompt = json.loads(exchange.request_body).get("prompt") if exchange else None
    return {"rendered_prompt": _encode_hex(prompt)} if isinstance(prompt, str) else {}


def build_prompt_version(policy: Policy, instance: Instance) -> str:
    """Return the versions of the scenario's prompts and of the method's instruction, up to 40 characters.

    Examples are `1` and `1 · text_json 1`.
    """
    method_version = build_method(policy).prompt_version if instance.tools else ""
    return " · ".join(part for part in (instance.prompt_version, method_version) if part)[:40]


async def fetch_prompt_columns(endpoint: Endpoint, steps: Iterable[AnyStep]) -> JsonObject:
    """Return the columns `rendered_prompt` (in hexadecimal) and `tools_dropped`.

    The tools were dropped if the server renders the same prompt without them. To find out, one or two requests are sent
    that are not part of the trial.

    Returns:
        {} if there is no request, if the first request has no messages, or if the server does not render the prompt
        within a second.
    """
    exchange = _find_first_exchange(steps)
    request_json = json.loads(exchange.request.body) if exchange else {}
    if not request_json.get("messages"):
        return {}
    try:
        async with asyncio.timeout(PROMPT_TIMEOUT_SECONDS):
            return await _fetch_columns(endpoint, request_json["messages"], request_json.get("tools") or ())
    except TimeoutError:
        return {}


def _find_first_exchange(steps: Iterable[AnyStep]) -> ExchangeStep | None:
    return next((step for step in steps if isinstance(step, ExchangeStep)), None)


async def _fetch_columns(endpoint: Endpoint, messages: Sequence[Message], tools: Sequence[JsonObject]) -> JsonObject:
    prompt = await fetch_rendered_prompt(endpoint, messages, tools)
    if prompt is None:
        return {}
    are_tools_dropped = bool(tools) and prompt == await fetch_rendered_prompt(endpoint, messages, ())
    return {"rendered_prompt": _encode_hex(prompt), "tools_dropped": are_tools_dropped}


def _encode_hex(prompt: str) -> str:
    return prompt.encode("utf-8", "surrogatepass").hex()
