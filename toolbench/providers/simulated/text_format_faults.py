"""Drifts of dialect: the call is right and stands as text, in the tokens of a model's family, where nobody read it."""

import json
import random

from toolbench.engine.formats import TextCall, render
from toolbench.engine.messages import JsonObject
from toolbench.providers.simulated.chat_request import Conversation
from toolbench.providers.simulated.error_replies import Failure, Reply, error_reply
from toolbench.providers.simulated.next_move import next_move
from toolbench.providers.simulated.response_faults import ShapeDrift, message_of

Calls = list[TextCall]


def llama_tokens(completion: JsonObject, draw: random.Random) -> None:
    _say(completion, render(_taken(completion), format="llama3_python_tag"))


def mistral_tokens(completion: JsonObject, draw: random.Random) -> None:
    _say(completion, render(_taken(completion), format="mistral_v3"))


def deepseek_tokens(completion: JsonObject, draw: random.Random) -> None:
    _say(completion, render(_taken(completion), format="deepseek_v31"))


def tag_left_open(completion: JsonObject, draw: random.Random) -> None:
    """Hermes tags without the closing one, behind a sentence."""
    written = render(_taken(completion), format="hermes", text="Let me do that.")
    _say(completion, written.removesuffix("</tool_call>"))


def call_in_reasoning(completion: JsonObject, draw: random.Random) -> None:
    """Kimi's markers at the end of the reasoning, and nothing said."""
    thought = "The user wants something done. " + render(_taken(completion), format="kimi_k2")
    _say(completion, "")
    message_of(completion)["reasoning_content"] = thought


def quoted_in_400(conversation: Conversation) -> Reply | None:
    """Groq's way of saying that a call did not parse: an error that quotes it."""
    move = next_move(conversation)
    if not move.calls or not conversation.functions:
        return None
    call = move.calls[0]
    quoted = f"<function={call.name}{json.dumps(call.arguments)}</function>"
    text = "Failed to call a function. Please adjust your prompt. (simulated)"
    return error_reply(400, text, "invalid_request_error", code="tool_use_failed", failed_generation=quoted)


def _taken(completion: JsonObject) -> Calls:
    """The completion's calls, no longer in their place."""
    functions = [call["function"] for call in message_of(completion).pop("tool_calls")]
    return [TextCall(function["name"], json.loads(function["arguments"])) for function in functions]


def _say(completion: JsonObject, text: str) -> None:
    message_of(completion)["content"] = text
    completion["choices"][0]["finish_reason"] = "stop"


TEXT_SHAPES: dict[str, ShapeDrift] = {
    drift.__name__: drift for drift in (llama_tokens, mistral_tokens, deepseek_tokens, tag_left_open, call_in_reasoning)
}
TEXT_FAILURES: dict[str, Failure] = {quoted_in_400.__name__: quoted_in_400}
