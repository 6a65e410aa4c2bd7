"""The fixed instructions of the methods that ask in words, and how calls and results are told in the history."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from toolbench.engine.json_text import write_json
from toolbench.engine.messages import JsonObject, Message, ToldResult, ToolCall, function_in, without_calls
from toolbench.engine.wires.reading import structured_calls

_PROMPTS: JsonObject = json.loads((Path(__file__).parents[1] / "data" / "prompts.json").read_text("utf-8"))

CallText = Callable[[str, str], str]


def prompt_version(method: str) -> str:
    """Name and version of a method's instruction, such as `text_json 1`."""
    return f"{method} {_PROMPTS[method]['version']}"


def instruction(method: str, tools_json: Sequence[JsonObject], *, final: bool = False, several: bool = False) -> str:
    """The method's instruction with one line per tool and one example, of the first tool (small models copy its name,
    so it must be a real one). `several` and `final` add how to make more than one call at once and how to answer
    without a tool, where the method says that apart."""
    added = [_PROMPTS[method][part] for part, wanted in (("several", several), ("final", final)) if wanted]
    lines = [*_PROMPTS[method]["instruction"], *added]
    tools = "\n".join(write_json(tool["function"]) for tool in tools_json)
    example = _example(tools_json[0]["function"])
    return "\n".join(lines).replace("{example}", example, 1).replace("{tools}", tools, 1)


def again(method: str, error: str, tools_json: Sequence[JsonObject]) -> str:
    """What the user says when a call could not be run: the error, and once more the one form to answer in."""
    lines = _PROMPTS["again"].get(method, _PROMPTS["again"]["otherwise"])
    before, _, after = "\n".join(lines).partition("{error}")
    return before + error.rstrip(".") + after.replace("{example}", _example(tools_json[0]["function"]), 1)


def with_system(messages: Sequence[Message], text: str) -> list[Message]:
    """The messages with `text` at the end of the system message, or in one of its own in front."""
    first = messages[0] if messages else {}
    if first.get("role") != "system":
        return [{"role": "system", "content": text}, *messages]
    content = first.get("content")
    if isinstance(content, list):
        joined: object = [*content, {"type": "text", "text": text}]
    else:
        joined = f"{content}\n\n{text}" if content else text
    return [{**first, "content": joined}, *messages[1:]]


def result_message(call: ToolCall, content: str) -> Message:
    """A result as the user tells it: many endpoints without tool support refuse the role tool."""
    filled = str(_PROMPTS["result"]).replace("{name}", call.name, 1).replace("{id}", call.id, 1)
    return ToldResult(role="user", content=filled.replace("{content}", content, 1))


def told_history(
    messages: Sequence[Message], *, as_call: CallText, as_final: Callable[[str], str] = str
) -> list[Message]:
    """Calls and results of OpenAI's shape told as plain messages: each call an answer of its own, followed by its
    result. `as_call(name, arguments)` and `as_final(text)` write what the assistant says."""
    results = {str(m.get("tool_call_id")): str(m.get("content")) for m in messages if m.get("role") == "tool"}
    told: list[Message] = []
    for message in messages:
        if message.get("role") == "tool":
            continue
        if message.get("role") != "assistant":
            told.append(message)
        elif not structured_calls(message):
            told.append({**without_calls(message), "content": as_final(str(message.get("content") or ""))})
        for call in structured_calls(message):
            told += _told_call(call, results, as_call)
    return told


def _told_call(call: JsonObject, results: dict[str, str], as_call: CallText) -> list[Message]:
    function = function_in(call)
    made = ToolCall(str(call.get("id") or ""), str(function.get("name") or ""), function.get("arguments"))
    arguments = made.arguments if isinstance(made.arguments, str) else write_json(made.arguments or {})
    said: Message = {"role": "assistant", "content": as_call(made.name, arguments)}
    return [said, result_message(made, results[made.id])] if made.id in results else [said]


def call_json(name: str, arguments: str) -> str:
    """A call as both methods write it; `arguments` is JSON text."""
    return f'{{"name": {json.dumps(name)}, "arguments": {arguments}}}'


def _example(function: JsonObject) -> str:
    schema = function.get("parameters") or {}
    properties = schema.get("properties") or {}
    wanted = schema.get("required") or list(properties)[:1]
    arguments = {name: _placeholder(properties.get(name)) for name in wanted}
    return call_json(str(function["name"]), json.dumps(arguments, ensure_ascii=False))


def _placeholder(schema: object) -> object:
    kind = schema.get("type") if isinstance(schema, dict) else None
    empty: dict[object, object] = {"number": 0, "integer": 0, "boolean": False, "array": [], "object": {}}
    return empty.get(kind, "...") if isinstance(kind, str) else "..."
