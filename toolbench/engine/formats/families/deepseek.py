"""DeepSeek V3 and R1 (a type, a name and fenced JSON), V3.1 (a name and JSON), V3.2 and V4 (DSML tags),
V4.1 (the same with a blank behind the token)."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product

from toolbench.engine.formats.definition import Block, Format, Holds, Layout, Prompt
from toolbench.engine.formats.families.generic_json import bare_json
from toolbench.engine.formats.families.hermes import PLAIN_NAME
from toolbench.engine.formats.json_calls import NamedJson
from toolbench.engine.formats.tagged_calls import Tagged
from toolbench.engine.formats.values import TextCall
from toolbench.engine.formats.writing import enclosed, named_json_call, spelled, tool_lines
from toolbench.engine.messages import JsonObject

_BARS, _BLANKS = ("｜", "|"), ("▁", "_", " ")  # lossy gateways turn the first of each into the others
_SEPARATOR = re.compile(r"<[｜|]tool[▁_ ]sep[｜|]>")
_TYPED = re.compile(r"\s*(?P<name>[\w.:/-]+)\s*(?:```\w*\s*)?")
_KINDS = {"true": "string", "false": "integer|number|boolean|null|array|object|string"}


def _token(words: str) -> tuple[str, ...]:
    """A token in all its spellings, the right one first."""
    return tuple(f"<{bar}{words.replace(' ', blank)}{bar}>" for bar, blank in product(_BARS, _BLANKS))


BEGIN, END, SEP = _token("tool call begin"), _token("tool call end"), _token("tool sep")
ALL_BEGIN, ALL_END = _token("tool calls begin"), _token("tool calls end")
_STOPS = ("<｜end▁of▁sentence｜>",)


def _heading(heading: str) -> tuple[str, str]:
    """The name is what stands behind the separator, or before it if nothing does; without a separator there is none."""
    before, *behind = _SEPARATOR.split(heading, maxsplit=1)
    named = _TYPED.match(behind[0] if behind[0].strip("` \n") else before) if behind else None
    return (named["name"], "") if named else ("", "")


def _blocks() -> tuple[Block, ...]:
    closers, enders = (*(f"```{end}" for end in END), *END), (*BEGIN, *ALL_END)
    return tuple(Block(begin, NamedJson(_heading), closers, enders, values=True, many=False) for begin in BEGIN)


def _tools(how: str) -> Callable[[Sequence[JsonObject]], str]:
    return tool_lines("## Tools\nThese functions can be called:\n", f"\n\nTo call one, write:\n{how}")


_V3_PROMPT = Prompt(
    _tools(
        f"{ALL_BEGIN[0]}{BEGIN[0]}function{SEP[0]}name\n```json\n{{arguments}}\n```{END[0]}{ALL_END[0]}",
    ),
    enclosed("<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"),
    results_before="<｜tool▁outputs▁begin｜>",
    results_after="<｜tool▁outputs▁end｜>",
)
_V31_PROMPT = Prompt(
    _tools(f"{ALL_BEGIN[0]}{BEGIN[0]}name{SEP[0]}{{arguments}}{END[0]}{ALL_END[0]}"),
    _V3_PROMPT.result,
    results_between="",
)
DEEPSEEK_V3 = Format(
    "deepseek_v3",
    _blocks(),
    Layout(
        named_json_call(f"{BEGIN[0]}function{SEP[0]}", "\n```json\n", f"\n```{END[0]}"), ALL_BEGIN[0], "\n", ALL_END[0]
    ),
    _V3_PROMPT,
    dropped=(*ALL_BEGIN, *ALL_END, *END, *_STOPS),
    bare=bare_json,
    holds=Holds(PLAIN_NAME),
)
DEEPSEEK_V31 = Format(
    "deepseek_v31",
    _blocks(),
    Layout(named_json_call(BEGIN[0], SEP[0], END[0]), ALL_BEGIN[0], "", ALL_END[0]),
    _V31_PROMPT,
    dropped=DEEPSEEK_V3.dropped,
    bare=bare_json,
    holds=Holds(PLAIN_NAME),
)


def _dsml(bar: str, slash: str = "", blank: str = "") -> str:
    return f"<{slash}{bar}DSML{bar}{blank}"


def _invokes(bar: str, blank: str) -> Block:
    begin, end = _dsml(bar, blank=blank), _dsml(bar, "/", blank)
    value, value_end = f"{begin}parameter", f"{end}parameter>"
    read = Tagged(
        re.compile(r"\s*name=[\"']?(?P<name>[^\"'>\s]+)[\"']?\s*>"),
        re.compile(rf"{re.escape(value)} name=\"(?P<key>[^\">]*)\"(?: string=\"(?P<kind>true|false)\")?\s*>"),
        value_end,
        kinds=_KINDS,
    )
    enders = (*(f"{end}{word}>" for word in _DSML_WRAPPERS), f"{begin}invoke")
    return Block(f"{begin}invoke", read, (f"{end}invoke>",), enders, guard=(value, value_end))


_DSML_WRAPPERS = ("function_calls", "tool_calls", "calls")
_DSML_BLOCKS = tuple(_invokes(bar, blank) for bar, blank in product(_BARS, ("", " ")))
_DSML_DROPPED = tuple(
    f"{_dsml(bar, slash, blank)}{word}>"
    for bar, slash, blank, word in product(_BARS, ("", "/"), ("", " "), (*_DSML_WRAPPERS, "invoke"))
)


def _dsml_format(name: str, wrapper: str, prompt: Prompt, blank: str = "") -> Format:
    begin, end = _dsml("｜", blank=blank), _dsml("｜", "/", blank)

    value = f'{begin}parameter name="key" string="true|false">value{end}parameter>\n'
    how = f'{begin}{wrapper}>\n{begin}invoke name="name">\n{value}{end}invoke>\n{end}{wrapper}>'

    def written(call: TextCall, place: int) -> str:
        parameters = (
            f'{begin}parameter name="{key}" string="{"true" if isinstance(value, str) else "false"}">'
            f"{spelled(value)}{end}parameter>\n"
            for key, value in call.arguments.items()
        )
        return f'{begin}invoke name="{call.name}">\n{"".join(parameters)}{end}invoke>'

    return Format(
        name,
        _DSML_BLOCKS,
        Layout(written, f"{begin}{wrapper}>\n", "\n", f"\n{end}{wrapper}>"),
        replace(prompt, tools=_tools(how)),
        dropped=(*_DSML_DROPPED, *_STOPS),
        bare=bare_json,
        holds=Holds(r"[^\s<>|｜\"']+", r"[^\s\">]+", ("DSML",)),
    )


DEEPSEEK_V32 = _dsml_format(
    "deepseek_v32",
    "function_calls",
    Prompt(
        _V3_PROMPT.tools,
        enclosed("<result>", "</result>"),
        results_before="<function_results>\n",
        results_after="\n</function_results>",
        role="user",
    ),
)
DEEPSEEK_V4 = _dsml_format(
    "deepseek_v4",
    "tool_calls",
    Prompt(_V3_PROMPT.tools, enclosed("<tool_result>", "</tool_result>"), results_between="\n\n", role="user"),
)
DEEPSEEK_V41 = _dsml_format(
    "deepseek_v41",
    "calls",
    DEEPSEEK_V4.prompt,
    blank=" ",
)
