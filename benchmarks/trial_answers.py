"""Answers of the benchmarks' model in a trial of happy_path: read the state, change it, final answer."""

import json
from collections.abc import Sequence

GET_CALL: tuple[str, object] = ("state_get", {})
PATCH_CALL: tuple[str, object] = (
    "state_patch",
    {"request_id": "r1", "ops": [{"op": "set", "path": "/draft/foo", "value": "bar"}]},
)
_TOOL_ROLE = b'"role":"tool"'  # not part of any text, in which quotes are escaped


def build_calling_answer(*named_arguments: tuple[str, object]) -> bytes:
    """Return the body of an answer with calls; each is given by its name and arguments."""
    calls = [
        {"id": f"call_{place}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for place, (name, arguments) in enumerate(named_arguments)
    ]
    return _build_answer({"content": None, "tool_calls": calls}, "tool_calls")


def build_text_answer(text: str) -> bytes:
    """Return the body of an answer with a text."""
    return _build_answer({"content": text}, "stop")


def _build_answer(message: dict[str, object], finish_reason: str) -> bytes:
    body = {
        "id": "gen-0123456789abcdef",
        "object": "chat.completion",
        "created": 1767225600,
        "model": "bench",
        "provider": "Bench",
        "choices": [{"index": 0, "message": {"role": "assistant"} | message, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": 400, "completion_tokens": 60, "total_tokens": 460},
    }
    return json.dumps(body).encode()


TRIAL_ANSWERS: Sequence[bytes] = (
    build_calling_answer(GET_CALL),
    build_calling_answer(PATCH_CALL),
    build_text_answer("Done."),
)


def choose_answer(body: bytes) -> bytes:
    """Return the answer to a request of the trial, by the number of tool results in it."""
    return TRIAL_ANSWERS[min(body.count(_TOOL_ROLE), len(TRIAL_ANSWERS) - 1)]
