"""Mistral's text formats: a JSON array of calls up to v7, and a name and arguments for each call from v11 on.

v3, v7 and v11 write the ids of calls; v2, v13 and v15 do not. v7 has another layout of results than v3, and v15 adds
the model's settings to the prompt.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from toolbench.engine.formats.call_writers import (
    build_enclosed_result_writer,
    build_json_call_writer,
    build_json_result_writer,
    build_named_json_call_writer,
    build_tool_list_writer,
    render_spaced_json,
)
from toolbench.engine.formats.families.generic_json import build_bare_json_blocks
from toolbench.engine.formats.families.hermes import PLAIN_NAME
from toolbench.engine.formats.json_calls import JsonCallReader, NamedJsonReader
from toolbench.engine.formats.specification import (
    Block,
    CallLayout,
    ParsedBlock,
    PromptLayout,
    RoundTripLimits,
    TextFormat,
)
from toolbench.engine.formats.types import TextCall, ToolSchemas

START_MARKER, ID_MARKER, ARGUMENTS_MARKER, END_OF_SEQUENCE = "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]", "</s>"
END_MARKER = "[/TOOL_CALLS]"  # no chat template has it, but models write it
ID_LENGTH = 9
_HEADING = re.compile(r"\s*(?P<name>[\w.:/-]+)(?:\[CALL_ID\](?P<id>\w+))?\s*(?:\[ARGS\])?\s*(?=\{|$)")
_JSON_START = re.compile(r"\{|\[(?!ARGS\]|CALL_ID\])")


@dataclass(frozen=True, slots=True)
class MistralReader:
    """A reader of the text after one marker: a name and its arguments, or JSON."""

    def __call__(self, body: str, offered_tools: ToolSchemas, *, is_truncated: bool) -> ParsedBlock:
        """Parse the text of a block; see BlockReader."""
        if not body.strip():
            return ParsedBlock()
        heading = _HEADING.match(body)
        if heading is None:
            json_start = _JSON_START.search(body)
            return JsonCallReader()(
                body[json_start.start() :] if json_start else "", offered_tools, is_truncated=is_truncated
            )
        name, call_id = heading["name"], heading["id"] or ""
        return NamedJsonReader(lambda _: (name, call_id))(
            body[heading.end() :], offered_tools, is_truncated=is_truncated
        )


@dataclass(frozen=True, slots=True)
class NameBeforeMarkerReader:
    """A reader of the arguments after a marker that follows the tool's name.

    Attributes:
        name: the name before the marker.
    """

    name: str

    def __call__(self, body: str, offered_tools: ToolSchemas, *, is_truncated: bool) -> ParsedBlock:
        """Parse the text of a block; see BlockReader."""
        parsed_block = NamedJsonReader(lambda _: (self.name, ""))(body, offered_tools, is_truncated=is_truncated)
        return ParsedBlock(
            parsed_block.calls,
            parsed_block.problem_code,
            (*parsed_block.deviation_codes, *(["name_repaired"] if parsed_block.calls else [])),
        )


MISTRAL_BLOCK = Block(
    START_MARKER,
    MistralReader(),
    (END_MARKER,),
    (START_MARKER, END_OF_SEQUENCE),
    ends_after_values=True,
    skipped_markers=(ARGUMENTS_MARKER, ID_MARKER),
    is_end_marker_optional=True,
)


def _build_named_blocks(names: Sequence[str]) -> tuple[Block, ...]:
    """Return blocks for `name[TOOL_CALLS]{…}` with the names of offered tools."""
    return tuple(
        replace(
            MISTRAL_BLOCK,
            start_marker=f"{name}{START_MARKER}",
            reader=NameBeforeMarkerReader(name),
            body_starts=("{",),
            skipped_markers=(),
        )
        for name in names
    )


def build_mistral_id(call: TextCall, index: int) -> str:
    """Return the last ID_LENGTH letters and digits of a call's id.

    If the id has fewer, return a new id that contains the call's position, such as `call00002`.
    """
    short_id = re.sub(r"[^a-zA-Z0-9]", "", call.id)[-ID_LENGTH:]
    return short_id if len(short_id) == ID_LENGTH else f"call{index:05}"


def _render_v3_call(call: TextCall, index: int) -> str:
    return render_spaced_json({"name": call.name, "arguments": call.arguments, "id": build_mistral_id(call, index)})


def _render_v11_call(call: TextCall, index: int) -> str:
    heading = f"{START_MARKER}{call.name}{ID_MARKER}{build_mistral_id(call, index)}"
    return f"{heading}{ARGUMENTS_MARKER}{render_spaced_json(call.arguments)}"


def _build_format(
    name: str, call_layout: CallLayout, prompt: PromptLayout, round_trip_limits: RoundTripLimits
) -> TextFormat:
    return TextFormat(
        name,
        (MISTRAL_BLOCK,),
        call_layout,
        prompt,
        dropped_tokens=(END_OF_SEQUENCE,),
        reasoning_markers=(("[THINK]", "[/THINK]"),),
        build_bare_blocks=build_bare_json_blocks,
        build_named_blocks=_build_named_blocks,
        round_trip_limits=round_trip_limits,
    )


_V2_PROMPT = PromptLayout(
    build_tool_list_writer("[AVAILABLE_TOOLS] ", "[/AVAILABLE_TOOLS]"),
    build_json_result_writer(name="name", content="content"),
    results_before="[TOOL_RESULTS] [",
    results_between=", ",
    results_after="][/TOOL_RESULTS]",
)
_V3_RESULT_WRITER = build_json_result_writer(content="content", call_id="id")
_V3_PROMPT = PromptLayout(
    _V2_PROMPT.write_tools,
    lambda call, content, index: f"[TOOL_RESULTS] {_V3_RESULT_WRITER(call, content, index)}[/TOOL_RESULTS]",
    results_between="",
)
_TOOLS_WRITER = build_tool_list_writer("[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]")
_V11_RESULT_WRITER = build_enclosed_result_writer("[TOOL_RESULTS]{id}[TOOL_CONTENT]", "[/TOOL_RESULTS]")
_V11_PROMPT = PromptLayout(_TOOLS_WRITER, _V11_RESULT_WRITER, results_between="")
_V13_PROMPT = PromptLayout(
    _TOOLS_WRITER, build_enclosed_result_writer("[TOOL_RESULTS]", "[/TOOL_RESULTS]"), results_between=""
)
_SETTINGS = '[MODEL_SETTINGS]{"reasoning_effort": "none"}[/MODEL_SETTINGS]'
_V15_PROMPT = PromptLayout(
    build_tool_list_writer("[AVAILABLE_TOOLS]", f"[/AVAILABLE_TOOLS]{_SETTINGS}"),
    _V13_PROMPT.write_result,
    results_between="",
)
_ID_LIMITS, _NAME_LIMITS = RoundTripLimits(PLAIN_NAME, keeps_ids=True), RoundTripLimits(r"[\w.:/-]+")

MISTRAL_V2 = _build_format(
    "mistral_v2",
    CallLayout(build_json_call_writer(), f"{START_MARKER} [", ", ", f"]{END_OF_SEQUENCE}"),
    _V2_PROMPT,
    RoundTripLimits(PLAIN_NAME),
)
MISTRAL_V3 = _build_format(
    "mistral_v3", CallLayout(_render_v3_call, f"{START_MARKER} [", ", ", f"]{END_OF_SEQUENCE}"), _V3_PROMPT, _ID_LIMITS
)
MISTRAL_V7 = _build_format(
    "mistral_v7", CallLayout(_render_v3_call, f"{START_MARKER}[", ", ", f"]{END_OF_SEQUENCE}"), _V11_PROMPT, _ID_LIMITS
)
MISTRAL_V11 = _build_format(
    "mistral_v11",
    CallLayout(_render_v11_call, between_calls="", after_calls=END_OF_SEQUENCE),
    _V11_PROMPT,
    RoundTripLimits(r"[\w.:/-]+", keeps_ids=True),
)
MISTRAL_V13 = _build_format(
    "mistral_v13",
    CallLayout(
        build_named_json_call_writer(START_MARKER, ARGUMENTS_MARKER, ""), between_calls="", after_calls=END_OF_SEQUENCE
    ),
    _V13_PROMPT,
    _NAME_LIMITS,
)
MISTRAL_V15 = _build_format("mistral_v15", MISTRAL_V13.layout, _V15_PROMPT, _NAME_LIMITS)
