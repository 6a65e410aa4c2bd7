"""Parser of requests of OpenAI's Responses API. It refuses the requests that OpenAI would refuse."""

from collections.abc import Iterator
from typing import Any

from toolbench.engine.types import JsonObject, Message

MIN_TOKEN_LIMIT = 16
_UNKNOWN_PARAMETERS = ("messages", "max_tokens", "max_completion_tokens", "response_format", "seed", "stop", "n")
_MESSAGE_ROLES = ("user", "assistant", "system", "developer")


def parse_responses_request(body: JsonObject) -> JsonObject:
    """Convert a request of the Responses API to the equivalent chat request.

    The seed is taken from `metadata.seed`.

    Raises:
        ValueError: OpenAI would refuse the request; the error's text says why.
        KeyError, TypeError, AttributeError: a field is missing or has a value of another type.
    """
    items = _list_items(body.get("input"))
    _check_rules(body, items)
    chat: JsonObject = {"model": body["model"], "max_tokens": body.get("max_output_tokens")}
    instructions = body.get("instructions")
    chat["messages"] = [{"role": "system", "content": instructions}] if instructions else []
    chat["messages"] += _convert_items(items)
    if tools := [tool for tool in body.get("tools") or () if tool.get("type") == "function"]:
        chat["tools"] = [{"type": "function", "function": tool} for tool in tools]
        chat["tool_choice"] = _convert_choice(body.get("tool_choice", "auto"))
        chat["parallel_tool_calls"] = body.get("parallel_tool_calls")
    seed = str((body.get("metadata") or {}).get("seed", ""))
    if seed.lstrip("-").isdecimal():
        chat["seed"] = int(seed)
    output_format = (body.get("text") or {}).get("format") or {}
    if output_format.get("type", "text") != "text":
        chat["response_format"] = output_format
    return chat


def _list_items(request_input: object) -> list[JsonObject]:
    if isinstance(request_input, str):
        return [{"role": "user", "content": request_input}]
    if isinstance(request_input, list) and request_input and all(isinstance(item, dict) for item in request_input):
        return request_input
    raise ValueError("Missing required parameter: 'input'")


def _check_rules(body: JsonObject, items: list[JsonObject]) -> None:
    """Check OpenAI's rules for requests.

    Raises:
        ValueError: OpenAI would refuse the request; the error's text says why.
    """
    if unknown := next((name for name in _UNKNOWN_PARAMETERS if name in body), ""):
        raise ValueError(f"Unknown parameter: '{unknown}'")
    limit = body.get("max_output_tokens")
    if isinstance(limit, int) and limit < MIN_TOKEN_LIMIT:
        raise ValueError("Invalid 'max_output_tokens': integer below minimum value")
    if any("name" not in tool for tool in body.get("tools") or () if tool.get("type") == "function"):
        raise ValueError("Missing required parameter: 'tools[0].name'")
    for item, next_item in zip(items, [*items[1:], {}], strict=True):
        if item.get("type", "message") == "message" and item.get("role") not in _MESSAGE_ROLES:
            raise ValueError("Invalid value for 'role' of an item in 'input'")
        # The reasoning of an answer must be followed by a call or a message of the same answer.
        is_message_or_output = next_item.get("type", "message") in ("message", "function_call_output")
        if item.get("type") == "reasoning" and is_message_or_output and next_item.get("role") != "assistant":
            raise ValueError(f"Item '{item.get('id')}' of type 'reasoning' was provided without its following item")
    _check_calls(items)


def _check_calls(items: list[JsonObject]) -> None:
    """Check that every call has one output after it, and that every output has its call before it.

    Raises:
        ValueError: calls and outputs do not match.
    """
    open_ids: set[str] = set()
    for item in items:
        call_id = str(item.get("call_id"))
        if item.get("type") == "function_call":
            open_ids.add(call_id)
        elif item.get("type") == "function_call_output":
            if call_id not in open_ids:
                raise ValueError(f"No tool call found for function call output with call_id {call_id}")
            open_ids.remove(call_id)
    if open_ids:
        raise ValueError(f"No tool output found for function call {sorted(open_ids)[0]}")


def _convert_items(items: list[JsonObject]) -> Iterator[Message]:
    """Yield chat messages: one for all items of an answer except its reasoning, and one for any other item."""
    answer: Message = {}
    for item in items:
        item_type = item.get("type", "message")
        if item_type == "reasoning":
            continue
        if item_type == "function_call" or item.get("role") == "assistant":
            answer = answer or {"role": "assistant", "content": ""}
            if item_type == "function_call":
                function = {"name": item["name"], "arguments": item["arguments"]}
                call = {"id": item["call_id"], "type": "function", "function": function}
                answer.setdefault("tool_calls", []).append(call)
            else:
                answer["content"] += _join_parts(item.get("content"))
            continue
        yield from [answer] if answer else []
        answer = {}
        if item_type == "function_call_output":
            yield {"role": "tool", "tool_call_id": item["call_id"], "content": _join_parts(item.get("output"))}
        else:
            yield {"role": item["role"], "content": _join_parts(item.get("content"))}
    yield from [answer] if answer else []


def _join_parts(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in content or ())


def _convert_choice(choice: Any) -> Any:
    if isinstance(choice, dict) and choice.get("type") == "function":
        return {"type": "function", "function": {"name": choice.get("name")}}
    return choice
