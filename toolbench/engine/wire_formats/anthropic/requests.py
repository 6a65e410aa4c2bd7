"""The body of a chat request as a Messages body."""

import json
from pathlib import Path
from typing import Any

from toolbench.engine.strict_json import get_object
from toolbench.engine.types import JsonObject, TransformChange
from toolbench.engine.wire_formats.anthropic.changes import WireChanges
from toolbench.engine.wire_formats.anthropic.conversation import arrange_turns, split_system

MESSAGES_DATA: JsonObject = json.loads((Path(__file__).parents[2] / "data" / "anthropic.json").read_text("utf-8"))
# Effort in Messages by `reasoning_effort` of a chat request.
EFFORT_VALUES = {"minimal": "low"} | {effort: effort for effort in ("low", "medium", "high", "xhigh", "max")}
SAMPLING_KEYS = ("temperature", "top_p", "top_k")
# Tool choice in Messages by the word that a chat request has for it.
TOOL_CHOICES: dict[object, JsonObject] = {
    "auto": {"type": "auto"},
    "required": {"type": "any"},
    "any": {"type": "any"},  # Mistral and Messages have `any` for OpenAI's `required`
    "none": {"type": "none"},
}
# Keys that are converted one by one.
_HANDLED_KEYS = (
    "model",
    "messages",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "max_tokens",
    "max_completion_tokens",
)
# Keys with another name or place in Messages, and `stream_options`, which is dropped: streams of Messages need none.
_RENAMED_KEYS = ("stop", "user", "seed", "response_format", "reasoning_effort", "stream_options")


def encode_request(body: JsonObject) -> tuple[JsonObject, tuple[TransformChange, ...]]:
    """Return the body in Anthropic's format, and the changes beyond the conversion.

    Options that Messages is known not to have are left out; options of unknown names are sent.
    """
    changes = WireChanges()
    unsupported_options = MESSAGES_DATA["left_out"]
    for name in (name for name in body if name in unsupported_options):
        changes.record("option_left_out", f"$.{name}", body[name])
    options = {
        name: value
        for name, value in body.items()
        if name not in (*_HANDLED_KEYS, *_RENAMED_KEYS, *unsupported_options)
    }
    options |= _rename_options(body, options, changes)
    system, messages = split_system(body["messages"])
    encoded_body: JsonObject = {"model": body["model"], "max_tokens": _get_max_tokens(body, options)}
    encoded_body |= {"system": system} if system else {}
    turns = arrange_turns(messages, changes)
    tools = _build_tools(body, options, changes) if body.get("tools") else _build_tools_called_before(turns, changes)
    encoded_body |= {"messages": turns, **tools, **_find_container(messages)}
    return encoded_body | _limit_sampling(body["model"], options, changes), changes.list_changes()


def _get_max_tokens(body: JsonObject, options: JsonObject) -> object:
    """Return the requested token limit, or the default limit plus the thinking budget."""
    limit = body.get("max_tokens", body.get("max_completion_tokens"))
    if limit is not None:
        return int(limit) if isinstance(limit, float) else limit
    thinking_budget = _get_thinking(options).get("budget_tokens")
    return MESSAGES_DATA["max_tokens"] + (thinking_budget if isinstance(thinking_budget, int) else 0)


def _get_thinking(options: JsonObject) -> JsonObject:
    return get_object(options.get("thinking"))


def _rename_options(body: JsonObject, options: JsonObject, changes: WireChanges) -> JsonObject:
    """Return the options that have another name or place in Messages.

    Args:
        body: the body in chat format.
        options: the options of the body that are sent under the same name.
        changes: records what is left out or has no effect.
    """
    renamed_options: JsonObject = {}
    if (stop := body.get("stop")) is not None:
        renamed_options["stop_sequences"] = [stop] if isinstance(stop, str) else stop
    if metadata := _build_metadata(body, options, changes):
        renamed_options["metadata"] = metadata
    if output_config := _build_output_config(body, options, changes):
        renamed_options["output_config"] = output_config
    return renamed_options


def _build_metadata(body: JsonObject, options: JsonObject, changes: WireChanges) -> JsonObject:
    """Return the metadata. A seed is sent as `user_id` if there is no user id; it is only a label there."""
    metadata = {"user_id": str(body["user"])} if body.get("user") else {}
    metadata |= get_object(options.get("metadata"))
    if (seed := body.get("seed")) is None:
        return metadata
    seed_as_user = {} if metadata.get("user_id") else {"user_id": f"seed-{seed}"}
    changes.record("seed_has_no_effect", "$.seed", seed, seed_as_user or None)
    return metadata | seed_as_user


def _build_output_config(body: JsonObject, options: JsonObject, changes: WireChanges) -> JsonObject:
    """Return the option `output_config` with effort and answer schema added; {} if there is nothing to send."""
    config = dict(get_object(options.get("output_config")))
    if (effort := body.get("reasoning_effort")) is not None:
        if isinstance(effort, str) and effort in EFFORT_VALUES:
            config.setdefault("effort", EFFORT_VALUES[effort])
        else:
            changes.record("option_left_out", "$.reasoning_effort", effort)
    if (response_format := body.get("response_format")) is not None:
        json_schema = response_format.get("json_schema") if isinstance(response_format, dict) else None
        schema = json_schema.get("schema") if isinstance(json_schema, dict) else None
        if isinstance(schema, dict):
            config["format"] = {"type": "json_schema", "schema": schema}
        else:
            changes.record("option_left_out", "$.response_format", response_format)
    return config


def _build_tools(body: JsonObject, options: JsonObject, changes: WireChanges) -> JsonObject:
    """Return the fields for tools and tool choice; where the endpoint refuses a forced call, it becomes `auto`."""
    tool_choice = _build_tool_choice(requested_choice := body.get("tool_choice"))
    if requested_choice is not None and not tool_choice:
        changes.record("option_left_out", "$.tool_choice", requested_choice)
    if tool_choice.get("type") in ("any", "tool") and _is_forced_choice_refused(body["model"], options):
        changes.record("forced_choice_to_auto", "$.tool_choice", requested_choice, "auto")
        tool_choice = {"type": "auto"}
    if body.get("parallel_tool_calls") is False and tool_choice.get("type") != "none":
        tool_choice = {"type": "auto", **tool_choice, "disable_parallel_tool_use": True}
    return {
        "tools": [_build_tool(tool) for tool in body["tools"]],
        **({"tool_choice": tool_choice} if tool_choice else {}),
    }


def _build_tools_called_before(turns: list[JsonObject], changes: WireChanges) -> JsonObject:
    """Return definitions of the tools that the conversation calls; Messages requires them.

    They have a name and an empty schema, and the tool choice is `none`.
    """
    blocks = (block for turn in turns for block in turn["content"] if isinstance(turn["content"], list))
    names = list(dict.fromkeys(block["name"] for block in blocks if block.get("type") == "tool_use"))
    if not names:
        return {}
    changes.record("called_tools_defined", "$.tools", None, names)
    return {
        "tools": [{"name": name, "input_schema": {"type": "object"}} for name in names],
        "tool_choice": dict(TOOL_CHOICES["none"]),
    }


def _build_tool_choice(chat_choice: Any) -> JsonObject:
    """Return the tool choice, {} if it is missing or an unknown word; an object that names no function is unchanged."""
    if not isinstance(chat_choice, dict):
        return dict(TOOL_CHOICES.get(chat_choice, {}))
    function = chat_choice.get("function")
    name = function.get("name") if isinstance(function, dict) else None
    return {"type": "tool", "name": name} if name else dict(chat_choice)


def _is_forced_choice_refused(model: str, options: JsonObject) -> bool:
    """Return whether a forced call is refused: with a thinking budget, and for some models always."""
    return _get_thinking(options).get("type") == "enabled" or model.startswith(tuple(MESSAGES_DATA["no_forcing"]))


def _build_tool(tool: JsonObject) -> JsonObject:
    """Return a tool in Anthropic's format; a tool that is in this format already is unchanged."""
    function = tool.get("function")
    if not isinstance(function, dict):
        return tool
    outer_fields = {name: value for name, value in tool.items() if name not in ("type", "function")}
    other_function_fields = {
        name: value for name, value in function.items() if name not in ("name", "description", "parameters")
    }
    description = {"description": function["description"]} if function.get("description") else {}
    schema = {"type": "object", **(function.get("parameters") or {})}
    return {
        "name": function.get("name"),
        **description,
        "input_schema": schema,
        **other_function_fields,
        **outer_fields,
    }


def _find_container(messages: list[JsonObject]) -> JsonObject:
    """Return the field `container` with the container id of the latest answer that has one; {} for none."""
    containers = (message.get("container") for message in reversed(messages) if message.get("role") == "assistant")
    last_container = next(
        (container for container in containers if isinstance(container, dict) and container.get("id")), None
    )
    return {"container": last_container["id"]} if last_container else {}


def _limit_sampling(model: str, options: JsonObject, changes: WireChanges) -> JsonObject:
    """Return the options with a temperature of at most 1 and without refused sampling options.

    Some models refuse all sampling options; with thinking, every model refuses `temperature` and `top_k`.
    """
    refused_options: tuple[str, ...] = SAMPLING_KEYS if model.startswith(tuple(MESSAGES_DATA["no_sampling"])) else ()
    if _get_thinking(options).get("type") in ("enabled", "adaptive"):
        refused_options = refused_options or ("temperature", "top_k")
    remaining_options = {name: value for name, value in options.items() if name not in refused_options}
    for name in (name for name in options if name in refused_options):
        changes.record("sampling_left_out", f"$.{name}", options[name])
    temperature = remaining_options.get("temperature")
    if isinstance(temperature, (int, float)) and temperature > 1:
        changes.record("temperature_capped", "$.temperature", temperature, 1)
        remaining_options["temperature"] = 1
    return remaining_options
