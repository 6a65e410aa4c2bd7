"""GLM 4.5 to 4.7 and similar formats: a name, then pairs of key and value tags.

Poolside uses the format of GLM 4.5, Ling 3 that of GLM 4.7. LongCat, K2-Horizon and Hunyuan 3 have other tag names;
their formats follow vLLM's parsers.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from toolbench.engine.formats.call_writers import (
    build_enclosed_result_writer,
    build_tagged_call_writer,
    build_tool_lines_writer,
    build_tool_list_writer,
)
from toolbench.engine.formats.families.generic_json import build_bare_json_blocks
from toolbench.engine.formats.families.hermes import JSON_BLOCK, parse_name_heading
from toolbench.engine.formats.json_calls import JsonCallReader, NamedJsonReader
from toolbench.engine.formats.specification import Block, CallLayout, PromptLayout, RoundTripLimits, TextFormat
from toolbench.engine.formats.tagged_calls import AttributeReader, FirstMatchReader, TaggedReader


@dataclass(frozen=True, slots=True)
class TagSpelling:
    """The spelling of a family's tags. The word of a tag, such as `tool_call`, is the same in all families.

    Attributes:
        word_prefix: text before the word, as in `<longcat_tool_call>`.
        word_suffix: text after the word, as in `<tool_call:opensource>`.
        tag_separator: text between tags.
        call_separator: text between calls.
        separator_word: word of a tag after the tool's name; "" for none.
        wrapper_word: word of a tag around all calls; "" for none.
        reasoning_words: words of the tags around reasoning.
    """

    word_prefix: str = ""
    word_suffix: str = ""
    tag_separator: str = "\n"
    call_separator: str = "\n"
    separator_word: str = ""
    wrapper_word: str = ""
    reasoning_words: tuple[str, ...] = ("think",)

    def build_tags(self, word: str) -> tuple[str, str]:
        """Return the start tag and the end tag with this word."""
        return f"<{self.word_prefix}{word}{self.word_suffix}>", f"</{self.word_prefix}{word}{self.word_suffix}>"

    @property
    def name_suffix(self) -> str:
        """The text after a tool's name: the start tag with the separator word, or ""."""
        return self.build_tags(self.separator_word)[0] if self.separator_word else ""


def _build_blocks(tags: TagSpelling) -> list[Block]:
    """Return the blocks of a format with these tags."""
    start_marker, end_marker = tags.build_tags("tool_call")
    key_tags, value_tags = tags.build_tags("arg_key"), tags.build_tags("arg_value")
    type_pattern = r"(?:{}(?P<kind>\w{{1,32}}){}\s{{0,64}})?".format(*map(re.escape, tags.build_tags("arg_type")))
    separator_pattern = re.escape(tags.build_tags("tool_sep")[0])
    tagged_reader = TaggedReader(
        re.compile(rf"\s*(?P<name>[\w.:/-]+)\s*(?:{separator_pattern}\s*)?(?=<|$)"),
        re.compile(
            rf"{re.escape(key_tags[0])}(?P<key>[^<]{{1,256}}){re.escape(key_tags[1])}\s{{0,64}}{type_pattern}(?P<opened>{re.escape(value_tags[0])})?"
        ),
        value_tags[1],
    )
    reader = FirstMatchReader((tagged_reader, NamedJsonReader(parse_name_heading), AttributeReader()))
    wrapper = tags.build_tags(tags.wrapper_word)[0] if tags.wrapper_word else ""
    return [
        *([] if tags.word_prefix or tags.word_suffix else [JSON_BLOCK]),
        *([Block(wrapper, JsonCallReader(), body_starts=(start_marker,), is_wrapper=True)] if wrapper else []),
        Block(start_marker, reader, (end_marker,), (start_marker,), value_markers=(key_tags[0], value_tags[1])),
    ]


def _build_layout(tags: TagSpelling) -> CallLayout:
    start_marker, end_marker = tags.build_tags("tool_call")
    key_tags, value_tags = tags.build_tags("arg_key"), tags.build_tags("arg_value")
    calls_start, calls_end = tags.build_tags(tags.wrapper_word) if tags.wrapper_word else ("", "")
    call_writer = build_tagged_call_writer(
        f"{start_marker}{{name}}{tags.name_suffix}{tags.tag_separator}",
        f"{key_tags[0]}{{key}}{key_tags[1]}{tags.tag_separator}{value_tags[0]}",
        f"{value_tags[1]}{tags.tag_separator}",
        end_marker,
    )
    return CallLayout(
        call_writer, calls_start and f"{calls_start}\n", tags.call_separator, calls_end and f"\n{calls_end}"
    )


def _build_instruction(tags: TagSpelling) -> str:
    start_marker, end_marker = tags.build_tags("tool_call")
    key_tags, value_tags = tags.build_tags("arg_key"), tags.build_tags("arg_value")
    tag_separator = tags.tag_separator
    argument = f"{key_tags[0]}key{key_tags[1]}{tag_separator}{value_tags[0]}value{value_tags[1]}{tag_separator}"
    call = f"{start_marker}name{tags.name_suffix}{tag_separator}{argument}{end_marker}"
    calls_start, calls_end = tags.build_tags(tags.wrapper_word) if tags.wrapper_word else ("", "")
    calls = f"{calls_start}\n{call}\n{calls_end}" if tags.wrapper_word else call
    return f"\n\nTo call one, write:\n{calls}"


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
    call_tags = [spelling.build_tags("tool_call") for spelling in spellings]
    value_tags = [spelling.build_tags("arg_value") for spelling in spellings]
    wrapper_ends = [spelling.build_tags(spelling.wrapper_word)[1] for spelling in spellings if spelling.wrapper_word]
    forbidden_texts = (
        *(end_marker for _, end_marker in call_tags),
        *(start_marker for start_marker, _ in call_tags),
        *(tag for tag_pair in value_tags for tag in tag_pair),
    )
    return TextFormat(
        name,
        tuple(block for spelling in spellings for block in _build_blocks(spelling)),
        _build_layout(tags),
        prompt,
        dropped_tokens=(*(end_marker for _, end_marker in call_tags), *wrapper_ends, *end_tokens),
        reasoning_markers=tuple(
            spelling.build_tags(word) for spelling in spellings for word in spelling.reasoning_words
        ),
        build_bare_blocks=build_bare_json_blocks,
        round_trip_limits=RoundTripLimits(
            r"[\w.:/-]+",
            r"[^<\s]([^<]*[^<\s])?",
            (*forbidden_texts, *(spelling.build_tags("arg_key")[0] for spelling in spellings)),
            needs_schema=True,
        ),
    )


def _build_prompt_layout(tags: TagSpelling) -> PromptLayout:
    """Build the prompt layout of GLM 4.5 with these tags."""
    return PromptLayout(
        build_tool_lines_writer(
            "# Tools\n\nThese functions can be called:\n<tools>\n", f"\n</tools>{_build_instruction(tags)}"
        ),
        build_enclosed_result_writer("<tool_response>\n", "\n</tool_response>"),
        results_before="<|observation|>\n",
    )


_GLM, _GLM47, _LONGCAT = TagSpelling(), TagSpelling(tag_separator="", call_separator=""), TagSpelling("longcat_")
_K2_HORIZON = TagSpelling("ifm|", wrapper_word="tool_calls", reasoning_words=("think", "think_fast", "think_faster"))
_HUNYUAN = TagSpelling(word_suffix=":opensource", separator_word="tool_sep", wrapper_word="tool_calls")
_RESULTS_TAGS, _RESULT_TAGS = _HUNYUAN.build_tags("tool_responses"), _HUNYUAN.build_tags("tool_response")

GLM45 = _build_format("glm45", _GLM, _build_prompt_layout(_GLM))
GLM47 = _build_format(
    "glm47",
    _GLM47,
    replace(
        _build_prompt_layout(_GLM47),
        write_result=build_enclosed_result_writer("<tool_response>", "</tool_response>"),
        results_before="<|observation|>",
        results_between="",
    ),
)
LONGCAT = _build_format("longcat", _LONGCAT, _build_prompt_layout(_LONGCAT))
K2_HORIZON = _build_format(
    "k2_horizon",
    _K2_HORIZON,
    PromptLayout(
        build_tool_list_writer(
            "# Tools\nThese tools can be called:\n\n<ifm|tools>\n", f"\n</ifm|tools>{_build_instruction(_K2_HORIZON)}"
        ),
        build_enclosed_result_writer("", ""),
    ),
    end_tokens=("<|ifm|im_end|>",),
)
HUNYUAN_V3 = _build_format(
    "hunyuan_v3",
    _HUNYUAN,
    PromptLayout(
        _build_prompt_layout(_HUNYUAN).write_tools,
        build_enclosed_result_writer(f"{_RESULT_TAGS[0]}\n", f"\n{_RESULT_TAGS[1]}"),
        results_before=f"{_RESULTS_TAGS[0]}\n",
        results_after=f"\n{_RESULTS_TAGS[1]}",
    ),
    other_spellings=(replace(_HUNYUAN, word_suffix=""),),
    end_tokens=("<｜hy_eos:opensource｜>",),
)
