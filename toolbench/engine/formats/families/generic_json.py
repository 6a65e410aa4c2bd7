"""Calls as plain JSON without markers, with any of the keys that models use for a name and arguments."""

from collections.abc import Sequence

from toolbench.engine.formats.call_writers import (
    build_enclosed_result_writer,
    build_json_call_writer,
    build_tool_lines_writer,
)
from toolbench.engine.formats.json_calls import CallKeys, JsonCallReader
from toolbench.engine.formats.specification import Block, CallLayout, PromptLayout, RoundTripLimits, TextFormat

NAME_KEYS = ("name", "tool", "function", "action", "tool_name")
ARGUMENT_KEYS = ("arguments", "parameters", "args", "input", "tool_input", "action_input")
WRAPPER_KEYS = ("function", "function_call", "tool_call", "tool_calls")
ANY_CALL_KEYS = CallKeys(NAME_KEYS, ARGUMENT_KEYS, ("id", "tool_call_id"), WRAPPER_KEYS)


def build_bare_json_blocks(names: Sequence[str]) -> tuple[Block, ...]:
    """Return the blocks for a JSON object and for an array of objects, anywhere in the text.

    They are the same for all `names`: the decoder checks the names of the calls.
    """
    reader = JsonCallReader(ANY_CALL_KEYS)
    return (
        Block(
            "{",
            reader,
            body_starts=('"', "'", '{"'),
            ends_after_values=True,
            allows_many_values=False,
            is_bare=True,
            has_start_marker_in_body=True,
        ),
        Block(
            "[",
            reader,
            body_starts=("{",),
            ends_after_values=True,
            allows_many_values=False,
            is_bare=True,
            has_start_marker_in_body=True,
        ),
    )


GENERIC_JSON = TextFormat(
    "json",
    (),
    CallLayout(build_json_call_writer(arguments_key="parameters")),
    PromptLayout(
        build_tool_lines_writer(
            "Functions:\n",
            '\n\nTo call one, answer with nothing but {"type": "function", "name": <name>, "parameters": <object>}.',
        ),
        build_enclosed_result_writer("[tool_result name={name} id={id}]\n", ""),
    ),
    build_bare_blocks=build_bare_json_blocks,
    round_trip_limits=RoundTripLimits(name_pattern=r"[^\s<|｜]+"),
    is_native=False,
)
