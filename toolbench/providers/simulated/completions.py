"""Well-formed chat completion for the move of a simulated model, marked as simulated."""

import json
import random

from toolbench.engine.formats import TextCall, list_format_names, render
from toolbench.engine.types import JsonObject
from toolbench.providers.simulated.chat_request import BARE_STYLE, FENCED_STYLE, NATIVE_STYLE, ChatRequest
from toolbench.providers.simulated.next_move import Move
from toolbench.providers.simulated.script import Call

CHARS_PER_TOKEN = 4


def build_completion(move: Move, request: ChatRequest, model: str, generator: random.Random) -> JsonObject:
    """Build the completion for a move, with its calls in the style of the request.

    Args:
        move: the calls or the text of the model.
        request: the request that is answered.
        model: the model's name in the completion.
        generator: source of the ids.
    """
    message: JsonObject = {"role": "assistant", "content": _render_content(move, request)}
    if move.calls and request.style == NATIVE_STYLE:
        message = {
            "role": "assistant",
            "content": None,
            "tool_calls": [_render_tool_call(call, generator) for call in move.calls],
        }
    return {
        "id": f"sim-{generator.getrandbits(48):012x}",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "system_fingerprint": "simulated",
        "choices": [
            {"index": 0, "message": message, "finish_reason": "tool_calls" if "tool_calls" in message else "stop"}
        ],
        "usage": _estimate_usage(message, request),
    }


def _render_content(move: Move, request: ChatRequest) -> str:
    if not move.calls:
        is_json_requested = request.style == BARE_STYLE and '{"final":' in request.instructions
        return json.dumps({"final": move.text}) if is_json_requested else move.text
    if request.style in list_format_names():
        calls = [TextCall(call.name, call.arguments) for call in move.calls]
        return render(calls, format=request.style)
    call_text = json.dumps({"name": move.calls[0].name, "arguments": move.calls[0].arguments})
    return f"```json\n{call_text}\n```" if request.style == FENCED_STYLE else call_text


def _render_tool_call(call: Call, generator: random.Random) -> JsonObject:
    function = {"name": call.name, "arguments": json.dumps(call.arguments, ensure_ascii=False)}
    return {"id": f"call_{generator.getrandbits(64):016x}", "type": "function", "function": function}


def _estimate_usage(message: JsonObject, request: ChatRequest) -> JsonObject:
    """Return a usage that is estimated from numbers of characters; a tool's result counts as 80 of them."""
    functions = json.dumps(request.functions) if request.functions else ""
    input_chars = len(request.text) + len(functions) + 80 * len(request.reports)
    output_chars = len(json.dumps(message, ensure_ascii=False))
    input_tokens, output_tokens = input_chars // CHARS_PER_TOKEN + 8, output_chars // CHARS_PER_TOKEN
    return {
        "prompt_tokens": input_tokens,
        "completion_tokens": output_tokens,
        "total_tokens": input_tokens + output_tokens,
    }
