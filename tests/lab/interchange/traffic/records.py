"""Records of one exchange in every form of traffic: a question about Berlin's weather, answered by a call."""

import json
from typing import Any

from toolbench.engine.types import JsonObject

SYSTEM = "Be short."
QUESTION = "How is the weather in Berlin?"
PARAMETERS: JsonObject = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FUNCTION: JsonObject = {"name": "get_weather", "description": "Weather.", "parameters": PARAMETERS}
TOOL: JsonObject = {"type": "function", "function": FUNCTION}
ARGUMENTS: JsonObject = {"city": "Berlin"}
CALL: JsonObject = {
    "id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": json.dumps(ARGUMENTS)},
}  # fmt: skip
MESSAGES: list[JsonObject] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
ANSWER: JsonObject = {"role": "assistant", "content": None, "tool_calls": [CALL]}


def build_logged(question: str = QUESTION, answer: JsonObject = ANSWER) -> JsonObject:
    messages = [MESSAGES[0], {"role": "user", "content": question}]
    return {
        "request": {"model": "m", "messages": messages, "tools": [TOOL]},
        "response": {"model": "m-1", "choices": [{"index": 0, "message": answer}]},
    }


def build_training() -> JsonObject:
    return {"model": "m-1", "messages": [*MESSAGES, ANSWER], "tools": [TOOL]}


def build_responses() -> JsonObject:
    call = {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": json.dumps(ARGUMENTS)}
    messages = [{"role": "user", "content": [{"type": "input_text", "text": QUESTION}]}]
    return {
        "request": {
            "instructions": SYSTEM,
            "input": messages,
            "tools": [{"type": "function", **FUNCTION, "strict": True}],
        },
        "response": {"body": {"model": "m-1", "output": [{"type": "reasoning", "summary": []}, call]}},
    }


def build_langfuse() -> JsonObject:
    return {
        "id": "o1", "trace_id": "t1", "type": "GENERATION", "provided_model_name": "m-1",
        "input": json.dumps({"messages": MESSAGES, "tools": [TOOL]}), "output": json.dumps(ANSWER),
    }  # fmt: skip


def build_langfuse_with_definitions() -> JsonObject:
    definitions = {"get_weather": json.dumps({"description": "Weather.", "parameters": PARAMETERS})}
    return {
        "traceId": "t1", "type": "GENERATION", "model": "m-1", "input": MESSAGES, "output": [ANSWER],
        "tool_definitions": definitions,
    }  # fmt: skip


def build_otlp() -> JsonObject:
    call = {"type": "tool_call", "id": "c1", "name": "get_weather", "arguments": ARGUMENTS}
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m",
        "gen_ai.response.model": "m-1",
        "gen_ai.system_instructions": json.dumps([{"type": "text", "content": SYSTEM}]),
        "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": QUESTION}]}]),
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [call], "finish_reason": "tool_call"}]),
        "gen_ai.tool.definitions": json.dumps([{"type": "function", **FUNCTION}]),
    }
    spans = [{"name": "chat m", "attributes": [_build_attribute(name, value) for name, value in attributes.items()]}]
    return {"resourceSpans": [{"scopeSpans": [{"spans": [*spans, {"name": "GET /"}]}]}]}


def build_structured_otlp() -> JsonObject:
    """Return the same span with structured attributes instead of texts."""
    record = build_otlp()
    for attribute in record["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["attributes"]:
        text = attribute["value"]["stringValue"]
        if text[:1] == "[":
            attribute["value"] = _build_any_value(json.loads(text))
    return record


def _build_attribute(name: str, text: str) -> JsonObject:
    return {"key": name, "value": {"stringValue": text}}


def _build_any_value(value: Any) -> JsonObject:
    if isinstance(value, dict):
        pairs = [{"key": name, "value": _build_any_value(item)} for name, item in value.items()]
        return {"kvlistValue": {"values": pairs}}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_build_any_value(item) for item in value]}}
    return {"stringValue": value}


FORMS = {
    "logged": build_logged,
    "training": build_training,
    "responses": build_responses,
    "langfuse": build_langfuse,
    "langfuse with definitions": build_langfuse_with_definitions,
    "otlp": build_otlp,
    "structured otlp": build_structured_otlp,
}
