"""The body of a chat request as a Responses body."""

import json
from pathlib import Path
from typing import Any

from toolbench.engine.strict_json import get_object
from toolbench.engine.types import JsonObject, TransformChange
from toolbench.engine.wire_formats.anthropic.changes import WireChanges
from toolbench.engine.wire_formats.anthropic.conversation import split_system
from toolbench.engine.wire_formats.responses.conversation import build_input_items
from toolbench.engine.wire_formats.responses.items import list_objects

RESPONSES_DATA: JsonObject = json.loads((Path(__file__).parents[2] / "data" / "responses.json").read_text("utf-8"))
# Smallest limit of output tokens that OpenAI accepts.
MIN_TOKEN_LIMIT: int = RESPONSES_DATA["lowest_max_output_tokens"]
ENCRYPTED_REASONING = "reasoning.encrypted_content"
# Keys that are converted or copied one by one.
_CONVERTED_KEYS = (
    "model",
    "messages",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "max_tokens",
    "max_completion_tokens",
    "response_format",
    "reasoning_effort",
    "verbosity",
    "seed",
    "stream_options",
)


def encode_request(body: JsonObject) -> tuple[JsonObject, tuple[TransformChange, ...]]:
    """Return the body in the format of Responses, and the changes beyond the conversion.

    Unless the option `store` is true, the endpoint is asked not to store the answer. Reasoning is then received
    encrypted and is sent again with the next request. Options that Responses is known not to have are left out; options
    of unknown names are sent.
    """
    changes = WireChanges()
    unsupported_options = RESPONSES_DATA["left_out"]
    for name in (name for name in body if name in unsupported_options):
        changes.record("option_left_out", f"$.{name}", body[name])
    options = {name: value for name, value in body.items() if name not in (*_CONVERTED_KEYS, *unsupported_options)}
    instructions, messages = split_system(body["messages"])
    encoded_body: JsonObject = {"model": body["model"], **({"instructions": instructions} if instructions else {})}
    encoded_body |= {"input": build_input_items(messages, changes), **_build_tools(body)}
    encoded_body |= {**_build_limit(body, changes), **_disable_storage(options), **options}
    encoded_body |= _convert_options(body, options, changes)
    return encoded_body, changes.list_changes()


def _build_limit(body: JsonObject, changes: WireChanges) -> JsonObject:
    """Return the token limit, raised if it is below the smallest that OpenAI accepts; {} for none."""
    limit = body.get("max_tokens", body.get("max_completion_tokens"))
    if limit is None:
        return {}
    if isinstance(limit, int | float) and limit < MIN_TOKEN_LIMIT:
        changes.record("token_limit_raised", "$.max_output_tokens", limit, MIN_TOKEN_LIMIT)
        limit = MIN_TOKEN_LIMIT
    return {"max_output_tokens": int(limit) if isinstance(limit, float) else limit}


def _disable_storage(options: JsonObject) -> JsonObject:
    """Return the field that switches storage off; {} if the options ask for storage.

    If storage is switched off, `include` in `options` is changed, so that it requests encrypted reasoning.
    """
    if options.get("store"):
        return {}
    requested_fields = options.get("include")
    included_fields = requested_fields if isinstance(requested_fields, list) else []
    options["include"] = [*included_fields, *([] if ENCRYPTED_REASONING in included_fields else [ENCRYPTED_REASONING])]
    return {"store": False}


def _convert_options(body: JsonObject, options: JsonObject, changes: WireChanges) -> JsonObject:
    """Return the options that have another name or place in Responses.

    Args:
        body: the body in chat format.
        options: the options of the body that are sent under the same name.
        changes: records what is left out or has no effect.
    """
    converted_options: JsonObject = {}
    if (effort := body.get("reasoning_effort")) is not None:
        converted_options["reasoning"] = {"effort": effort, **get_object(options.get("reasoning"))}
    if text := _build_text(body, options, changes):
        converted_options["text"] = text
    if (seed := body.get("seed")) is not None:
        converted_options["metadata"] = {"seed": str(seed), **get_object(options.get("metadata"))}
        changes.record("seed_has_no_effect", "$.seed", seed, converted_options["metadata"])
    stream_options = dict(get_object(body.get("stream_options")))
    stream_options.pop("include_usage", None)  # the last event always has the usage
    return converted_options | ({"stream_options": stream_options} if stream_options else {})


def _build_text(body: JsonObject, options: JsonObject, changes: WireChanges) -> JsonObject:
    """Return the option `text` with verbosity and answer format added; {} if there is nothing to send."""
    text = dict(get_object(options.get("text")))
    if (verbosity := body.get("verbosity")) is not None:
        text.setdefault("verbosity", verbosity)
    if (response_format := body.get("response_format")) is not None:
        json_schema = get_object(get_object(response_format).get("json_schema"))
        if isinstance(json_schema.get("schema"), dict):
            text["format"] = {"type": "json_schema", "name": "answer", "strict": False, **json_schema}
        elif get_object(response_format).get("type") in ("text", "json_object"):
            text["format"] = response_format
        else:
            changes.record("option_left_out", "$.response_format", response_format)
    return text


def _build_tools(body: JsonObject) -> JsonObject:
    """Return the fields for tools, tool choice and parallel calls; {} if there are no tools."""
    if not body.get("tools"):
        return {}
    parallel_field = {"parallel_tool_calls": body["parallel_tool_calls"]} if "parallel_tool_calls" in body else {}
    tool_choice = (
        _convert_tool_choice(body["tool_choice"])
        if isinstance(body.get("tool_choice"), dict)
        else body.get("tool_choice")
    )
    return {
        "tools": [_build_tool(tool) for tool in body["tools"]],
        **({"tool_choice": tool_choice} if tool_choice is not None else {}),
        **parallel_field,
    }


def _convert_tool_choice(choice: JsonObject) -> JsonObject:
    """Convert a tool choice that is an object to the format of Responses; one in this format is unchanged."""
    if isinstance(allowed_tools := choice.get("allowed_tools"), dict):
        tools = [_convert_tool_choice(tool) for tool in list_objects(allowed_tools.get("tools"))]
        return {"type": "allowed_tools", "mode": allowed_tools.get("mode", "auto"), "tools": tools}
    function = choice.get("function")
    return {"type": "function", "name": function.get("name")} if isinstance(function, dict) else choice


def _build_tool(tool: JsonObject) -> Any:
    """Return a tool in the format of Responses; a tool that is in this format already is unchanged.

    A converted tool always has `strict`, since Responses treats a missing `strict` as true.
    """
    function = tool.get("function")
    if not isinstance(function, dict):
        return tool
    outer_fields = {name: value for name, value in tool.items() if name not in ("type", "function")}
    parameters = {"type": "object", "properties": {}, **(function.get("parameters") or {})}
    return {
        "type": "function",
        **function,
        "parameters": parameters,
        "strict": bool(function.get("strict")),
        **outer_fields,
    }
