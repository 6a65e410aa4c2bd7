"""Mistral's formats: a JSON array, then name and arguments.

v2 writes an array, v3 and v7 an array with ids. v11 writes name, id and arguments, v13 and v15 name and arguments. v7
has another layout of results than v3, and v15 adds the model's settings to the prompt.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from toolbench.engine.formats.call_writers import (
    enclosed_result_writer,
    json_call_writer,
    json_result_writer,
    named_json_call_writer,
    render_spaced_json,
    tool_list_writer,
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

MARKER, ID, ARGS, END = "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]", "</s>"
CLOSER = "[/TOOL_CALLS]"  # no chat template has it, but models write it
ID_LENGTH = 9
_HEADING = re.compile(r"\s*(?P<name>[\w.:/-]+)(?:\[CALL_ID\](?P<id>\w+))?\s*(?:\[ARGS\])?\s*(?=\{|$)")
_JSON = re.compile(r"\{|\[(?!ARGS\]|CALL_ID\])")


@dataclass(frozen=True, slots=True)
class MistralReader:
    """A reader of the text after one marker: a name and its arguments, or JSON."""

    def __call__(self, body: str, known: ToolSchemas, *, cut: bool) -> ParsedBlock:
        """Parse the text of a block; see BlockReader."""
        if not body.strip():
            return ParsedBlock()
        heading = _HEADING.match(body)
        if heading is None:
            json_start = _JSON.search(body)
            return JsonCallReader()(body[json_start.start() :] if json_start else "", known, cut=cut)
        name, call_id = heading["name"], heading["id"] or ""
        return NamedJsonReader(lambda _: (name, call_id))(body[heading.end() :], known, cut=cut)


@dataclass(frozen=True, slots=True)
class NameBeforeReader:
    """A reader of the arguments after a marker that follows the tool's name.

    Attributes:
        name: the name before the marker.
    """

    name: str

    def __call__(self, body: str, known: ToolSchemas, *, cut: bool) -> ParsedBlock:
        """Parse the text of a block; see BlockReader."""
        reading = NamedJsonReader(lambda _: (self.name, ""))(body, known, cut=cut)
        return ParsedBlock(
            reading.calls, reading.problem, (*reading.notes, *(["name_repaired"] if reading.calls else []))
        )


MISTRAL_BLOCK = Block(
    MARKER,
    MistralReader(),
    (CLOSER,),
    (MARKER, END),
    values=True,
    passed=(ARGS, ID),
    closer_optional=True,
)


def _build_named_blocks(names: Sequence[str]) -> tuple[Block, ...]:
    """Return blocks for `name[TOOL_CALLS]{…}` of known tools."""
    return tuple(
        replace(MISTRAL_BLOCK, opener=f"{name}{MARKER}", read=NameBeforeReader(name), starts=("{",), passed=())
        for name in names
    )


def build_mistral_id(call: TextCall, index: int) -> str:
    """Return the last nine letters and digits of a call's id, or, if it has fewer, an id made from its position."""
    short_id = re.sub(r"[^a-zA-Z0-9]", "", call.id)[-ID_LENGTH:]
    return short_id if len(short_id) == ID_LENGTH else f"call{index:05}"


def _render_v3_call(call: TextCall, index: int) -> str:
    return render_spaced_json({"name": call.name, "arguments": call.arguments, "id": build_mistral_id(call, index)})


def _render_v11_call(call: TextCall, index: int) -> str:
    return f"{MARKER}{call.name}{ID}{build_mistral_id(call, index)}{ARGS}{render_spaced_json(call.arguments)}"


def _build_prompt(before: str, after: str, **keys: str) -> PromptLayout:
    """Return the layout of a prompt with results as JSON objects.

    Args:
        before: the text before each result.
        after: the text after each result.
        keys: `name`, `id` or `content` by the key of the object.
    """
    write_result = json_result_writer(**keys)
    return PromptLayout(
        tool_list_writer("[AVAILABLE_TOOLS] ", "[/AVAILABLE_TOOLS]"),
        lambda call, content, index: before + write_result(call, content, index) + after,
        results_between="",
    )


def _build_format(name: str, layout: CallLayout, prompt: PromptLayout, holds: RoundTripLimits) -> TextFormat:
    return TextFormat(
        name,
        (MISTRAL_BLOCK,),
        layout,
        prompt,
        dropped=(END,),
        reasoning=(("[THINK]", "[/THINK]"),),
        bare=build_bare_json_blocks,
        named=_build_named_blocks,
        holds=holds,
    )


_V2_PROMPT = PromptLayout(
    tool_list_writer("[AVAILABLE_TOOLS] ", "[/AVAILABLE_TOOLS]"),
    json_result_writer(name="name", content="content"),
    results_before="[TOOL_RESULTS] [",
    results_between=", ",
    results_after="][/TOOL_RESULTS]",
)
_V3_PROMPT = _build_prompt("[TOOL_RESULTS] ", "[/TOOL_RESULTS]", content="content", call_id="id")
_TOOLS = tool_list_writer("[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]")
_V11_RESULT = enclosed_result_writer("[TOOL_RESULTS]{id}[TOOL_CONTENT]", "[/TOOL_RESULTS]")
_V11_PROMPT = PromptLayout(_TOOLS, _V11_RESULT, results_between="")
_V13_PROMPT = PromptLayout(_TOOLS, enclosed_result_writer("[TOOL_RESULTS]", "[/TOOL_RESULTS]"), results_between="")
_SETTINGS = '[MODEL_SETTINGS]{"reasoning_effort": "none"}[/MODEL_SETTINGS]'
_V15_PROMPT = PromptLayout(
    tool_list_writer("[AVAILABLE_TOOLS]", f"[/AVAILABLE_TOOLS]{_SETTINGS}"), _V13_PROMPT.result, results_between=""
)
_ID_LIMITS, _NAME_LIMITS = RoundTripLimits(PLAIN_NAME, ids=True), RoundTripLimits(r"[\w.:/-]+")

MISTRAL_V2 = _build_format(
    "mistral_v2",
    CallLayout(json_call_writer(), f"{MARKER} [", ", ", f"]{END}"),
    _V2_PROMPT,
    RoundTripLimits(PLAIN_NAME),
)
MISTRAL_V3 = _build_format(
    "mistral_v3", CallLayout(_render_v3_call, f"{MARKER} [", ", ", f"]{END}"), _V3_PROMPT, _ID_LIMITS
)
MISTRAL_V7 = _build_format(
    "mistral_v7", CallLayout(_render_v3_call, f"{MARKER}[", ", ", f"]{END}"), _V11_PROMPT, _ID_LIMITS
)
MISTRAL_V11 = _build_format(
    "mistral_v11",
    CallLayout(_render_v11_call, between="", after=END),
    _V11_PROMPT,
    RoundTripLimits(r"[\w.:/-]+", ids=True),
)
MISTRAL_V13 = _build_format(
    "mistral_v13",
    CallLayout(named_json_call_writer(MARKER, ARGS, ""), between="", after=END),
    _V13_PROMPT,
    _NAME_LIMITS,
)
MISTRAL_V15 = _build_format("mistral_v15", MISTRAL_V13.layout, _V15_PROMPT, _NAME_LIMITS)
