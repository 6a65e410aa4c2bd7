"""Conversion of raw completion requests to chat requests, and of chat completions to raw ones."""

import itertools
import re
from collections.abc import Iterator
from functools import cache

from toolbench.engine.formats import render_tools
from toolbench.engine.formats.chat.turn_spec import ToolsPosition, TurnSpec
from toolbench.engine.formats.chat.turn_templates import TURN_SPECS
from toolbench.engine.types import JsonObject, Message
from toolbench.providers.simulated.chat_request import find_json_objects

TurnMarkers = tuple[tuple[str, str, str], ...]  # (role, start marker of its turns, their end marker)


def parse_prompt(body: JsonObject) -> tuple[JsonObject, str]:
    """Convert a completion request to a chat request.

    A prompt can be parsed if its text format marks the start of each turn and has the tools as JSON in the system turn.

    Returns:
        The chat request, and the text format in which the prompt requests calls.

    Raises:
        ValueError: the prompt cannot be parsed.
    """
    prompt = body.get("prompt")
    if not isinstance(prompt, str):
        raise ValueError("prompt must be a text")
    functions = list(_find_functions(prompt))
    for name, turn_markers in _build_markers_by_format().items():
        turn_spec = TURN_SPECS[name]
        tools_text = render_tools(functions, format=name).strip("\n") if functions else ""
        if prompt.endswith(turn_spec.effective_turn_start) and tools_text in prompt:
            tools = [{"type": "function", "function": function} for function in functions]
            return {**body, "messages": list(_parse_messages(prompt, turn_markers)), "tools": tools}, name
    raise ValueError("the format of the prompt is not supported")


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
def _build_markers_by_format() -> dict[str, TurnMarkers]:
    """Return the markers of turns by text format, for the formats whose prompts can be parsed."""
    return {name: _build_turn_markers(spec) for name, spec in TURN_SPECS.items() if _is_readable(spec)}


def _is_readable(spec: TurnSpec) -> bool:
    if spec.system_frame is None or spec.tools_position is not ToolsPosition.SYSTEM:
        return False
    start_markers = (spec.system_frame[0], spec.user_frame[0], spec.assistant_frame[0])
    is_result_marked = bool(spec.results_frame[0]) and spec.results_frame[0] != spec.system_frame[0]
    return all(start_markers) and is_result_marked and spec.start_after_results is None


def _build_turn_markers(spec: TurnSpec) -> TurnMarkers:
    markers = {"system": spec.system_frame or ("", ""), "user": spec.user_frame, "assistant": spec.assistant_frame}
    tool_markers = {} if spec.results_frame[0] == spec.user_frame[0] else {"tool": spec.results_frame}
    return tuple(
        (role, start_marker, end_marker) for role, (start_marker, end_marker) in (markers | tool_markers).items()
    )


def _find_functions(prompt: str) -> Iterator[JsonObject]:
    for _, _, value in find_json_objects(prompt):
        function = value.get("function", value)
        if isinstance(function, dict) and {"name", "parameters"} <= function.keys():
            yield function


def _parse_messages(prompt: str, turn_markers: TurnMarkers) -> Iterator[Message]:
    """Yield the turns of a prompt as messages, except for the last one, which the model has to write."""
    roles = {start_marker: (role, end_marker) for role, start_marker, end_marker in turn_markers}
    starts = list(re.finditer("|".join(map(re.escape, roles)), prompt))
    for start, next_start in itertools.pairwise(starts):
        role, end_marker = roles[start.group()]
        yield {"role": role, "content": prompt[start.end() : next_start.start()].removesuffix(end_marker)}
