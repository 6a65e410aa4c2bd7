"""Reader of observations that Langfuse exports as JSON or JSON Lines."""

from collections.abc import Mapping
from typing import Any

from toolbench.engine.errors import InvalidJsonError
from toolbench.lab.interchange.traffic.exchanges import (
    ExchangeSkippedError,
    RecordedExchange,
    build_exchange,
    parse_json_text,
)


def is_observation(record: Mapping[str, Any]) -> bool:
    """Return whether a record looks like an observation of Langfuse."""
    return "traceId" in record or "trace_id" in record or record.get("type") in ("GENERATION", "SPAN", "EVENT")


def read_record(record: Mapping[str, Any]) -> RecordedExchange:
    """Return the exchange of an observation of type GENERATION or without a type.

    The input is a list of messages, or an object with `messages` and `tools`. The output is the assistant message, its
    text, or a list whose first item is one of these. Input and output may be JSON texts. Tools that are not in the
    input are read from `tool_definitions` or `toolDefinitions`.

    Raises:
        ExchangeSkippedError: no case can be created from the observation.
    """
    if str(record.get("type", "GENERATION")).upper() != "GENERATION":
        raise ExchangeSkippedError("the observation is not a generation")
    request, answer = _parse_text(record.get("input")), _parse_text(record.get("output"))
    body = request if isinstance(request, Mapping) else {"messages": request}
    tools = body.get("tools") or _parse_definitions(record.get("tool_definitions", record.get("toolDefinitions")))
    if isinstance(answer, list):
        answer = answer[0] if answer else None
    if isinstance(answer, str):
        answer = {"role": "assistant", "content": answer}
    model = next((record[name] for name in ("provided_model_name", "providedModelName", "model") if name in record), "")
    return build_exchange(body.get("messages"), tools, answer, model)


def _parse_definitions(definitions: Any) -> list[Any] | None:
    """Return the tools in a list of definitions or in an object with definitions by name; None for other values."""
    parsed = _parse_text(definitions)
    if isinstance(parsed, Mapping):
        tools = {name: _parse_text(tool) for name, tool in parsed.items()}
        return [{"name": name} | dict(tool if isinstance(tool, Mapping) else {}) for name, tool in tools.items()]
    return [_parse_text(tool) for tool in parsed] if isinstance(parsed, list) else None


def _parse_text(value: Any) -> Any:
    """Parse a text that begins with `{` or `[` as JSON; return any other value, and a text that is not JSON, unchanged.

    Raises:
        ExchangeSkippedError: the JSON is nested too deeply.
    """
    if not isinstance(value, str) or value[:1] not in ("{", "["):
        return value
    try:
        return parse_json_text(value)
    except InvalidJsonError:
        return value
