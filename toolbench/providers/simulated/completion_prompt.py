"""Prompt of a raw completion as a simulated model reads it: the turns, and the text format of calls."""

import itertools
import re
from collections.abc import Iterator, Sequence
from functools import cache

from toolbench.engine.formats import render_tools
from toolbench.engine.formats.chat.turn_spec import ToolsPosition, TurnSpec
from toolbench.engine.formats.chat.turn_templates import TURN_SPECS
from toolbench.engine.types import JsonObject, Message
from toolbench.providers.simulated.chat_request import find_json_objects

TurnMarkers = tuple[tuple[str, str, str], ...]  # role, start marker of its turn, end marker


def parse_prompt(body: JsonObject) -> tuple[JsonObject, str]:
    """Return the request as a chat request, and the text format in which its prompt requests calls.

    Only model families are read whose every turn has its own tokens and whose tools are JSON in the system turn.

    Raises:
        ValueError: the prompt cannot be read; the text is one sentence.
    """
    prompt = body.get("prompt")
    if not isinstance(prompt, str):
        raise ValueError("prompt must be a text")
    functions = list(_find_functions(prompt))
    for name, openers in _list_readable_formats().items():
        turns = TURN_SPECS[name]
        tools_text = render_tools(functions, format=name).strip("\n") if functions else ""
        if prompt.endswith(turns.asks) and tools_text in prompt:
            tools = [{"type": "function", "function": function} for function in functions]
            return {**body, "messages": list(_parse_messages(prompt, openers)), "tools": tools}, name
    raise ValueError("the prompt is in no format that is read here")


def render_text_completion(event: JsonObject | str) -> JsonObject | str:
    """Convert a chat completion, or an event of its stream, to a raw completion.

    Values without choices, such as [DONE], are returned unchanged.
    """
    if isinstance(event, str) or "choices" not in event:
        return event
    choices = [_render_text_choice(choice) for choice in event["choices"]]
    return {**event, "object": "text_completion", "choices": choices}


def _render_text_choice(choice: JsonObject) -> JsonObject:
    message = choice.get("message") or choice.get("delta") or {}
    content = message.get("content")
    text = content if isinstance(content, str) else ""
    return {"index": 0, "text": text, "logprobs": None, "finish_reason": choice.get("finish_reason")}


@cache
def _list_readable_formats() -> dict[str, TurnMarkers]:
    return {name: _build_turn_markers(turns) for name, turns in TURN_SPECS.items() if _is_readable(turns)}


def _is_readable(turns: TurnSpec) -> bool:
    if turns.system is None or turns.tools is not ToolsPosition.SYSTEM:
        return False
    heads = (turns.system[0], turns.user[0], turns.assistant[0])
    return all(heads) and bool(turns.results[0]) and turns.results[0] != heads[0] and turns.resumes is None


def _build_turn_markers(turns: TurnSpec) -> TurnMarkers:
    frames = {"system": turns.system or ("", ""), "user": turns.user, "assistant": turns.assistant}
    tool_markers = {} if turns.results[0] == turns.user[0] else {"tool": turns.results}
    return tuple((role, before, after) for role, (before, after) in (frames | tool_markers).items())


def _find_functions(prompt: str) -> Iterator[JsonObject]:
    for _, _, found in find_json_objects(prompt):
        function = found.get("function", found)
        if isinstance(function, dict) and {"name", "parameters"} <= function.keys():
            yield function


def _parse_messages(prompt: str, openers: Sequence[tuple[str, str, str]]) -> Iterator[Message]:
    """Yield every turn but the last, which is the one to be generated."""
    by_head = {before: (role, after) for role, before, after in openers}
    heads = list(re.finditer("|".join(re.escape(head) for head in by_head), prompt))
    for head, following in itertools.pairwise(heads):
        role, after = by_head[head.group()]
        yield {"role": role, "content": prompt[head.end() : following.start()].removesuffix(after)}
