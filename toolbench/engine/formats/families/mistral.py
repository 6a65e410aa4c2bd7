"""Mistral's formats: a JSON array, then name and arguments.

v2 writes an array, v3 with ids, v7 with other results. v11 writes name and arguments with an id, v13 without, v15 after
the model's settings.
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
CLOSER = "[/TOOL_CALLS]"  # no template has it; models write it all the same
ID_LENGTH = 9
_HEADING = re.compile(r"\s*(?P<name>[\w.:/-]+)(?:\[CALL_ID\](?P<id>\w+))?\s*(?:\[ARGS\])?\s*(?=\{|$)")
_JSON = re.compile(r"\{|\[(?!ARGS\]|CALL_ID\])")


@dataclass(frozen=True, slots=True)
class MistralReader:
    """Parses the text after one marker: a name and its arguments, or JSON."""

    def __call__(self, body: str, known: ToolSchemas, *, cut: bool) -> ParsedBlock:
        """Parse the text of a block; see BlockReader."""
        if not body.strip():
            return ParsedBlock()
        heading = _HEADING.match(body)
        if heading is None:
            json = _JSON.search(body)
            return JsonCallReader()(body[json.start() :] if json else "", known, cut=cut)
        name, made = heading["name"], heading["id"] or ""
        return NamedJsonReader(lambda _: (name, made))(body[heading.end() :], known, cut=cut)


@dataclass(frozen=True, slots=True)
class NameBeforeReader:
    """Parses the arguments after a marker that follows the name."""

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


def build_mistral_id(call: TextCall, place: int) -> str:
    """Return the last nine letters and digits of a call's id, or an id made of its position."""
    written = re.sub(r"[^a-zA-Z0-9]", "", call.id)[-ID_LENGTH:]
    return written if len(written) == ID_LENGTH else f"call{place:05}"


def _render_v3_call(call: TextCall, place: int) -> str:
    return render_spaced_json({"name": call.name, "arguments": call.arguments, "id": build_mistral_id(call, place)})


def _render_v11_call(call: TextCall, place: int) -> str:
    return f"{MARKER}{call.name}{ID}{build_mistral_id(call, place)}{ARGS}{render_spaced_json(call.arguments)}"


def _build_prompt(before: str, after: str, **keys: str) -> PromptLayout:
    """Return the layout of a prompt with results as JSON between two texts."""
    written = json_result_writer(**keys)
    return PromptLayout(
        tool_list_writer("[AVAILABLE_TOOLS] ", "[/AVAILABLE_TOOLS]"),
        lambda call, content, place: before + written(call, content, place) + after,
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
_ID_HOLDS, _NAME_HOLDS = RoundTripLimits(PLAIN_NAME, ids=True), RoundTripLimits(r"[\w.:/-]+")

MISTRAL_V2 = _build_format(
    "mistral_v2",
    CallLayout(json_call_writer(), f"{MARKER} [", ", ", f"]{END}"),
    _V2_PROMPT,
    RoundTripLimits(PLAIN_NAME),
)
MISTRAL_V3 = _build_format(
    "mistral_v3", CallLayout(_render_v3_call, f"{MARKER} [", ", ", f"]{END}"), _V3_PROMPT, _ID_HOLDS
)
MISTRAL_V7 = _build_format(
    "mistral_v7", CallLayout(_render_v3_call, f"{MARKER}[", ", ", f"]{END}"), _V11_PROMPT, _ID_HOLDS
)
MISTRAL_V11 = _build_format(
    "mistral_v11",
    CallLayout(_render_v11_call, between="", after=END),
    _V11_PROMPT,
    RoundTripLimits(r"[\w.:/-]+", ids=True),
)
MISTRAL_V13 = _build_format(
    "mistral_v13", CallLayout(named_json_call_writer(MARKER, ARGS, ""), between="", after=END), _V13_PROMPT, _NAME_HOLDS
)
MISTRAL_V15 = _build_format("mistral_v15", MISTRAL_V13.layout, _V15_PROMPT, _NAME_HOLDS)
