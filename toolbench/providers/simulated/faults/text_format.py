"""Faults of text format: the simulated model writes the right calls as text in a model family's format.

A public function has the name of its fault in data/personas.json.
"""

import json
import random

from toolbench.engine.formats import TextCall, render
from toolbench.engine.types import JsonObject
from toolbench.providers.simulated.chat_request import ChatRequest
from toolbench.providers.simulated.error_replies import BuildFailure, Reply, build_error_reply
from toolbench.providers.simulated.faults.response import ShapeFault, get_message
from toolbench.providers.simulated.next_move import choose_next_move


def llama_tokens(completion: JsonObject, generator: random.Random) -> None:
    """Write the calls as text in Llama 3's format."""
    _set_text(completion, render(_take_calls(completion), format="llama3_python_tag"))


def mistral_tokens(completion: JsonObject, generator: random.Random) -> None:
    """Write the calls as text in Mistral's format."""
    _set_text(completion, render(_take_calls(completion), format="mistral_v3"))


def deepseek_tokens(completion: JsonObject, generator: random.Random) -> None:
    """Write the calls as text in DeepSeek's format."""
    _set_text(completion, render(_take_calls(completion), format="deepseek_v31"))


def tag_left_open(completion: JsonObject, generator: random.Random) -> None:
    """Write the calls after a sentence in Hermes tags, without the last closing tag."""
    text = render(_take_calls(completion), format="hermes", text="Let me do that.")
    _set_text(completion, text.removesuffix("</tool_call>"))


def call_in_reasoning(completion: JsonObject, generator: random.Random) -> None:
    """Write the calls with Kimi's markers at the end of the reasoning, and leave the content empty."""
    reasoning = "The user wants something done. " + render(_take_calls(completion), format="kimi_k2")
    _set_text(completion, "")
    get_message(completion)["reasoning_content"] = reasoning


def quoted_in_400(request: ChatRequest) -> Reply | None:
    """Return Groq's error for a call that it could not parse; the error quotes the first call.

    Returns:
        None if the model makes no call now or the request has no tools.
    """
    move = choose_next_move(request)
    if not move.calls or not request.functions:
        return None
    call = move.calls[0]
    output = f"<function={call.name}{json.dumps(call.arguments)}</function>"
    text = "Failed to call a function. Please adjust your prompt. (simulated)"
    return build_error_reply(400, text, "invalid_request_error", code="tool_use_failed", failed_generation=output)


def _take_calls(completion: JsonObject) -> list[TextCall]:
    """Remove the calls from the completion and return them."""
    functions = [call["function"] for call in get_message(completion).pop("tool_calls")]
    return [TextCall(function["name"], json.loads(function["arguments"])) for function in functions]


def _set_text(completion: JsonObject, text: str) -> None:
    get_message(completion)["content"] = text
    completion["choices"][0]["finish_reason"] = "stop"


TEXT_FORMAT_FAULTS: dict[str, ShapeFault] = {
    fault.__name__: fault for fault in (llama_tokens, mistral_tokens, deepseek_tokens, tag_left_open, call_in_reasoning)
}
TEXT_FAILURES: dict[str, BuildFailure] = {quoted_in_400.__name__: quoted_in_400}
