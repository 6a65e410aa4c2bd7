"""Families that write JSON between two markers of their own: Phi-4, Granite, xLAM, Jamba and others."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from toolbench.engine.formats.definition import Block, Format, FoundCall, Holds, Layout, Prompt, Reader, Reading
from toolbench.engine.formats.families.fenced import fenced_json
from toolbench.engine.formats.families.generic_json import bare_json
from toolbench.engine.formats.families.hermes import JSON_BLOCK, NAMED_BLOCK, PLAIN_NAME, PLURAL_BLOCK
from toolbench.engine.formats.families.mistral import BLOCK as MISTRAL_BLOCK
from toolbench.engine.formats.json_calls import JsonCalls, Shape, as_object, clean_name
from toolbench.engine.formats.typescript import declared
from toolbench.engine.formats.values import Known, TextCall, function_of
from toolbench.engine.formats.writing import (
    enclosed,
    indented_json,
    json_call,
    spaced_json,
    tool_lines,
    tool_list,
)
from toolbench.engine.messages import JsonObject

STARTS = ("{", "[")
_TOOLS = tool_list("Tools:\n", "\n", flat=True)
_PLAIN = enclosed("", "")


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
    return Block(opener, read or JsonCalls(), closers, (opener,), starts=STARTS, values=True)


def _family(
    name: str, block: Block, layout: Layout, *, prompt: Prompt | None = None, **more: tuple[str, ...]
) -> Format:
    return Format(
        name,
        (block,),
        layout,
        prompt or Prompt(_TOOLS, _PLAIN),
        dropped=(*block.closers, *more.get("dropped", ())),
        bare=bare_json,
        holds=Holds(PLAIN_NAME),
    )


def _array(before: str, after: str) -> Layout:
    return Layout(json_call(), f"{before}[", ", ", f"]{after}")


def line_array(before: str, after: str, call: Callable[[TextCall, int], str]) -> Layout:
    """An array with a call, itself indented, on each line or several."""
    return Layout(call, f"{before}[\n", ",\n", f"\n]{after}")


def deep_call(name: str, arguments: str) -> Callable[[TextCall, int], str]:
    """Writes a call over several lines, under the given keys, as an item of such an array."""
    return lambda call, place: indented_json({name: call.name, arguments: call.arguments})


_ENDS = ("<|end|>", "<|end_of_text|>")
_FUNCTOOLS = Block("functools", JsonCalls(), starts=STARTS, values=True, many=False)
FUNCTOOLS = _family("functools", _FUNCTOOLS, _array("functools", ""), dropped=_ENDS)


def _available(tools: Sequence[JsonObject]) -> str:
    listed = "\n\n".join(json.dumps(tool, ensure_ascii=False, indent=4) for tool in tools)
    return f"<|start_of_role|>available_tools<|end_of_role|>\n{listed}<|end_of_text|>"


GRANITE3 = Format(
    "granite3",
    (Block("<|tool_call|>", JsonCalls(), starts=STARTS, values=True), JSON_BLOCK, NAMED_BLOCK),
    line_array("<|tool_call|>", "", deep_call("name", "arguments")),
    Prompt(
        _available,
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
    prompt=Prompt(tool_list("<|tool|>", "<|/tool|>", flat=True), _PLAIN),
    dropped=_ENDS,
)
GRANITE_20B = _family(
    "granite_20b_fc",
    Block("<function_call>", Without(("no_function",)), starts=STARTS, values=True, many=False),
    Layout(json_call(before="<function_call> ")),
    prompt=Prompt(
        tool_lines(
            "<|function_call_library|>\n",
            '\nWhere none of them helps, write <function_call> {"name": "no_function", "arguments": {}}.',
            flat=True,
        ),
        enclosed("<function_response> ", ""),
        results_between="",
    ),
    dropped=("</function_call>", "<|endoftext|>", *_ENDS),
)
XLAM = Format(
    "xlam",
    (MISTRAL_BLOCK, JSON_BLOCK, NAMED_BLOCK),
    _array("", ""),
    Prompt(
        tool_list(
            "Tools:\n",
            '\n\nTo call some, answer with nothing but an array of them: [{"name": <name>, "arguments": <object>}].\n',
            flat=True,
        ),
        _PLAIN,
    ),
    dropped=("</tool_call>", "</s>", "<|im_end|>"),
    bare=lambda names: (*fenced_json(names), *bare_json(names)),
    holds=Holds(PLAIN_NAME),
)


def _definitions(tools: Sequence[JsonObject]) -> str:
    listed = "\n\n".join(json.dumps(function_of(tool), ensure_ascii=False, indent=2) for tool in tools)
    return f"<tool_definitions>\n# Tools\n\n## Functions\n\n{listed}\n</tool_definitions>"


JAMBA = _family(
    "jamba",
    PLURAL_BLOCK,
    line_array("<tool_calls>", "</tool_calls>", json_call(before="    ")),
    prompt=Prompt(_definitions, _PLAIN),
    dropped=("<|eom|>",),
)
INTERNLM2 = _family(
    "internlm2",
    between("<|action_start|><|plugin|>", "<|action_end|>"),
    Layout(
        json_call(arguments="parameters", before="<|action_start|><|plugin|>\n", after="<|action_end|>"), between=""
    ),
    prompt=Prompt(tool_list("", flat=True), _PLAIN),
    dropped=("<|im_end|>",),
)


def _capabilities(tools: Sequence[JsonObject]) -> str:
    return "\n".join(declared(function_of(tool), last="") for tool in tools)


def _namespace(tools: Sequence[JsonObject]) -> str:
    listed = "".join(f"{declared(function_of(tool), indent='  ')}\n\n" for tool in tools)
    return f"namespace functions {{\n{listed}}} // namespace functions"


APERTUS = _family(
    "apertus",
    between("<|tools_prefix|>", "<|tools_suffix|>", read=JsonCalls(NameIsKey())),
    Layout(
        lambda call, place: spaced_json({call.name: call.arguments}), "<|tools_prefix|>[", ", ", "]<|tools_suffix|>"
    ),
    prompt=Prompt(_capabilities, _PLAIN, "[", ", ", "]"),
    dropped=("<|assistant_end|>",),
)
_GIGACHAT = _family(
    "gigachat3",
    between("<|function_call|>"),
    Layout(json_call(before="<|function_call|>")),
    prompt=Prompt(_namespace, _PLAIN),
    dropped=(*_ENDS, "<|message_sep|>"),
)
GIGACHAT3 = replace(_GIGACHAT, blocks=(*_GIGACHAT.blocks, between("function call<|role_sep|>")))  # 3.0's head
NEMOTRON = _family(
    "nemotron",
    between("<TOOLCALL>", "</TOOLCALL>"),
    _array("<TOOLCALL>", "</TOOLCALL>"),
    prompt=Prompt(
        tool_list(
            "These tools can be called:\n<AVAILABLE_TOOLS>",
            '</AVAILABLE_TOOLS>\n\nTo call some, write:\n<TOOLCALL>[{"name": <name>, "arguments": <object>}]'
            "</TOOLCALL>",
            flat=True,
        ),
        _PLAIN,
        "<TOOL_RESPONSE>[",
        ", ",
        "]</TOOL_RESPONSE>",
    ),
    dropped=("<SPECIAL_12>",),
)
LM_STUDIO = _family(
    "lm_studio",
    between("[TOOL_REQUEST]", "[END_TOOL_REQUEST]"),
    Layout(json_call(before="[TOOL_REQUEST]", after="[END_TOOL_REQUEST]")),
)
MARKED_JSON = (
    GRANITE3,
    PHI4,
    FUNCTOOLS,
    GRANITE_20B,
    XLAM,
    JAMBA,
    INTERNLM2,
    APERTUS,
    GIGACHAT3,
    NEMOTRON,
    LM_STUDIO,
)
