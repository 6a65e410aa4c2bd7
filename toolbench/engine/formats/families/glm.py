"""GLM 4.5 to 4.7 and similar formats: a name, then pairs of key and value tags.

Poolside writes as GLM 4.5, Ling 3 as GLM 4.7. LongCat, K2-Horizon and Hunyuan 3 have tags of their own, written as
vLLM's parsers read them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from toolbench.engine.formats.call_writers import (
    enclosed_result_writer,
    tagged_call_writer,
    tool_lines_writer,
    tool_list_writer,
)
from toolbench.engine.formats.families.generic_json import build_bare_json_blocks
from toolbench.engine.formats.families.hermes import JSON_BLOCK, parse_name_heading
from toolbench.engine.formats.json_calls import JsonCallReader, NamedJsonReader
from toolbench.engine.formats.specification import Block, CallLayout, PromptLayout, RoundTripLimits, TextFormat
from toolbench.engine.formats.tagged_calls import AttributeReader, FirstMatchReader, TaggedReader


@dataclass(frozen=True, slots=True)
class TagSpelling:
    """The spelling of a family's tags.

    Attributes:
        mark, tail: text before and after the word of a tag.
        line: text between tags.
        between: text between calls.
        separator: word of a tag after the tool's name; "" for none.
        wrapper: word of a tag around all calls; "" for none.
    """

    mark: str = ""
    tail: str = ""
    line: str = "\n"
    between: str = "\n"
    separator: str = ""
    wrapper: str = ""
    thoughts: tuple[str, ...] = ("think",)

    def pair(self, word: str) -> tuple[str, str]:
        """Return a tag and its end."""
        return f"<{self.mark}{word}{self.tail}>", f"</{self.mark}{word}{self.tail}>"

    @property
    def behind(self) -> str:
        """Text after a tool's name."""
        return self.pair(self.separator)[0] if self.separator else ""


def _build_blocks(tags: TagSpelling) -> list[Block]:
    opener, closer = tags.pair("tool_call")
    key, value = tags.pair("arg_key"), tags.pair("arg_value")
    kind = r"(?:{}(?P<kind>\w{{1,32}}){}\s{{0,64}})?".format(*map(re.escape, tags.pair("arg_type")))
    separator = re.escape(tags.pair("tool_sep")[0])
    pairs = TaggedReader(
        re.compile(rf"\s*(?P<name>[\w.:/-]+)\s*(?:{separator}\s*)?(?=<|$)"),
        re.compile(
            rf"{re.escape(key[0])}(?P<key>[^<]{{1,256}}){re.escape(key[1])}\s{{0,64}}{kind}(?P<opened>{re.escape(value[0])})?"
        ),
        value[1],
    )
    read = FirstMatchReader((pairs, NamedJsonReader(parse_name_heading), AttributeReader()))
    around = tags.pair(tags.wrapper)[0] if tags.wrapper else ""
    return [
        *([] if tags.mark or tags.tail else [JSON_BLOCK]),
        *([Block(around, JsonCallReader(), starts=(opener,), wrapper=True)] if around else []),
        Block(opener, read, (closer,), (opener,), guard=(key[0], value[1])),
    ]


def _build_layout(tags: TagSpelling) -> CallLayout:
    opener, closer = tags.pair("tool_call")
    key, value = tags.pair("arg_key"), tags.pair("arg_value")
    before, after = tags.pair(tags.wrapper) if tags.wrapper else ("", "")
    written = tagged_call_writer(
        f"{opener}{{name}}{tags.behind}{tags.line}",
        f"{key[0]}{{key}}{key[1]}{tags.line}{value[0]}",
        f"{value[1]}{tags.line}",
        closer,
    )
    return CallLayout(written, before and f"{before}\n", tags.between, after and f"\n{after}")


def _build_instruction(tags: TagSpelling) -> str:
    opener, closer = tags.pair("tool_call")
    key, value = tags.pair("arg_key"), tags.pair("arg_value")
    line = tags.line
    pair = f"{key[0]}key{key[1]}{line}{value[0]}value{value[1]}{line}"
    before, after = (f"{tags.pair(tags.wrapper)[0]}\n", f"\n{tags.pair(tags.wrapper)[1]}") if tags.wrapper else ("", "")
    return f"\n\nTo call one, write:\n{before}{opener}name{tags.behind}{line}{pair}{closer}{after}"


_ENDS = ("<|observation|>", "<|user|>", "<|endoftext|>")


def _build_format(
    name: str, tags: TagSpelling, prompt: PromptLayout, *, read: Sequence[TagSpelling] = (), ends: Sequence[str] = _ENDS
) -> TextFormat:
    """Return a format; `read` are other spellings that are parsed too, `ends` tokens that end an answer."""
    spelled = (tags, *read)
    calls, values = (
        [spelling.pair("tool_call") for spelling in spelled],
        [spelling.pair("arg_value") for spelling in spelled],
    )
    wrapped = [spelling.pair(spelling.wrapper)[1] for spelling in spelled if spelling.wrapper]
    never = (*(end for _, end in calls), *(call for call, _ in calls), *(tag for pair in values for tag in pair))
    return TextFormat(
        name,
        tuple(block for spelling in spelled for block in _build_blocks(spelling)),
        _build_layout(tags),
        prompt,
        dropped=(*(end for _, end in calls), *wrapped, *ends),
        reasoning=tuple(spelling.pair(word) for spelling in spelled for word in spelling.thoughts),
        bare=build_bare_json_blocks,
        holds=RoundTripLimits(
            r"[\w.:/-]+",
            r"[^<\s]([^<]*[^<\s])?",
            (*never, *(spelling.pair("arg_key")[0] for spelling in spelled)),
            schema=True,
        ),
    )


def _build_prompt(tags: TagSpelling) -> PromptLayout:
    """Return tools and results as GLM 4.5 writes them."""
    return PromptLayout(
        tool_lines_writer(
            "# Tools\n\nThese functions can be called:\n<tools>\n", f"\n</tools>{_build_instruction(tags)}"
        ),
        enclosed_result_writer("<tool_response>\n", "\n</tool_response>"),
        results_before="<|observation|>\n",
        role="observation",
    )


_GLM, _GLM47, _LONGCAT = TagSpelling(), TagSpelling(line="", between=""), TagSpelling("longcat_")
_IFM = TagSpelling("ifm|", wrapper="tool_calls", thoughts=("think", "think_fast", "think_faster"))
_HUNYUAN = TagSpelling(tail=":opensource", separator="tool_sep", wrapper="tool_calls")
_RESPONSES, _RESPONSE = _HUNYUAN.pair("tool_responses"), _HUNYUAN.pair("tool_response")

GLM45 = _build_format("glm45", _GLM, _build_prompt(_GLM))
GLM47 = _build_format(
    "glm47",
    _GLM47,
    replace(
        _build_prompt(_GLM47),
        result=enclosed_result_writer("<tool_response>", "</tool_response>"),
        results_before="<|observation|>",
        results_between="",
    ),
)
LONGCAT = _build_format("longcat", _LONGCAT, _build_prompt(_LONGCAT))
K2_HORIZON = _build_format(
    "k2_horizon",
    _IFM,
    PromptLayout(
        tool_list_writer(
            "# Tools\nThese tools can be called:\n\n<ifm|tools>\n", f"\n</ifm|tools>{_build_instruction(_IFM)}"
        ),
        enclosed_result_writer("", ""),
    ),
    ends=("<|ifm|im_end|>",),
)
HUNYUAN_V3 = _build_format(
    "hunyuan_v3",
    _HUNYUAN,
    PromptLayout(
        _build_prompt(_HUNYUAN).tools,
        enclosed_result_writer(f"{_RESPONSE[0]}\n", f"\n{_RESPONSE[1]}"),
        results_before=f"{_RESPONSES[0]}\n",
        results_after=f"\n{_RESPONSES[1]}",
    ),
    read=(replace(_HUNYUAN, tail=""),),
    ends=("<｜hy_eos:opensource｜>",),
)
