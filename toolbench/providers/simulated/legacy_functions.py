"""Conversion of requests with OpenAI's older fields `functions` and `function_call`."""

from toolbench.engine.types import JsonObject, Message


def convert_legacy_request(body: JsonObject) -> JsonObject:
    """Return the request with `functions` as its tools and with converted messages; its own `tools` are ignored."""
    functions = body.get("functions")
    tools = (
        [{"type": "function", "function": function} for function in functions] if isinstance(functions, list) else []
    )
    messages = body.get("messages")
    converted = [_convert_message(message) for message in messages] if isinstance(messages, list) else messages
    return {**body, "tools": tools, "messages": converted}


def _convert_message(message: Message) -> Message:
    """Convert a call or a result. The function's name serves as the call's id, which the older fields do not have."""
    if not isinstance(message, dict):
        return message
    if message.get("role") == "function":
        return {**message, "role": "tool", "tool_call_id": str(message.get("name"))}
    function = message.get("function_call")
    if isinstance(function, dict):
        return {**message, "tool_calls": [{"id": str(function.get("name")), "function": function}]}
    return message
