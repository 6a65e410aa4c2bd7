"""Transforms of the request body: renaming and conversion of fields that an endpoint does not accept."""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

from toolbench.engine.strict_json import get_object
from toolbench.engine.transforms.registry import TransformKind
from toolbench.engine.types import JsonObject, Message, get_called_function, remove_calls
from toolbench.engine.wire_formats.parse_answer import list_structured_calls

REQUEST: TransformKind[JsonObject] = TransformKind("request")
TOKEN_LIMIT_KEYS = ("max_tokens", "max_completion_tokens")
# Thinking tokens by effort. The values are chosen by Toolbench; Anthropic's minimum is 1024.
THINKING_BUDGETS = {"none": 0, "minimal": 1024, "low": 1024, "medium": 4096, "high": 16_384, "xhigh": 32_768}


@REQUEST.register
def tools_to_functions(body: JsonObject) -> JsonObject:
    """Send the request in OpenAI's older form.

    It has functions and function_call instead of tools and tool_choice. In the history, an assistant message has at
    most one call, and results have the role function.
    """
    remaining_fields = {
        key: value for key, value in body.items() if key not in ("tools", "tool_choice", "parallel_tool_calls")
    }
    tools, tool_choice = body.get("tools"), body.get("tool_choice")
    functions = [tool["function"] for tool in tools if "function" in tool] if isinstance(tools, list) else []
    messages = body.get("messages")
    legacy_messages = list(_iterate_legacy_messages(messages)) if isinstance(messages, list) else messages
    if not functions and legacy_messages == messages:
        return body
    function_choice = {} if tool_choice is None else {"function_call": _convert_tool_choice(tool_choice)}
    return {
        **remaining_fields,
        "messages": legacy_messages,
        **({"functions": functions, **function_choice} if functions else {}),
    }


@REQUEST.register
def max_tokens_to_max_completion_tokens(body: JsonObject) -> JsonObject:
    """Send the token limit of the answer as max_completion_tokens, as reasoning models require."""
    return _rename_key(body, "max_tokens", "max_completion_tokens")


@REQUEST.register
def max_completion_tokens_to_max_tokens(body: JsonObject) -> JsonObject:
    """Send the token limit of the answer as max_tokens, for endpoints that accept no other name."""
    return _rename_key(body, "max_completion_tokens", "max_tokens")


@REQUEST.register
def reasoning_effort_to_reasoning_object(body: JsonObject) -> JsonObject:
    """Send the effort inside an object, `reasoning: {"effort": …}`, as OpenRouter requires."""
    if "reasoning_effort" not in body:
        return body
    remaining_fields = {key: value for key, value in body.items() if key != "reasoning_effort"}
    reasoning = {**get_object(body.get("reasoning")), "effort": body["reasoning_effort"]}
    return {**remaining_fields, "reasoning": reasoning}


@REQUEST.register
def reasoning_object_to_reasoning_effort(body: JsonObject) -> JsonObject:
    """Send the effort of a reasoning object as reasoning_effort, as OpenAI requires.

    Other members of the object, such as a budget, are left out, since OpenAI has no fields for them.
    """
    reasoning = body.get("reasoning")
    if not isinstance(reasoning, dict) or "effort" not in reasoning:
        return body
    remaining_fields = {key: value for key, value in body.items() if key != "reasoning"}
    return {**remaining_fields, "reasoning_effort": reasoning["effort"]}


@REQUEST.register
def reasoning_effort_to_thinking_budget(body: JsonObject) -> JsonObject:
    """Send the effort as a budget of thinking tokens, and raise the token limit of the answer by this budget.

    The budget is sent as `thinking: {"budget_tokens": …}`; the effort `none` turns thinking off. A request with an
    unknown effort, or with a field `thinking`, stays unchanged.
    """
    effort = body.get("reasoning_effort")
    if not isinstance(effort, str) or effort not in THINKING_BUDGETS or "thinking" in body:
        return body
    budget_tokens = THINKING_BUDGETS[effort]
    thinking = {"type": "enabled", "budget_tokens": budget_tokens} if budget_tokens else {"type": "disabled"}
    remaining_fields = {key: value for key, value in body.items() if key != "reasoning_effort"}
    raised_limits = {
        name: remaining_fields[name] + budget_tokens
        for name in TOKEN_LIMIT_KEYS
        if isinstance(remaining_fields.get(name), int | float)
    }
    return {**remaining_fields, **raised_limits, "thinking": thinking}


@REQUEST.register
def tool_choice_forced_to_auto(body: JsonObject) -> JsonObject:
    """Replace a tool choice that demands a call by auto, for endpoints and thinking models that refuse it."""
    tool_choice = body.get("tool_choice")
    is_forced = isinstance(tool_choice, dict) or tool_choice in ("required", "any")
    return {**body, "tool_choice": "auto"} if is_forced else body


def _rename_key(body: JsonObject, old_key: str, new_key: str) -> JsonObject:
    """Return the body with the value of `old_key` under `new_key`; an existing value of `new_key` is kept."""
    if old_key not in body:
        return body
    return {**{key: value for key, value in body.items() if key != old_key}, new_key: body.get(new_key, body[old_key])}


def _convert_tool_choice(tool_choice: Any) -> Any:
    """Return the choice as `function_call`: a named function, `none`, or `auto` for anything else."""
    if isinstance(tool_choice, dict):
        function = tool_choice.get("function")
        return {"name": function.get("name")} if isinstance(function, dict) else "auto"
    return tool_choice if tool_choice in ("auto", "none") else "auto"


def _iterate_legacy_messages(messages: Sequence[Message]) -> Iterator[Message]:
    """Yield the messages with one assistant message for each call, followed by the result of the call.

    Only the tool messages directly after an assistant message are searched for the results of its calls, because later
    answers may repeat an id. A result without a call is left out.
    """
    for index, message in enumerate(messages):
        calls = list_structured_calls(message)
        if message.get("role") == "tool":
            continue
        if not calls:
            yield message
            continue
        result_messages = takewhile(lambda message: message.get("role") == "tool", messages[index + 1 :])
        results = {str(message.get("tool_call_id")): message.get("content") for message in result_messages}
        message_without_calls = remove_calls(message)
        for call_index, call in enumerate(calls):
            function = get_called_function(call)
            yield {
                **message_without_calls,
                "content": None if call_index else message_without_calls.get("content"),
                "function_call": function,
            }
            if (call_id := str(call.get("id"))) in results:
                yield {"role": "function", "name": function.get("name"), "content": results[call_id]}
