"""Mistral's ways: a JSON array (v2, with ids v3, with other results v7), then name and arguments (with id v11, without
v13, behind the model's settings v15)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from toolbench.engine.formats.definition import Block, Format, Holds, Layout, Prompt, Reading
from toolbench.engine.formats.families.generic_json import bare_json
from toolbench.engine.formats.families.hermes import PLAIN_NAME
from toolbench.engine.formats.json_calls import JsonCalls, NamedJson
from toolbench.engine.formats.values import Known, TextCall
from toolbench.engine.formats.writing import as_json, enclosed, json_call, named_json_call, spaced_json, tool_list

MARKER, ID, ARGS, END = "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]", "</s>"
CLOSER = "[/TOOL_CALLS]"  # no template has it; models write it all the same
ID_SIZE = 9
_HEADING = re.compile(r"\s*(?P<name>[\w.:/-]+)(?:\[CALL_ID\](?P<id>\w+))?\s*(?:\[ARGS\])?\s*(?=\{|$)")
_JSON = re.compile(r"\{|\[(?!ARGS\]|CALL_ID\])")


@dataclass(frozen=True, slots=True)
class MistralCalls:
    """Reads what stands behind one marker: a name and its arguments, or JSON."""

    def __call__(self, body: str, known: Known, *, cut: bool) -> Reading:
        if not body.strip():
            return Reading()
        heading = _HEADING.match(body)
        if heading is None:
            json = _JSON.search(body)
            return JsonCalls()(body[json.start() :] if json else "", known, cut=cut)
        name, made = heading["name"], heading["id"] or ""
        return NamedJson(lambda _: (name, made))(body[heading.end() :], known, cut=cut)


@dataclass(frozen=True, slots=True)
class NameBefore:
    """Reads arguments behind a marker that stands behind the name."""

    name: str

    def __call__(self, body: str, known: Known, *, cut: bool) -> Reading:
        reading = NamedJson(lambda _: (self.name, ""))(body, known, cut=cut)
        return Reading(reading.calls, reading.problem, (*reading.notes, *(["name_repaired"] if reading.calls else [])))


BLOCK = Block(
    MARKER,
    MistralCalls(),
    (CLOSER,),
    (MARKER, END),
    values=True,
    passed=(ARGS, ID),
    closer_optional=True,
)


def _named(names: Sequence[str]) -> tuple[Block, ...]:
    """`name[TOOL_CALLS]{…}`, of a known tool."""
    return tuple(
        replace(BLOCK, opener=f"{name}{MARKER}", read=NameBefore(name), starts=("{",), passed=()) for name in names
    )


def call_id(call: TextCall, place: int) -> str:
    """The last nine letters and digits of a call's id, or one made of its place."""
    written = re.sub(r"[^a-zA-Z0-9]", "", call.id)[-ID_SIZE:]
    return written if len(written) == ID_SIZE else f"call{place:05}"


def _v3_call(call: TextCall, place: int) -> str:
    return spaced_json({"name": call.name, "arguments": call.arguments, "id": call_id(call, place)})


def _v11_call(call: TextCall, place: int) -> str:
    return f"{MARKER}{call.name}{ID}{call_id(call, place)}{ARGS}{spaced_json(call.arguments)}"


def _result(before: str, after: str, **keys: str) -> Prompt:
    """Results as JSON, between two texts."""
    written = as_json(**keys)
    return Prompt(
        tool_list("[AVAILABLE_TOOLS] ", "[/AVAILABLE_TOOLS]"),
        lambda call, content, place: before + written(call, content, place) + after,
        results_between="",
    )


def _format(name: str, layout: Layout, prompt: Prompt, holds: Holds) -> Format:
    return Format(
        name,
        (BLOCK,),
        layout,
        prompt,
        dropped=(END,),
        reasoning=(("[THINK]", "[/THINK]"),),
        bare=bare_json,
        named=_named,
        holds=holds,
    )


_V2_PROMPT = Prompt(
    tool_list("[AVAILABLE_TOOLS] ", "[/AVAILABLE_TOOLS]"),
    as_json(name="name", content="content"),
    results_before="[TOOL_RESULTS] [",
    results_between=", ",
    results_after="][/TOOL_RESULTS]",
)
_V3_PROMPT = _result("[TOOL_RESULTS] ", "[/TOOL_RESULTS]", content="content", call_id="id")
_TOOLS = tool_list("[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]")
_V11_RESULT = enclosed("[TOOL_RESULTS]{id}[TOOL_CONTENT]", "[/TOOL_RESULTS]")
_V11_PROMPT = Prompt(_TOOLS, _V11_RESULT, results_between="")
_V13_PROMPT = Prompt(_TOOLS, enclosed("[TOOL_RESULTS]", "[/TOOL_RESULTS]"), results_between="")
_SETTINGS = '[MODEL_SETTINGS]{"reasoning_effort": "none"}[/MODEL_SETTINGS]'
_V15_PROMPT = Prompt(
    tool_list("[AVAILABLE_TOOLS]", f"[/AVAILABLE_TOOLS]{_SETTINGS}"), _V13_PROMPT.result, results_between=""
)
_ID_HOLDS, _NAME_HOLDS = Holds(PLAIN_NAME, ids=True), Holds(r"[\w.:/-]+")

MISTRAL_V2 = _format("mistral_v2", Layout(json_call(), f"{MARKER} [", ", ", f"]{END}"), _V2_PROMPT, Holds(PLAIN_NAME))
MISTRAL_V3 = _format("mistral_v3", Layout(_v3_call, f"{MARKER} [", ", ", f"]{END}"), _V3_PROMPT, _ID_HOLDS)
MISTRAL_V7 = _format("mistral_v7", Layout(_v3_call, f"{MARKER}[", ", ", f"]{END}"), _V11_PROMPT, _ID_HOLDS)
MISTRAL_V11 = _format(
    "mistral_v11", Layout(_v11_call, between="", after=END), _V11_PROMPT, Holds(r"[\w.:/-]+", ids=True)
)
MISTRAL_V13 = _format(
    "mistral_v13", Layout(named_json_call(MARKER, ARGS, ""), between="", after=END), _V13_PROMPT, _NAME_HOLDS
)
MISTRAL_V15 = _format("mistral_v15", MISTRAL_V13.layout, _V15_PROMPT, _NAME_HOLDS)
