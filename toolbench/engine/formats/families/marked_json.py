"""Families that write JSON between two markers of their own: Phi-4, Granite, xLAM, Cohere and others."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from toolbench.engine.formats.definition import Block, Format, FoundCall, Holds, Layout, Prompt, Reader, Reading
from toolbench.engine.formats.families.fenced import fenced_json
from toolbench.engine.formats.families.generic_json import bare_json
from toolbench.engine.formats.families.hermes import JSON_BLOCK, NAMED_BLOCK, PLAIN_NAME, PLURAL_BLOCK
from toolbench.engine.formats.families.mistral import BLOCK as MISTRAL_BLOCK
from toolbench.engine.formats.json_calls import JsonCalls, Shape, as_object, clean_name
from toolbench.engine.formats.values import Known, TextCall
from toolbench.engine.formats.writing import enclosed, json_call, spaced_json, tool_list

_STARTS = ("{", "[")
_TOOLS = tool_list("Tools:\n", "\n", flat=True)
_RESULT = enclosed("<tool_response>\n", "\n</tool_response>")


@dataclass(frozen=True, slots=True)
class Without:
    """Reads JSON calls and leaves out pseudo tools that mean: no call."""

    pseudo: tuple[str, ...]
    read: JsonCalls = field(default_factory=JsonCalls)

    def __call__(self, body: str, known: Known, *, cut: bool) -> Reading:
        reading = self.read(body, known, cut=cut)
        real = tuple(call for call in reading.calls if call.name not in self.pseudo or call.name in known.schemas)
        return Reading(real, reading.problem, reading.notes)


class NameIsKey(Shape):
    """Objects whose only key is the tool's name and whose value are the arguments."""

    def calls(self, value: object) -> Iterator[FoundCall | None]:
        for item in value if isinstance(value, list) else [value]:
            name, given = next(iter(item.items())) if isinstance(item, dict) and len(item) == 1 else ("", None)
            arguments = as_object(given)
            yield FoundCall(clean_name(name), arguments) if clean_name(name) and arguments is not None else None


def between(opener: str, *closers: str, read: Reader | None = None) -> Block:
    """JSON between two markers; the closer may be missing."""
    return Block(opener, read or JsonCalls(), closers, (opener,), starts=_STARTS, values=True)


def _family(
    name: str, block: Block, layout: Layout, *, prompt: Prompt | None = None, **more: tuple[str, ...]
) -> Format:
    return Format(
        name,
        (block,),
        layout,
        prompt or Prompt(_TOOLS, _RESULT),
        dropped=(*block.closers, *more.get("dropped", ())),
        bare=bare_json,
        holds=Holds(PLAIN_NAME),
    )


def _array(before: str, after: str, name: str = "name", arguments: str = "arguments") -> Layout:
    return Layout(json_call(name, arguments), f"{before}[", ", ", f"]{after}")


_ENDS = ("<|end|>", "<|end_of_text|>")
_FUNCTOOLS = Block("functools", JsonCalls(), starts=_STARTS, values=True, many=False)
FUNCTOOLS = _family("functools", _FUNCTOOLS, _array("functools", ""), dropped=_ENDS)
GRANITE3 = Format(
    "granite3",
    (Block("<|tool_call|>", JsonCalls(), starts=_STARTS, values=True), JSON_BLOCK, NAMED_BLOCK),
    _array("<|tool_call|>", ""),
    Prompt(
        tool_list("<|start_of_role|>available_tools<|end_of_role|>", "<|end_of_text|>"),
        enclosed("<|start_of_role|>tool_response<|end_of_role|>", "<|end_of_text|>"),
    ),
    dropped=_ENDS,
    bare=bare_json,
    holds=Holds(PLAIN_NAME),
)
PHI4 = _family(
    "phi4",
    between("<|tool_call|>", "<|/tool_call|>"),
    _array("<|tool_call|>", "<|/tool_call|>"),
    prompt=Prompt(tool_list("<|tool|>", "<|/tool|>", flat=True), _RESULT),
    dropped=_ENDS,
)
GRANITE_20B = _family(
    "granite_20b_fc",
    Block("<function_call>", Without(("no_function",)), starts=_STARTS, values=True, many=False),
    Layout(json_call(before="<function_call> ")),
    prompt=Prompt(_TOOLS, enclosed("<function_response> ", "")),
    dropped=("</function_call>", *_ENDS),
)
XLAM = Format(
    "xlam",
    (MISTRAL_BLOCK, JSON_BLOCK, NAMED_BLOCK),
    _array("", ""),
    Prompt(_TOOLS, _RESULT),
    dropped=("</tool_call>", "</s>"),
    bare=lambda names: (*fenced_json(names), *bare_json(names)),
    holds=Holds(PLAIN_NAME),
)

_COHERE = JsonCalls(Shape(("tool_name", "name"), ("parameters", "arguments"), ("tool_call_id", "id")))
_PSEUDO = ("directly-answer", "directly_answer")


def _cohere_call(call: TextCall, place: int) -> str:
    made = call.id or str(place)
    return spaced_json({"tool_call_id": made, "tool_name": call.name, "parameters": call.arguments})


def _cohere_result(call: TextCall, content: str) -> str:
    return spaced_json({"tool_call_id": call.id, "results": {"0": content}, "is_error": None})


COHERE = Format(
    "cohere",
    (between("<|START_ACTION|>", "<|END_ACTION|>", read=_COHERE),),
    Layout(_cohere_call, "<|START_ACTION|>[\n", ",\n", "\n]<|END_ACTION|>"),
    Prompt(
        tool_list("# Available tools\n```json\n", "\n```", flat=True),
        _cohere_result,
        "<|START_TOOL_RESULT|>[",
        ", ",
        "]<|END_TOOL_RESULT|>",
    ),
    dropped=("<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|END_ACTION|>", "<|END_OF_TURN_TOKEN|>"),
    reasoning=(("<|START_THINKING|>", "<|END_THINKING|>"),),
    bare=bare_json,
    holds=Holds(PLAIN_NAME, ids=True),
)
COMMAND_R = _family(
    "command_r",
    Block("Action: ```json", Without(_PSEUDO, _COHERE), ("```",), starts=_STARTS, values=True),
    Layout(json_call("tool_name", "parameters"), "Action: ```json\n[\n", ",\n", "\n]\n```"),
    prompt=Prompt(tool_list("## Available Tools\n", flat=True), enclosed("<results>\n", "\n</results>")),
)

JAMBA = _family("jamba", PLURAL_BLOCK, _array("<tool_calls>", "</tool_calls>"))
INTERNLM2 = _family(
    "internlm2",
    between("<|action_start|><|plugin|>", "<|action_end|>"),
    Layout(json_call(arguments="parameters", before="<|action_start|><|plugin|>\n", after="<|action_end|>")),
)
APERTUS = _family(
    "apertus",
    between("<|tools_prefix|>", "<|tools_suffix|>", read=JsonCalls(NameIsKey())),
    Layout(
        lambda call, place: spaced_json({call.name: call.arguments}), "<|tools_prefix|>[", ", ", "]<|tools_suffix|>"
    ),
)
GIGACHAT3 = _family(
    "gigachat3", between("<|function_call|>"), Layout(json_call(before="<|function_call|>")), dropped=_ENDS
)
NEMOTRON = _family("nemotron", between("<TOOLCALL>", "</TOOLCALL>"), _array("<TOOLCALL>", "</TOOLCALL>"))
LM_STUDIO = _family(
    "lm_studio",
    between("[TOOL_REQUEST]", "[END_TOOL_REQUEST]"),
    Layout(json_call(before="[TOOL_REQUEST]", after="[END_TOOL_REQUEST]")),
)
INKLING = _family(
    "inkling",
    between("<|content_invoke_tool_json|>", "<|end_message|>", read=JsonCalls(Shape(arguments=("args", "arguments")))),
    Layout(json_call(arguments="args", before="<|content_invoke_tool_json|>", after="<|end_message|>")),
)
MARKED_JSON = (
    GRANITE3,
    PHI4,
    FUNCTOOLS,
    GRANITE_20B,
    XLAM,
    COHERE,
    COMMAND_R,
    JAMBA,
    INTERNLM2,
    APERTUS,
    GIGACHAT3,
    NEMOTRON,
    LM_STUDIO,
    INKLING,
)
