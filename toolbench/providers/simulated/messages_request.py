"""Parser of requests of Anthropic's Messages API. It refuses the requests that Anthropic would refuse."""

import re
from collections.abc import Iterator, Sequence

from toolbench.engine.strict_json import write_json
from toolbench.engine.types import JsonObject, Message

_ID_PATTERN = re.compile(r"[a-zA-Z0-9_-]+")
_SEED_PATTERN = re.compile(r"seed-(-?\d+)")
_CHOICE_BY_TYPE = {"auto": "auto", "any": "required", "none": "none"}


def parse_messages_request(body: JsonObject) -> JsonObject:
    """Convert a request of the Messages API to the equivalent chat request.

    The seed is taken from a `metadata.user_id` of the form `seed-<number>`.

    Raises:
        ValueError: Anthropic would refuse the request; the error's text says why.
        KeyError, TypeError, AttributeError: a field is missing or has a value of another type.
    """
    turns = [(str(turn["role"]), _list_blocks(turn.get("content"))) for turn in _list_turns(body)]
    _check_rules(body, turns)
    chat: JsonObject = {"model": body["model"], "max_tokens": body["max_tokens"]}
    system = "\n\n".join(_list_texts(_list_blocks(body.get("system") or "")))
    chat["messages"] = [{"role": "system", "content": system}] if system else []
    for role, blocks in turns:
        chat["messages"] += _convert_assistant_turn(blocks) if role == "assistant" else _convert_user_turn(blocks)
    if tools := [tool for tool in body.get("tools") or () if "input_schema" in tool]:
        chat["tools"] = [_convert_tool(tool) for tool in tools]
        chat |= _convert_choice(body.get("tool_choice") or {})
    if seed := _SEED_PATTERN.fullmatch(str((body.get("metadata") or {}).get("user_id", ""))):
        chat["seed"] = int(seed[1])
    if output_format := (body.get("output_config") or {}).get("format"):
        chat["response_format"] = output_format
    return chat | ({"stream": True, "stream_options": {"include_usage": True}} if body.get("stream") else {})


def _list_turns(body: JsonObject) -> list[JsonObject]:
    turns = body.get("messages")
    if not isinstance(turns, list) or not turns or not all(isinstance(turn, dict) for turn in turns):
        raise ValueError("messages: at least one message is required")
    return turns


def _list_blocks(content: object) -> list[JsonObject]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if isinstance(content, list) and all(isinstance(block, dict) for block in content):
        return content
    raise ValueError("messages: content must be a string or a list of blocks")


def _check_rules(body: JsonObject, turns: Sequence[tuple[str, list[JsonObject]]]) -> None:
    """Check Anthropic's rules for requests.

    Raises:
        ValueError: Anthropic would refuse the request; the error's text says why.
    """
    if not isinstance(body.get("max_tokens"), int):
        raise ValueError("max_tokens: Field required")
    if turns[0][0] != "user":
        raise ValueError("messages: first message must use the user role")
    if any(role not in ("user", "assistant") for role, _ in turns):
        raise ValueError("messages: roles are user and assistant")
    for _, blocks in turns:
        if any(not text.strip() for text in _list_texts(blocks)):
            raise ValueError("messages: text content blocks must be non-empty")
    prefill = _list_texts(turns[-1][1]) if turns[-1][0] == "assistant" else []
    if prefill and prefill[-1] != prefill[-1].rstrip():
        raise ValueError("messages: final assistant content cannot end with trailing whitespace")
    _check_calls(turns)
    if not body.get("tools") and any(_list_fields(blocks, "tool_use", "id") for _, blocks in turns):
        raise ValueError("messages: requests which include `tool_use` or `tool_result` blocks must define tools")


def _check_calls(turns: Sequence[tuple[str, list[JsonObject]]]) -> None:
    """Check the ids of calls, and that every call has its result at the start of the next turn.

    Raises:
        ValueError: an id is invalid or repeated, or calls and results do not match.
    """
    call_ids: list[str] = []
    all_call_ids: list[str] = []
    for _, blocks in [*turns, ("user", [])]:  # the empty turn lacks the results of calls in the last turn
        results = _list_fields(blocks, "tool_result", "tool_use_id")
        if sorted(results) != sorted(call_ids) or len(
            _list_fields(blocks[: len(call_ids)], "tool_result", "type")
        ) != len(call_ids):
            raise ValueError("messages: `tool_use` ids were found without `tool_result` blocks immediately after")
        call_ids = _list_fields(blocks, "tool_use", "id")
        all_call_ids += call_ids
    if any(not _ID_PATTERN.fullmatch(call_id) for call_id in all_call_ids):
        raise ValueError("messages: tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
    if len(all_call_ids) != len(set(all_call_ids)):
        raise ValueError("messages: `tool_use` ids must be unique")


def _list_fields(blocks: Sequence[JsonObject], block_type: str, field: str) -> list[str]:
    return [str(block.get(field)) for block in blocks if block.get("type") == block_type]


def _list_texts(blocks: Sequence[JsonObject]) -> list[str]:
    return [str(block.get("text")) for block in blocks if block.get("type") == "text"]


def _convert_assistant_turn(blocks: Sequence[JsonObject]) -> list[Message]:
    calls = [
        {"id": block["id"], "type": "function", "function": _convert_call(block)}
        for block in blocks
        if block.get("type") == "tool_use"
    ]
    message: Message = {"role": "assistant", "content": "".join(_list_texts(blocks))}
    return [{**message, "tool_calls": calls} if calls else message]


def _convert_call(block: JsonObject) -> JsonObject:
    return {"name": block["name"], "arguments": write_json(block["input"])}


def _convert_user_turn(blocks: Sequence[JsonObject]) -> Iterator[Message]:
    """Yield the results of a turn, then its text.

    If a turn has both, a blank answer is yielded between them: the text is then a re-prompt after a blank answer, and
    the Messages API allows no blank message.
    """
    results = [block for block in blocks if block.get("type") == "tool_result"]
    for block in results:
        yield {"role": "tool", "tool_call_id": block["tool_use_id"], "content": block.get("content", "")}
    if texts := _list_texts(blocks):
        yield from [{"role": "assistant", "content": ""}] if results else []
        yield {"role": "user", "content": "\n".join(texts)}


def _convert_tool(tool: JsonObject) -> JsonObject:
    function = {"name": tool["name"], "description": tool.get("description", ""), "parameters": tool["input_schema"]}
    return {"type": "function", "function": function}


def _convert_choice(choice: JsonObject) -> JsonObject:
    choice_type = choice.get("type", "auto")
    converted: JsonObject = {"tool_choice": _CHOICE_BY_TYPE.get(choice_type)}
    if choice_type == "tool":
        converted["tool_choice"] = {"type": "function", "function": {"name": choice.get("name")}}
    if choice.get("disable_parallel_tool_use"):
        converted["parallel_tool_calls"] = False
    return converted
