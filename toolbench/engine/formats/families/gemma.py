"""Gemma 3 (a fence of Python), FunctionGemma and Gemma 4 (bare keys, texts between tokens of their own)."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from toolbench.engine.errors import BadJson
from toolbench.engine.formats.definition import Block, Format, FoundCall, Holds, Layout, Prompt, Reading
from toolbench.engine.formats.extents import value_end
from toolbench.engine.formats.families.fenced import FENCE, fenced_json
from toolbench.engine.formats.families.gemma_repair import repaired_calls
from toolbench.engine.formats.families.generic_json import bare_json
from toolbench.engine.formats.families.pythonic import PYTHONIC, bare_list
from toolbench.engine.formats.json_calls import as_object
from toolbench.engine.formats.literals import read_value
from toolbench.engine.formats.python_calls import PythonCalls
from toolbench.engine.formats.values import Known, TextCall, function_of
from toolbench.engine.formats.writing import enclosed, python_call, spaced_json
from toolbench.engine.messages import JsonObject

_HEADING = re.compile(r"\s*(?:call)?\s*:\s*(?P<name>[\w.-]+)\s*(?=\{)")
_STRING_OR_KEY = re.compile(r'\\.|"(?:[^"\\]|\\.)*+"|(?P<before>[{,]\s*)(?P<key>[^\s{}\[\]:,"\']+)\s*:', re.DOTALL)
_OPEN_QUOTE = re.compile(r"'(?P<text>[^']*)\Z")
_ANY_CODE, _TOOL_CODE = re.compile(r"(?:tool_code|python|tool_call)?\s*"), re.compile(r"tool_code\s*")


@dataclass(frozen=True, slots=True)
class GemmaCalls:
    """Reads `call:name{key:value}`, several in one block too; `quote` stands on both sides of a text."""

    quote: str

    def __call__(self, body: str, known: Known, *, cut: bool) -> Reading:
        reading = self._strict(body, cut=cut)
        if not reading.problem or cut:
            return reading
        repaired = repaired_calls(body, self.quote, known, self._whole)
        return Reading(repaired, notes=("delimiter_missing",)) if repaired else reading

    def _whole(self, body: str) -> tuple[FoundCall, ...]:
        """Return the calls of a block in which nothing is wrong; none of any other."""
        reading = self._strict(body, cut=False)
        return () if reading.problem else reading.calls

    def _strict(self, body: str, *, cut: bool) -> Reading:
        calls: list[FoundCall] = []
        parts = body.split(self.quote)
        if not cut and any(not part.strip() for part in parts[2:-1:2]):
            return Reading(problem="call_unreadable")  # Python would join two texts with nothing between them
        text, at = _json_like(parts), 0
        while named := _HEADING.match(text, at):
            end = value_end(text, named.end())
            arguments = _object(text[named.end() : end]) if end is not None else None
            if end is None or arguments is None:
                return Reading(tuple(calls), "call_cut" if cut and end is None else "call_unreadable")
            calls.append(FoundCall(named["name"], arguments))
            at = end
        if text[at:].strip(" \n,") or not calls:
            return Reading(tuple(calls), "call_cut" if cut else "call_unreadable")
        return Reading(tuple(calls))


def _object(text: str) -> JsonObject | None:
    try:
        return as_object(read_value(text))
    except BadJson:
        return None


def _json_like(parts: Sequence[str]) -> str:
    """The text with its keys and strings in JSON's quotes. Every other part is a string; with an odd number of quotes
    one of them closes a string that began with an apostrophe."""
    dangling = len(parts) % 2 == 0
    written, in_string = [], False
    for part in parts:
        opened = _OPEN_QUOTE.search(part) if dangling and not in_string else None
        if in_string:
            written.append(json.dumps(part))
        elif opened:
            written += [_quoted_keys(part[: opened.start()]), json.dumps(opened["text"])]
            dangling, in_string = False, True
        else:
            written.append(_quoted_keys(part))
        in_string = not in_string
    return "".join(written)


def _quoted_keys(code: str) -> str:
    return _STRING_OR_KEY.sub(
        lambda found: f"{found['before']}{json.dumps(found['key'])}:" if found["key"] else found[0], code
    )


def _writer(opener: str, quote: str, closer: str) -> Callable[[TextCall, int], str]:
    def write(call: TextCall, place: int) -> str:
        return f"{opener}call:{call.name}{_spelled(call.arguments, quote)}{closer}"

    return write


def _spelled(value: object, quote: str) -> str:
    """A value with bare keys and its strings between `quote`."""
    if isinstance(value, str):
        return quote + value + quote
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{_spelled(item, quote)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_spelled(item, quote) for item in value) + "]"
    return spaced_json(value)


def _upper_types(schema: object) -> object:
    """A schema with its types in capitals, as the declarations have them."""
    if isinstance(schema, list):
        return [_upper_types(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: value.upper() if key == "type" and isinstance(value, str) else _upper_types(value)
        for key, value in schema.items()
    }


def _declarations(opener: str, quote: str, closer: str) -> Callable[[Sequence[JsonObject]], str]:
    def write(tools: Sequence[JsonObject]) -> str:
        functions = [function_of(tool) for tool in tools]
        rests = [
            {key: function[key] for key in ("description", "parameters") if key in function} for function in functions
        ]
        return "".join(
            f"{opener}declaration:{function.get('name')}{_spelled(_upper_types(rest), quote)}{closer}"
            for function, rest in zip(functions, rests, strict=True)
        )

    return write


def _format(name: str, tokens: tuple[str, str, str], prompt: Prompt, reasoning: tuple[tuple[str, str], ...]) -> Format:
    opener, quote, closer = tokens
    return Format(
        name,
        (Block(opener, GemmaCalls(quote), (closer,), (opener,), guard=(quote, quote)),),
        Layout(_writer(*tokens), between=""),
        prompt,
        dropped=(closer, "<turn|>", "<end_of_turn>", "<start_function_response>", "<|tool_response>"),
        reasoning=reasoning,
        bare=bare_json,
        holds=Holds(r"[\w.-]+", r"[^\s{}\[\]:,\"'<]+", (quote, opener, closer), bare_keys=True),
    )


def fenced_python(names: Sequence[str]) -> tuple[Block, ...]:
    """A fence that begins with a call of a known tool."""
    starts = tuple(f"{before}{name}(" for name in names for before in ("", "["))
    return (Block(FENCE, PythonCalls(), (FENCE,), starts=starts, skip=_ANY_CODE, bare=True),)


def whole_tool_code(names: Sequence[str]) -> tuple[Block, ...]:
    """The same, but only where it is called tool_code and is the whole answer."""
    return tuple(replace(block, skip=_TOOL_CODE, whole=True) for block in fenced_python(names))


GEMMA3 = Format(
    "gemma3",
    (),
    Layout(python_call, f"{FENCE}tool_code\n", "\n", f"\n{FENCE}"),
    Prompt(PYTHONIC.prompt.tools, enclosed(f"{FENCE}tool_output\n", f"\n{FENCE}"), role="user"),
    dropped=("<end_of_turn>",),
    bare=lambda names: (*fenced_python(names), *fenced_json(names), *bare_json(names), *bare_list(names)),
    holds=Holds(PYTHONIC.holds.name, PYTHONIC.holds.key, (FENCE,)),
    native=False,
)
FUNCTION_GEMMA = _format(
    "function_gemma",
    ("<start_function_call>", "<escape>", "<end_function_call>"),
    Prompt(
        _declarations("<start_function_declaration>", "<escape>", "<end_function_declaration>"),
        enclosed("Function result for {name}: ", ""),
        role="user",
    ),
    (("<think>", "</think>"),),
)
GEMMA4 = _format(
    "gemma4",
    ("<|tool_call>", '<|"|>', "<tool_call|>"),
    Prompt(
        _declarations("<|tool>", '<|"|>', "<tool|>"),
        enclosed('<|tool_response>response:{name}{value:<|"|>', '<|"|>}<tool_response|>'),
        results_between="",
        role="assistant",
    ),
    (("<|channel>thought", "<channel|>"),),
)
