"""Transforms of the request body: fields that an endpoint knows under another name or not at all."""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

from toolbench.engine.strict_json import get_object
from toolbench.engine.transforms.registry import TransformKind
from toolbench.engine.types import JsonObject, Message, remove_calls

REQUEST: TransformKind[JsonObject] = TransformKind("request")
TOKEN_LIMIT_KEYS = ("max_tokens", "max_completion_tokens")
# Tokens of thinking that stand for an effort, our own choice: the least that Anthropic takes is 1024.
THINKING_BUDGETS = {"none": 0, "minimal": 1024, "low": 1024, "medium": 4096, "high": 16_384, "xhigh": 32_768}


@REQUEST.register
def tools_to_functions(body: JsonObject) -> JsonObject:
    """Send the request in OpenAI's older form: functions and function_call instead of tools and tool_choice.

    In the history each answer has one call, and results have the role function.
    """
    rest = {key: value for key, value in body.items() if key not in ("tools", "tool_choice", "parallel_tool_calls")}
    tools, choice = body.get("tools"), body.get("tool_choice")
    functions = [tool["function"] for tool in tools if "function" in tool] if isinstance(tools, list) else []
    messages = body.get("messages")
    older = list(_to_legacy_messages(messages)) if isinstance(messages, list) else messages
    if not functions and older == messages:
        return body
    chosen = {} if choice is None else {"function_call": _to_function_choice(choice)}
    return {**rest, "messages": older, **({"functions": functions, **chosen} if functions else {})}


@REQUEST.register
def max_tokens_to_max_completion_tokens(body: JsonObject) -> JsonObject:
    """Send the limit of an answer as max_completion_tokens, as reasoning models require."""
    return _rename_key(body, "max_tokens", "max_completion_tokens")


@REQUEST.register
def max_completion_tokens_to_max_tokens(body: JsonObject) -> JsonObject:
    """Send the limit of an answer as max_tokens, for endpoints that know no other name."""
    return _rename_key(body, "max_completion_tokens", "max_tokens")


@REQUEST.register
def reasoning_effort_to_reasoning_object(body: JsonObject) -> JsonObject:
    """Send the effort inside an object, `reasoning: {"effort": …}`, as OpenRouter requires."""
    if "reasoning_effort" not in body:
        return body
    given = body.get("reasoning")
    rest = {key: value for key, value in body.items() if key != "reasoning_effort"}
    return {**rest, "reasoning": {**get_object(given), "effort": body["reasoning_effort"]}}


@REQUEST.register
def reasoning_object_to_reasoning_effort(body: JsonObject) -> JsonObject:
    """Send the effort of a reasoning object as reasoning_effort, as OpenAI requires; a budget has no field there."""
    given = body.get("reasoning")
    if not isinstance(given, dict) or "effort" not in given:
        return body
    rest = {key: value for key, value in body.items() if key != "reasoning"}
    return {**rest, "reasoning_effort": given["effort"]}


@REQUEST.register
def reasoning_effort_to_thinking_budget(body: JsonObject) -> JsonObject:
    """Send the effort as a budget of thinking tokens, and raise the limit of the answer by it.

    The field is `thinking: {"budget_tokens": …}`. `none` turns thinking off; an unknown effort stays unchanged.
    """
    effort = body.get("reasoning_effort")
    if not isinstance(effort, str) or effort not in THINKING_BUDGETS or "thinking" in body:
        return body
    budget = THINKING_BUDGETS[effort]
    thinking = {"type": "enabled", "budget_tokens": budget} if budget else {"type": "disabled"}
    rest = {key: value for key, value in body.items() if key != "reasoning_effort"}
    limits = {name: rest[name] + budget for name in TOKEN_LIMIT_KEYS if isinstance(rest.get(name), int | float)}
    return {**rest, **limits, "thinking": thinking}


@REQUEST.register
def tool_choice_forced_to_auto(body: JsonObject) -> JsonObject:
    """Send a tool choice that demands a call as auto, for endpoints and thinking models that refuse any other."""
    choice = body.get("tool_choice")
    forced = isinstance(choice, dict) or choice in ("required", "any")
    return {**body, "tool_choice": "auto"} if forced else body


def _rename_key(body: JsonObject, old: str, new: str) -> JsonObject:
    if old not in body:
        return body
    return {**{key: value for key, value in body.items() if key != old}, new: body.get(new, body[old])}


def _to_function_choice(choice: Any) -> Any:
    """Return the choice in the older form, which can demand a named function only."""
    if isinstance(choice, dict):
        function = choice.get("function")
        return {"name": function.get("name")} if isinstance(function, dict) else "auto"
    return choice if choice in ("auto", "none") else "auto"


def _to_legacy_messages(messages: Sequence[Message]) -> Iterator[Message]:
    """Yield the messages with an answer for each call, followed by its result. Ids may repeat in later answers."""
    for place, message in enumerate(messages):
        calls = message.get("tool_calls")
        if message.get("role") == "tool":
            continue
        if not isinstance(calls, list) or not calls:
            yield message
            continue
        following = takewhile(lambda message: message.get("role") == "tool", messages[place + 1 :])
        results = {message.get("tool_call_id"): message.get("content") for message in following}
        rest = remove_calls(message)
        for at, call in enumerate(calls):
            function = call["function"]
            yield {**rest, "content": None if at else rest.get("content"), "function_call": function}
            if call.get("id") in results:
                yield {"role": "function", "name": function.get("name"), "content": results[call["id"]]}
