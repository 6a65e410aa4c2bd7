"""Helpers for tests of one turn: its setup, its request body and its parsed answer."""

import json
from typing import Any

from tests.engine.scripted_model import TOOLS
from toolbench.engine.loop.turn import build_ask, build_request
from toolbench.engine.loop.turn_setup import TurnSetup, prepare_turns
from toolbench.engine.policy.settings import resolve_policy
from toolbench.engine.tools.definitions import ToolRegistry
from toolbench.engine.types import JsonObject, Turn

USER = [{"role": "user", "content": "Go."}]


def prepare(
    options: JsonObject | None = None,
    *,
    seed: int | None = None,
    tools: ToolRegistry = TOOLS,
    system: str = "Be brief.",
    **policy: Any,
) -> TurnSetup:
    resolved = resolve_policy([("test", policy)]).policy
    return prepare_turns("m-1", resolved, system=system, tools=tools, options=options or {}, seed=seed)


def build_body(setup: TurnSetup, *, with_tools: bool = True) -> JsonObject:
    sent: JsonObject = json.loads(build_request(setup, 0, USER, has_tools=with_tools).body)
    return sent


def parse(setup: TurnSetup, raw: bytes, *, with_tools: bool = True) -> Turn:
    decoder = build_ask(setup, 0, USER, has_tools=with_tools).decoder
    decoder.feed(raw)
    return decoder.close()
