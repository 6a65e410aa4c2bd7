"""Transforms of an assistant message.

The order in which they are applied matters: a tool_calls object has to become a list before the arguments of its call
are converted.
"""

from collections.abc import Sequence

from toolbench.engine.formats import ParsedText, TextCall, parse
from toolbench.engine.formats.types import build_tool_schemas
from toolbench.engine.strict_json import write_json
from toolbench.engine.transforms.registry import TransformContext, TransformKind
from toolbench.engine.transforms.tool_call_tags import extract_tagged_calls
from toolbench.engine.types import JsonObject, Message
from toolbench.engine.wire_formats.parse_answer import add_reasoning, build_openai_call, get_message_text

RESPONSE: TransformKind[Message] = TransformKind("response")
# Transforms that read calls which the model wrote into its text or its reasoning.
TEXT_CALL_TRANSFORMS = frozenset(
    {"assistant_content_tool_call_tags_to_tool_calls", "tool_calls_from_text", "tool_calls_from_reasoning"}
)


@RESPONSE.register
def assistant_function_call_to_tool_calls(message: Message) -> Message:
    """Move a legacy function_call with a name into tool_calls, unless tool_calls is already a list with calls."""
    calls = message.get("tool_calls")
    function = message.get("function_call")
    if (isinstance(calls, list) and calls) or not isinstance(function, dict):
        return message
    name = function.get("name")
    if not isinstance(name, str) or not name.strip():
        return message
    arguments = _render_arguments_text(function.get("arguments"))
    call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}
    remaining_fields = {key: value for key, value in message.items() if key not in ("function_call", "tool_calls")}
    return {**remaining_fields, "tool_calls": [call]}


@RESPONSE.register
def assistant_tool_calls_object_to_array(message: Message) -> Message:
    """Turn a tool_calls object into a list of one call."""
    calls = message.get("tool_calls")
    return {**message, "tool_calls": [calls]} if isinstance(calls, dict) else message


@RESPONSE.register
def assistant_tool_calls_arguments_json_string_if_hash(message: Message) -> Message:
    """Turn arguments that are an object or a list into their JSON text."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return message
    converted_calls = [_render_arguments(call) for call in calls]
    if all(old is new for old, new in zip(calls, converted_calls, strict=True)):
        return message
    return {**message, "tool_calls": converted_calls}


@RESPONSE.register_with_context
def assistant_content_tool_call_tags_to_tool_calls(message: Message, context: TransformContext) -> Message:
    """Turn calls in the content between <tool_call> tags into tool calls, if the message has none.

    Tags in code blocks, in inline code or after a backslash are quotations and stay in the content. A tag that contains
    only a name also stays if tools are offered, none of them has this name, and there is text outside of the tags.
    """
    content = message.get("content")
    if message.get("tool_calls") or not isinstance(content, str) or "<tool_call>" not in content:
        return message
    remaining_text, calls = extract_tagged_calls(content, build_tool_schemas(context.tools).schemas)
    return {**message, "content": remaining_text, "tool_calls": calls} if calls else message


@RESPONSE.register_with_context
def tool_calls_from_text(message: Message, context: TransformContext) -> Message:
    """Turn calls that the model wrote into its text into tool calls, if the message has none.

    Only calls in the policy's text_format are read; with the value auto, calls in any known format. Reasoning in the
    text is appended to reasoning_content.
    """
    if message.get("tool_calls") or message.get("function_call"):
        return message
    parsed_text = _parse_calls(get_message_text(message), context)
    if not parsed_text.calls:
        return message
    return {
        **add_reasoning(message, parsed_text.reasoning),
        "content": parsed_text.text,
        "tool_calls": _to_openai_calls(parsed_text.calls),
    }


@RESPONSE.register_with_context
def tool_calls_from_reasoning(message: Message, context: TransformContext) -> Message:
    """Turn calls in the reasoning into tool calls, if the answer has neither text nor calls.

    Some servers put calls there.
    """
    if message.get("tool_calls") or message.get("function_call") or get_message_text(message).strip():
        return message
    for key in ("reasoning_content", "reasoning"):
        reasoning = message.get(key)
        parsed_text = _parse_calls(reasoning, context) if isinstance(reasoning, str) else None
        if parsed_text and parsed_text.calls:
            return {**message, key: parsed_text.text, "tool_calls": _to_openai_calls(parsed_text.calls)}
    return message


def _parse_calls(text: str, context: TransformContext) -> ParsedText:
    return parse(text, format=context.text_format, tools=context.tools, guess_untyped=context.guess_untyped)


def _to_openai_calls(calls: Sequence[TextCall]) -> list[JsonObject]:
    return [build_openai_call(call.id, call.name, call.arguments) for call in calls]


def _render_arguments(call: object) -> object:
    """Return the call with its arguments as JSON text if they are an object or a list; else the call itself."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(call, dict) or not isinstance(function, dict):
        return call
    arguments = function.get("arguments")
    if not isinstance(arguments, dict | list):
        return call
    converted_function: JsonObject = {**function, "arguments": _render_arguments_text(arguments)}
    return {**call, "function": converted_function}


def _render_arguments_text(arguments: object) -> str:
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else write_json(arguments)
