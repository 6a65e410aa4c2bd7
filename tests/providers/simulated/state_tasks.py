"""Tasks for the personas, with a prompt that lists their calls, and a plain loop that runs them."""

import json
from dataclasses import dataclass
from typing import Any

import aiohttp

CITY_SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
STATE_GET_SCHEMA = {"type": "object", "properties": {"workspace_id": {"type": "string"}}}
STATE_PATCH_SCHEMA = {
    "type": "object",
    "properties": {"workspace_id": {"type": "string"}, "request_id": {"type": "string"}, "ops": {"type": "array"}},
    "required": ["request_id", "ops"],
}
SYSTEM_TEXT = """You edit a workspace by calling tools. One call per message. Finish with the sentence: Done.

1. state_get {"workspace_id": "w-1"}
2. state_patch {"workspace_id": "w-1", "request_id": "r1", "ops": [{"op": "set", "path": "/draft/foo", "value": "bar"}]}
3. Done."""
MAX_TURNS = 8


def build_tool(name: str, parameters: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters}}


STATE_TOOLS = [build_tool("state_get", STATE_GET_SCHEMA), build_tool("state_patch", STATE_PATCH_SCHEMA)]


def build_state_request(persona: str, seed: int | None) -> dict[str, Any]:
    messages = [{"role": "system", "content": SYSTEM_TEXT}, {"role": "user", "content": "workspace_id=w-77"}]
    body = {"model": persona, "messages": messages, "tools": STATE_TOOLS, "parallel_tool_calls": False}
    return body if seed is None else body | {"seed": seed}


def build_control_request(persona: str, seed: int) -> dict[str, Any]:
    messages = [
        {"role": "system", "content": "Your whole reply is the one sentence: Done."},
        {"role": "user", "content": "Reply with exactly: Done."},
    ]
    return {"model": persona, "messages": messages, "seed": seed, "max_tokens": 32}


@dataclass(frozen=True)
class HttpAnswer:
    status: int
    label: str  # the header x-simulated
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def message(self) -> dict[str, Any]:
        message: dict[str, Any] = self.json()["choices"][0]["message"]
        return message


async def post_request(client: aiohttp.ClientSession, body: dict[str, Any]) -> HttpAnswer:
    return await post_bytes(client, json.dumps(body).encode())


async def post_bytes(client: aiohttp.ClientSession, raw: bytes) -> HttpAnswer:
    async with client.post("/v1/chat/completions", data=raw) as answer:
        return HttpAnswer(answer.status, answer.headers.get("x-simulated", ""), await answer.read())


@dataclass
class TaskResult:
    """Result of a task: the value of the last patch, the final text, and the messages of the model."""

    patched: object
    text: str
    messages: list[dict[str, Any]]


async def run_task(client: aiohttp.ClientSession, body: dict[str, Any]) -> TaskResult:
    """Run a state task to its end with tools that accept any value and refuse operations that are no array."""
    body = body | {"messages": list(body["messages"])}
    patched: object = None
    answers: list[dict[str, Any]] = []
    for _ in range(MAX_TURNS):
        message = (await post_request(client, body)).message
        answers.append(message)
        body["messages"].append(message)
        if not message.get("tool_calls"):
            return TaskResult(patched, message["content"], answers)
        for call in message["tool_calls"]:
            name, ok = call["function"]["name"], True
            if name == "state_patch":
                ok, patched = _apply_patch(call["function"]["arguments"], patched)
            report = {"ok": ok, "tool_name": name, "errors": [] if ok else [{"code": "ARGUMENT_ERROR"}]}
            body["messages"].append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps(report)})
    return TaskResult(patched, "", answers)


def _apply_patch(arguments: str, before: object) -> tuple[bool, object]:
    try:
        ops = json.loads(arguments)["ops"]
        return True, ops[0]["value"]
    except (ValueError, KeyError, TypeError):
        return False, before
