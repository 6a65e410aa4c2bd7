"""What the benchmarks' model says in one trial of happy_path, as a model's endpoint words it: read, change, Done."""

import json
from collections.abc import Sequence

GET: tuple[str, object] = ("state_get", {})
PATCH: tuple[str, object] = (
    "state_patch",
    {"request_id": "r1", "ops": [{"op": "set", "path": "/draft/foo", "value": "bar"}]},
)
_TOOL_MESSAGE = b'"role":"tool"'  # never part of a text: there the quotes are escaped


def calling(*wanted: tuple[str, object]) -> bytes:
    """An answer with these calls."""
    calls = [
        {"id": f"call_{place}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for place, (name, arguments) in enumerate(wanted)
    ]
    return _answer({"content": None, "tool_calls": calls}, "tool_calls")


def saying(text: str) -> bytes:
    return _answer({"content": text}, "stop")


def _answer(message: dict[str, object], finish_reason: str) -> bytes:
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


ANSWERS: Sequence[bytes] = (calling(GET), calling(PATCH), saying("Done."))


def answer_to(body: bytes) -> bytes:
    """The next answer of the trial whose request this is."""
    return ANSWERS[min(body.count(_TOOL_MESSAGE), len(ANSWERS) - 1)]
