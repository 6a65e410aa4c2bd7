"""Observations that Langfuse exports as JSON or JSON Lines."""

import json
from collections.abc import Mapping
from typing import Any

from toolbench.lab.interchange.traffic.exchanges import ExchangeSkippedError, RecordedExchange, build_exchange


def is_observation(record: Mapping[str, Any]) -> bool:
    """Return whether a record is an observation of Langfuse."""
    return "traceId" in record or "trace_id" in record or record.get("type") in ("GENERATION", "SPAN", "EVENT")


def read_record(record: Mapping[str, Any]) -> RecordedExchange:
    """Return the exchange of an observation of type GENERATION.

    Its input is the list of messages, or an object with `messages` and `tools`; its output is the assistant's message,
    or a list of it. Both may be JSON in a text.

    Raises:
        ExchangeSkippedError: no case can be made of it.
    """
    if str(record.get("type", "GENERATION")).upper() != "GENERATION":
        raise ExchangeSkippedError("the observation is no generation")
    request, answer = _parse_text(record.get("input")), _parse_text(record.get("output"))
    body = request if isinstance(request, Mapping) else {"messages": request}
    tools = body.get("tools") or _read_definitions(record.get("tool_definitions", record.get("toolDefinitions")))
    if isinstance(answer, list):
        answer = answer[0] if answer else None
    if isinstance(answer, str):
        answer = {"role": "assistant", "content": answer}
    model = next((record[name] for name in ("provided_model_name", "providedModelName", "model") if name in record), "")
    return build_exchange(body.get("messages"), tools, answer, model)


def _read_definitions(definitions: Any) -> list[Any] | None:
    """Return the tools from a list, or from an object from names to definitions."""
    parsed = _parse_text(definitions)
    if isinstance(parsed, Mapping):
        described = {name: _parse_text(tool) for name, tool in parsed.items()}
        return [{"name": name} | dict(tool if isinstance(tool, Mapping) else {}) for name, tool in described.items()]
    return [_parse_text(tool) for tool in parsed] if isinstance(parsed, list) else None


def _parse_text(value: Any) -> Any:
    """Return the JSON in a text; another text and any other value stay as they are."""
    if not isinstance(value, str) or value[:1] not in ("{", "["):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
