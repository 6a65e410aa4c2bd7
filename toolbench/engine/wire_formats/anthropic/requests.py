"""The body of a chat request as a Messages body."""

import json
from pathlib import Path
from typing import Any

from toolbench.engine.strict_json import get_object
from toolbench.engine.types import JsonObject, TransformChange
from toolbench.engine.wire_formats.anthropic.changes import WireChanges
from toolbench.engine.wire_formats.anthropic.conversation import arrange_turns, split_system

MESSAGES_DATA: JsonObject = json.loads((Path(__file__).parents[2] / "data" / "anthropic.json").read_text("utf-8"))
EFFORT_VALUES = {"minimal": "low"} | {effort: effort for effort in ("low", "medium", "high", "xhigh", "max")}
SAMPLING_KEYS = ("temperature", "top_p", "top_k")
TOOL_CHOICES: dict[object, JsonObject] = {
    "auto": {"type": "auto"},
    "required": {"type": "any"},
    "none": {"type": "none"},
}
_HANDLED_KEYS = (
    "model",
    "messages",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "max_tokens",
    "max_completion_tokens",
)
_RENAMED_KEYS = ("stop", "user", "seed", "response_format", "reasoning_effort", "stream_options")


def encode_request(body: JsonObject) -> tuple[JsonObject, tuple[TransformChange, ...]]:
    """Return the body in Anthropic's format, and what could not be sent as requested.

    Options that Messages does not have are left out; unknown options are sent.
    """
    changes = WireChanges()
    left_out = MESSAGES_DATA["left_out"]
    for name in (name for name in body if name in left_out):
        changes.note("option_left_out", f"$.{name}", body[name])
    options = {name: value for name, value in body.items() if name not in (*_HANDLED_KEYS, *_RENAMED_KEYS, *left_out)}
    options |= _rename_options(body, options, changes)
    system, messages = split_system(body["messages"])
    encoded: JsonObject = {"model": body["model"], "max_tokens": _get_max_tokens(body, options)}
    encoded |= {"system": system} if system else {}
    turns = arrange_turns(messages, changes)
    tools = _build_tools(body, options, changes) if body.get("tools") else _build_tools_called_before(turns, changes)
    encoded |= {"messages": turns, **tools, **_find_container(messages)}
    return encoded | _limit_sampling(body["model"], options, changes), changes.all()


def _get_max_tokens(body: JsonObject, options: JsonObject) -> object:
    """Return the requested limit, or else the default limit plus the thinking budget, which counts as output too."""
    limit = body.get("max_tokens", body.get("max_completion_tokens"))
    if limit is not None:
        return int(limit) if isinstance(limit, float) else limit
    budget = _get_thinking(options).get("budget_tokens")
    return MESSAGES_DATA["max_tokens"] + (budget if isinstance(budget, int) else 0)


def _get_thinking(options: JsonObject) -> JsonObject:
    thinking = options.get("thinking")
    return get_object(thinking)


def _rename_options(body: JsonObject, options: JsonObject, changes: WireChanges) -> JsonObject:
    renamed: JsonObject = {}
    if (stop := body.get("stop")) is not None:
        renamed["stop_sequences"] = [stop] if isinstance(stop, str) else stop
    if metadata := _build_metadata(body, options, changes):
        renamed["metadata"] = metadata
    if output := _build_output_config(body, options, changes):
        renamed["output_config"] = output
    return renamed


def _build_metadata(body: JsonObject, options: JsonObject, changes: WireChanges) -> JsonObject:
    """Return the metadata. Messages has no seed; it is sent as the user's id if there is no other."""
    given = options.get("metadata")
    metadata = {"user_id": str(body["user"])} if body.get("user") else {}
    metadata |= get_object(given)
    if (seed := body.get("seed")) is None:
        return metadata
    label = {} if metadata.get("user_id") else {"user_id": f"seed-{seed}"}
    changes.note("seed_has_no_effect", "$.seed", seed, label or None)
    return metadata | label


def _build_output_config(body: JsonObject, options: JsonObject, changes: WireChanges) -> JsonObject:
    given = options.get("output_config")
    config = dict(get_object(given))
    if (effort := body.get("reasoning_effort")) is not None:
        if isinstance(effort, str) and effort in EFFORT_VALUES:
            config.setdefault("effort", EFFORT_VALUES[effort])
        else:
            changes.note("option_left_out", "$.reasoning_effort", effort)
    if (response_format := body.get("response_format")) is not None:
        described = response_format.get("json_schema") if isinstance(response_format, dict) else None
        schema = described.get("schema") if isinstance(described, dict) else None
        if isinstance(schema, dict):
            config["format"] = {"type": "json_schema", "schema": schema}
        else:
            changes.note("option_left_out", "$.response_format", response_format)
    return config


def _build_tools(body: JsonObject, options: JsonObject, changes: WireChanges) -> JsonObject:
    chosen = _build_tool_choice(body.get("tool_choice"))
    if chosen.get("type") in ("any", "tool") and _is_forced_choice_refused(body["model"], options):
        changes.note("forced_choice_to_auto", "$.tool_choice", body.get("tool_choice"), "auto")
        chosen = {"type": "auto"}
    if body.get("parallel_tool_calls") is False and chosen.get("type") != "none":
        chosen = {"type": "auto", **chosen, "disable_parallel_tool_use": True}
    return {"tools": [_build_tool(tool) for tool in body["tools"]], **({"tool_choice": chosen} if chosen else {})}


def _build_tools_called_before(turns: list[JsonObject], changes: WireChanges) -> JsonObject:
    """Return definitions of tools that the conversation calls, when no tools are sent; Messages requires them.

    They have a name only, and the tool choice is none.
    """
    blocks = (block for turn in turns for block in turn["content"] if isinstance(turn["content"], list))
    names = list(dict.fromkeys(block["name"] for block in blocks if block.get("type") == "tool_use"))
    if not names:
        return {}
    changes.note("called_tools_defined", "$.tools", None, names)
    return {
        "tools": [{"name": name, "input_schema": {"type": "object"}} for name in names],
        "tool_choice": dict(TOOL_CHOICES["none"]),
    }


def _build_tool_choice(given: Any) -> JsonObject:
    """Return the tool choice, {} for none; a choice in Anthropic's format stays as it is."""
    if not isinstance(given, dict):
        return dict(TOOL_CHOICES.get(given, {}))
    function = given.get("function")
    name = function.get("name") if isinstance(function, dict) else None
    return {"type": "tool", "name": name} if name else dict(given)


def _is_forced_choice_refused(model: str, options: JsonObject) -> bool:
    """Return whether a forced call is refused: with a thinking budget, and by some models always."""
    return _get_thinking(options).get("type") == "enabled" or model.startswith(tuple(MESSAGES_DATA["no_forcing"]))


def _build_tool(tool: JsonObject) -> JsonObject:
    """Return a function in Anthropic's format; Anthropic's own tools stay as they are."""
    function = tool.get("function")
    if not isinstance(function, dict):
        return tool
    beside = {name: value for name, value in tool.items() if name not in ("type", "function")}
    extra = {name: value for name, value in function.items() if name not in ("name", "description", "parameters")}
    described = {"description": function["description"]} if function.get("description") else {}
    schema = {"type": "object", **(function.get("parameters") or {})}
    return {"name": function.get("name"), **described, "input_schema": schema, **extra, **beside}


def _find_container(messages: list[JsonObject]) -> JsonObject:
    """Return the container that the last answer used, for the next one."""
    named = (message.get("container") for message in reversed(messages) if message.get("role") == "assistant")
    last = next((container for container in named if isinstance(container, dict) and container.get("id")), None)
    return {"container": last["id"]} if last else {}


def _limit_sampling(model: str, options: JsonObject, changes: WireChanges) -> JsonObject:
    """Return the options with a temperature of at most 1, and without sampling where model or thinking exclude it."""
    refused: tuple[str, ...] = SAMPLING_KEYS if model.startswith(tuple(MESSAGES_DATA["no_sampling"])) else ()
    if _get_thinking(options).get("type") in ("enabled", "adaptive"):
        refused = refused or ("temperature", "top_k")
    kept = {name: value for name, value in options.items() if name not in refused}
    for name in (name for name in options if name in refused):
        changes.note("sampling_left_out", f"$.{name}", options[name])
    warmth = kept.get("temperature")
    if isinstance(warmth, (int, float)) and warmth > 1:
        changes.note("temperature_capped", "$.temperature", warmth, 1)
        kept["temperature"] = 1
    return kept
