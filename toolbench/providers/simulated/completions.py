"""Well-formed chat completion for a move, marked as simulated."""

import json
import random

from toolbench.engine.formats import TextCall, list_format_names, render
from toolbench.engine.types import JsonObject
from toolbench.providers.simulated.chat_request import BARE_STYLE, FENCED_STYLE, NATIVE_STYLE, ChatRequest
from toolbench.providers.simulated.next_move import Move
from toolbench.providers.simulated.script import Call

LETTERS_PER_TOKEN = 4


def build_completion(move: Move, conversation: ChatRequest, model: str, draw: random.Random) -> JsonObject:
    """Build a completion for a move.

    It has native calls, or the calls as text where the request's style is not native.
    """
    message: JsonObject = {"role": "assistant", "content": _render_content(move, conversation)}
    if move.calls and conversation.style == NATIVE_STYLE:
        message = {
            "role": "assistant",
            "content": None,
            "tool_calls": [_render_tool_call(call, draw) for call in move.calls],
        }
    return {
        "id": f"sim-{draw.getrandbits(48):012x}",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "system_fingerprint": "simulated",
        "choices": [
            {"index": 0, "message": message, "finish_reason": "tool_calls" if "tool_calls" in message else "stop"}
        ],
        "usage": _count_usage(message, conversation),
    }


def _render_content(move: Move, conversation: ChatRequest) -> str:
    if not move.calls:
        as_json = conversation.style == BARE_STYLE and '{"final":' in conversation.instructions
        return json.dumps({"final": move.text}) if as_json else move.text
    if conversation.style in list_format_names():
        calls = [TextCall(call.name, call.arguments) for call in move.calls]
        return render(calls, format=conversation.style)
    written = json.dumps({"name": move.calls[0].name, "arguments": move.calls[0].arguments})
    return f"```json\n{written}\n```" if conversation.style == FENCED_STYLE else written


def _render_tool_call(call: Call, draw: random.Random) -> JsonObject:
    function = {"name": call.name, "arguments": json.dumps(call.arguments, ensure_ascii=False)}
    return {"id": f"call_{draw.getrandbits(64):016x}", "type": "function", "function": function}


def _count_usage(message: JsonObject, conversation: ChatRequest) -> JsonObject:
    offered = json.dumps(conversation.functions) if conversation.functions else ""
    input_length = len(conversation.text) + len(offered) + 80 * len(conversation.reports)
    output_length = len(json.dumps(message, ensure_ascii=False))
    prompt, completion = input_length // LETTERS_PER_TOKEN + 8, output_length // LETTERS_PER_TOKEN
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
