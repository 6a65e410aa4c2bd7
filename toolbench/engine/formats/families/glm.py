"""GLM 4.5 to 4.7 and similar formats: a name, then pairs of key and value tags.

Poolside uses the format of GLM 4.5, Ling 3 that of GLM 4.7. LongCat, K2-Horizon and Hunyuan 3 have other tag names;
their formats follow vLLM's parsers.
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
        prefix: text before the word of a tag.
        suffix: text after the word of a tag.
        tag_separator: text between tags.
        between: text between calls.
        separator: word of a tag after the tool's name; "" for none.
        wrapper: word of a tag around all calls; "" for none.
        reasoning_words: words of the tags around reasoning.
    """

    prefix: str = ""
    suffix: str = ""
    tag_separator: str = "\n"
    between: str = "\n"
    separator: str = ""
    wrapper: str = ""
    reasoning_words: tuple[str, ...] = ("think",)

    def build_tags(self, word: str) -> tuple[str, str]:
        """Return the start tag and the end tag with this word."""
        return f"<{self.prefix}{word}{self.suffix}>", f"</{self.prefix}{word}{self.suffix}>"

    @property
    def after_name(self) -> str:
        """The text after a tool's name: the start tag with the separator word, or ""."""
        return self.build_tags(self.separator)[0] if self.separator else ""


def _build_blocks(tags: TagSpelling) -> list[Block]:
    """Return the blocks of a format with these tags."""
    opener, closer = tags.build_tags("tool_call")
    key, value = tags.build_tags("arg_key"), tags.build_tags("arg_value")
    kind = r"(?:{}(?P<kind>\w{{1,32}}){}\s{{0,64}})?".format(*map(re.escape, tags.build_tags("arg_type")))
    separator = re.escape(tags.build_tags("tool_sep")[0])
    tagged_reader = TaggedReader(
        re.compile(rf"\s*(?P<name>[\w.:/-]+)\s*(?:{separator}\s*)?(?=<|$)"),
        re.compile(
            rf"{re.escape(key[0])}(?P<key>[^<]{{1,256}}){re.escape(key[1])}\s{{0,64}}{kind}(?P<opened>{re.escape(value[0])})?"
        ),
        value[1],
    )
    reader = FirstMatchReader((tagged_reader, NamedJsonReader(parse_name_heading), AttributeReader()))
    wrapper = tags.build_tags(tags.wrapper)[0] if tags.wrapper else ""
    return [
        *([] if tags.prefix or tags.suffix else [JSON_BLOCK]),
        *([Block(wrapper, JsonCallReader(), starts=(opener,), wrapper=True)] if wrapper else []),
        Block(opener, reader, (closer,), (opener,), guard=(key[0], value[1])),
    ]


def _build_layout(tags: TagSpelling) -> CallLayout:
    opener, closer = tags.build_tags("tool_call")
    key, value = tags.build_tags("arg_key"), tags.build_tags("arg_value")
    before, after = tags.build_tags(tags.wrapper) if tags.wrapper else ("", "")
    call_writer = tagged_call_writer(
        f"{opener}{{name}}{tags.after_name}{tags.tag_separator}",
        f"{key[0]}{{key}}{key[1]}{tags.tag_separator}{value[0]}",
        f"{value[1]}{tags.tag_separator}",
        closer,
    )
    return CallLayout(call_writer, before and f"{before}\n", tags.between, after and f"\n{after}")


def _build_instruction(tags: TagSpelling) -> str:
    opener, closer = tags.build_tags("tool_call")
    key, value = tags.build_tags("arg_key"), tags.build_tags("arg_value")
    tag_separator = tags.tag_separator
    argument = f"{key[0]}key{key[1]}{tag_separator}{value[0]}value{value[1]}{tag_separator}"
    before, after = (
        (f"{tags.build_tags(tags.wrapper)[0]}\n", f"\n{tags.build_tags(tags.wrapper)[1]}") if tags.wrapper else ("", "")
    )
    return f"\n\nTo call one, write:\n{before}{opener}name{tags.after_name}{tag_separator}{argument}{closer}{after}"


_END_TOKENS = ("<|observation|>", "<|user|>", "<|endoftext|>")


def _build_format(
    name: str,
    tags: TagSpelling,
    prompt: PromptLayout,
    *,
    other_spellings: Sequence[TagSpelling] = (),
    end_tokens: Sequence[str] = _END_TOKENS,
) -> TextFormat:
    """Return a text format that is written with `tags`.

    Args:
        name: the name of the format.
        tags: the spelling of the tags.
        prompt: the layout of tools and results.
        other_spellings: further spellings that are parsed.
        end_tokens: tokens that end an answer.
    """
    spellings = (tags, *other_spellings)
    call_tags, value_tags = (
        [spelling.build_tags("tool_call") for spelling in spellings],
        [spelling.build_tags("arg_value") for spelling in spellings],
    )
    wrapper_ends = [spelling.build_tags(spelling.wrapper)[1] for spelling in spellings if spelling.wrapper]
    forbidden = (
        *(end for _, end in call_tags),
        *(call for call, _ in call_tags),
        *(tag for tag_pair in value_tags for tag in tag_pair),
    )
    return TextFormat(
        name,
        tuple(block for spelling in spellings for block in _build_blocks(spelling)),
        _build_layout(tags),
        prompt,
        dropped=(*(end for _, end in call_tags), *wrapper_ends, *end_tokens),
        reasoning=tuple(spelling.build_tags(word) for spelling in spellings for word in spelling.reasoning_words),
        bare=build_bare_json_blocks,
        holds=RoundTripLimits(
            r"[\w.:/-]+",
            r"[^<\s]([^<]*[^<\s])?",
            (*forbidden, *(spelling.build_tags("arg_key")[0] for spelling in spellings)),
            schema=True,
        ),
    )


def _build_prompt_layout(tags: TagSpelling) -> PromptLayout:
    """Build the prompt layout of GLM 4.5 with these tags."""
    return PromptLayout(
        tool_lines_writer(
            "# Tools\n\nThese functions can be called:\n<tools>\n", f"\n</tools>{_build_instruction(tags)}"
        ),
        enclosed_result_writer("<tool_response>\n", "\n</tool_response>"),
        results_before="<|observation|>\n",
        role="observation",
    )


_GLM, _GLM47, _LONGCAT = TagSpelling(), TagSpelling(tag_separator="", between=""), TagSpelling("longcat_")
_K2_HORIZON = TagSpelling("ifm|", wrapper="tool_calls", reasoning_words=("think", "think_fast", "think_faster"))
_HUNYUAN = TagSpelling(suffix=":opensource", separator="tool_sep", wrapper="tool_calls")
_RESPONSES, _RESPONSE = _HUNYUAN.build_tags("tool_responses"), _HUNYUAN.build_tags("tool_response")

GLM45 = _build_format("glm45", _GLM, _build_prompt_layout(_GLM))
GLM47 = _build_format(
    "glm47",
    _GLM47,
    replace(
        _build_prompt_layout(_GLM47),
        result=enclosed_result_writer("<tool_response>", "</tool_response>"),
        results_before="<|observation|>",
        results_between="",
    ),
)
LONGCAT = _build_format("longcat", _LONGCAT, _build_prompt_layout(_LONGCAT))
K2_HORIZON = _build_format(
    "k2_horizon",
    _K2_HORIZON,
    PromptLayout(
        tool_list_writer(
            "# Tools\nThese tools can be called:\n\n<ifm|tools>\n", f"\n</ifm|tools>{_build_instruction(_K2_HORIZON)}"
        ),
        enclosed_result_writer("", ""),
    ),
    end_tokens=("<|ifm|im_end|>",),
)
HUNYUAN_V3 = _build_format(
    "hunyuan_v3",
    _HUNYUAN,
    PromptLayout(
        _build_prompt_layout(_HUNYUAN).tools,
        enclosed_result_writer(f"{_RESPONSE[0]}\n", f"\n{_RESPONSE[1]}"),
        results_before=f"{_RESPONSES[0]}\n",
        results_after=f"\n{_RESPONSES[1]}",
    ),
    other_spellings=(replace(_HUNYUAN, suffix=""),),
    end_tokens=("<｜hy_eos:opensource｜>",),
)
