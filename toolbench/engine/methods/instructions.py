"""Instructions that request calls in the prompt, and calls and results as text in the history."""

import json
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from pathlib import Path

from toolbench.engine.strict_json import write_json
from toolbench.engine.types import JsonObject, Message, ResultMessage, ToolCall, get_called_function, remove_calls
from toolbench.engine.wire_formats.parse_answer import get_message_text, list_structured_calls

_PROMPTS: JsonObject = json.loads((Path(__file__).parents[1] / "data" / "prompts.json").read_text("utf-8"))

RenderCall = Callable[[str, str], str]
"""Takes the tool's name and the arguments as JSON text, and returns the text of the call."""


def get_prompt_version(method: str) -> str:
    """Return name and version of a method's instruction, such as `text_json 1`."""
    return f"{method} {_PROMPTS[method]['version']}"


def build_instruction(
    method: str, tools_json: Sequence[JsonObject], *, allows_final: bool = False, allows_several: bool = False
) -> str:
    """Return the method's instruction.

    If the method requests calls in the prompt, the instruction has a line for each tool and an example call of the
    first tool. Small models copy the example, so it must name an offered tool.

    Args:
        method: name of the method.
        tools_json: the tools, at least one.
        allows_final: whether to explain how to answer without a tool; only for `constrained`.
        allows_several: whether to explain how to make several calls at once; only for `constrained`.
    """
    optional_lines = [
        _PROMPTS[method][part_name]
        for part_name, is_included in (("several", allows_several), ("final", allows_final))
        if is_included
    ]
    lines = [*_PROMPTS[method]["instruction"], *optional_lines]
    tools = "\n".join(write_json(tool["function"]) for tool in tools_json)
    example = _build_example(tools_json[0]["function"])
    return "\n".join(lines).replace("{example}", example, 1).replace("{tools}", tools, 1)


def build_reprompt(method: str, error: str, tools_json: Sequence[JsonObject]) -> str:
    """Return the text of a re-prompt: the error of a call that could not run, and the required form.

    Args:
        method: name of the method.
        error: why the call could not run, as part of a sentence.
        tools_json: the tools, at least one; the first is used in the example.
    """
    lines = _PROMPTS["again"].get(method, _PROMPTS["again"]["otherwise"])
    text_before, _, text_after = "\n".join(lines).partition("{error}")
    return (
        text_before + error.rstrip(".") + text_after.replace("{example}", _build_example(tools_json[0]["function"]), 1)
    )


def append_to_system(messages: Sequence[Message], text: str) -> list[Message]:
    """Return the messages with a text at the end of the system message, or in a new one.

    Only the first message counts as the system message.
    """
    first_message = messages[0] if messages else {}
    if first_message.get("role") != "system":
        return [{"role": "system", "content": text}, *messages]
    content = first_message.get("content")
    if isinstance(content, list):
        extended_content: object = [*content, {"type": "text", "text": text}]
    else:
        extended_content = f"{content}\n\n{text}" if content else text
    return [{**first_message, "content": extended_content}, *messages[1:]]


def build_result_message(call: ToolCall, content: str) -> Message:
    """Return a result as a user message, since many endpoints without tool support refuse the role `tool`."""
    template = str(_PROMPTS["result"]).replace("{name}", call.name, 1).replace("{id}", call.id, 1)
    return ResultMessage(role="user", content=template.replace("{content}", content, 1))


def render_history_as_text(
    messages: Sequence[Message], *, render_call: RenderCall, render_final: Callable[[str], str] = str
) -> list[Message]:
    """Return a history in OpenAI's format with its calls and results as text.

    Each call becomes an assistant message. A user message with the result of the call follows, unless the call has no
    result or a later message has a call with the same id before the result. Text beside calls is left out, and so are
    results without a call and parts of results and answers that are not text.

    Args:
        messages: the history.
        render_call: returns the text of a call.
        render_final: returns the text of an answer without calls.
    """
    rewritten_messages: list[Message] = []
    results = _pair_results(messages)
    for index, message in enumerate(messages):
        if message.get("role") == "tool":
            continue
        if message.get("role") != "assistant":
            rewritten_messages.append(message)
        elif calls := list_structured_calls(message):
            for number, call in enumerate(calls):
                rewritten_messages += _render_call_with_result(call, results.get((index, number)), render_call)
        else:
            rewritten_messages.append({**remove_calls(message), "content": render_final(get_message_text(message))})
    return rewritten_messages


def _pair_results(messages: Sequence[Message]) -> dict[tuple[int, int], str]:
    """Return the results of calls by the index of the call's message and the call's index in it.

    A result belongs to the last earlier message that has a call with the id of the result, or, for a result without an
    id, a call without one. If several calls of that message have this id, the results are assigned to them in order.
    """
    results: dict[tuple[int, int], str] = {}
    open_calls: dict[str, deque[tuple[int, int]]] = {}
    for index, message in enumerate(messages):
        if message.get("role") == "tool":
            if calls := open_calls.get(str(message.get("tool_call_id") or "")):
                results[calls.popleft()] = get_message_text(message)
        elif message.get("role") == "assistant":
            message_calls: dict[str, deque[tuple[int, int]]] = defaultdict(deque)
            for number, call in enumerate(list_structured_calls(message)):
                message_calls[str(call.get("id") or "")].append((index, number))
            open_calls |= message_calls
    return results


def _render_call_with_result(call: JsonObject, result: str | None, render_call: RenderCall) -> list[Message]:
    """Return the messages of a call and of its result, if it has one."""
    function = get_called_function(call)
    tool_call = ToolCall(str(call.get("id") or ""), str(function.get("name") or ""), function.get("arguments"))
    arguments = tool_call.arguments if isinstance(tool_call.arguments, str) else write_json(tool_call.arguments or {})
    message: Message = {"role": "assistant", "content": render_call(tool_call.name, arguments.strip() or "{}")}
    return [message] if result is None else [message, build_result_message(tool_call, result)]


def render_call_json(name: str, arguments: str) -> str:
    """Return a call as JSON text; `arguments` are inserted as they are and must be JSON text."""
    return f'{{"name": {json.dumps(name)}, "arguments": {arguments}}}'


def _build_example(function: JsonObject) -> str:
    """Return a call as JSON text, with placeholders as arguments.

    The call has the required parameters, or the first one if none is required.
    """
    schema = function.get("parameters") or {}
    properties = schema.get("properties") or {}
    required = schema.get("required") or list(properties)[:1]
    arguments = {name: _build_placeholder(properties.get(name)) for name in required}
    return render_call_json(str(function["name"]), json.dumps(arguments, ensure_ascii=False))


def _build_placeholder(schema: object) -> object:
    schema_type = schema.get("type") if isinstance(schema, dict) else None
    placeholder_by_type: dict[object, object] = {"number": 0, "integer": 0, "boolean": False, "array": [], "object": {}}
    return placeholder_by_type.get(schema_type, "...") if isinstance(schema_type, str) else "..."
