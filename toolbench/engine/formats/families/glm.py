"""GLM 4.5 to 4.7 and its kin: a name, then pairs of key and value tags. Poolside writes as GLM 4.5 does, Ling 3 as
GLM 4.7; LongCat, K2-Horizon and Hunyuan 3 have tags of their own (the last three as vLLM's parsers read them)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from toolbench.engine.formats.definition import Block, Format, Holds, Layout, Prompt
from toolbench.engine.formats.families.generic_json import bare_json
from toolbench.engine.formats.families.hermes import JSON_BLOCK, name_alone
from toolbench.engine.formats.json_calls import JsonCalls, NamedJson
from toolbench.engine.formats.tagged_calls import Attributes, FirstOf, Tagged
from toolbench.engine.formats.writing import enclosed, tagged_call, tool_lines, tool_list


@dataclass(frozen=True, slots=True)
class Tags:
    """How a family spells its tags: `mark` before a tag's word and `tail` behind it. `line` stands between tags,
    `between` between calls, `separator` behind the tool's name, and a tag of the word `wrapper` around all calls."""

    mark: str = ""
    tail: str = ""
    line: str = "\n"
    between: str = "\n"
    separator: str = ""
    wrapper: str = ""
    thoughts: tuple[str, ...] = ("think",)

    def pair(self, word: str) -> tuple[str, str]:
        """A tag and its end."""
        return f"<{self.mark}{word}{self.tail}>", f"</{self.mark}{word}{self.tail}>"

    @property
    def behind(self) -> str:
        """What follows a tool's name."""
        return self.pair(self.separator)[0] if self.separator else ""


def _blocks(tags: Tags) -> list[Block]:
    opener, closer = tags.pair("tool_call")
    key, value = tags.pair("arg_key"), tags.pair("arg_value")
    kind = r"(?:{}(?P<kind>\w{{1,32}}){}\s{{0,64}})?".format(*map(re.escape, tags.pair("arg_type")))
    separator = re.escape(tags.pair("tool_sep")[0])
    pairs = Tagged(
        re.compile(rf"\s*(?P<name>[\w.:/-]+)\s*(?:{separator}\s*)?(?=<|$)"),
        re.compile(
            rf"{re.escape(key[0])}(?P<key>[^<]{{1,256}}){re.escape(key[1])}\s{{0,64}}{kind}(?P<opened>{re.escape(value[0])})?"
        ),
        value[1],
    )
    read = FirstOf((pairs, NamedJson(name_alone), Attributes()))
    around = tags.pair(tags.wrapper)[0] if tags.wrapper else ""
    return [
        *([] if tags.mark or tags.tail else [JSON_BLOCK]),
        *([Block(around, JsonCalls(), starts=(opener,), wrapper=True)] if around else []),
        Block(opener, read, (closer,), (opener,), guard=(key[0], value[1])),
    ]


def _layout(tags: Tags) -> Layout:
    opener, closer = tags.pair("tool_call")
    key, value = tags.pair("arg_key"), tags.pair("arg_value")
    before, after = tags.pair(tags.wrapper) if tags.wrapper else ("", "")
    written = tagged_call(
        f"{opener}{{name}}{tags.behind}{tags.line}",
        f"{key[0]}{{key}}{key[1]}{tags.line}{value[0]}",
        f"{value[1]}{tags.line}",
        closer,
    )
    return Layout(written, before and f"{before}\n", tags.between, after and f"\n{after}")


def _how(tags: Tags) -> str:
    opener, closer = tags.pair("tool_call")
    key, value = tags.pair("arg_key"), tags.pair("arg_value")
    line = tags.line
    pair = f"{key[0]}key{key[1]}{line}{value[0]}value{value[1]}{line}"
    before, after = (f"{tags.pair(tags.wrapper)[0]}\n", f"\n{tags.pair(tags.wrapper)[1]}") if tags.wrapper else ("", "")
    return f"\n\nTo call one, write:\n{before}{opener}name{tags.behind}{line}{pair}{closer}{after}"


_ENDS = ("<|observation|>", "<|user|>", "<|endoftext|>")


def _format(name: str, tags: Tags, prompt: Prompt, *, read: Sequence[Tags] = (), ends: Sequence[str] = _ENDS) -> Format:
    """`read` are other spellings that are read too; `ends` are tokens that end an answer."""
    spelled = (tags, *read)
    calls, values = [one.pair("tool_call") for one in spelled], [one.pair("arg_value") for one in spelled]
    wrapped = [one.pair(one.wrapper)[1] for one in spelled if one.wrapper]
    never = (*(end for _, end in calls), *(one for one, _ in calls), *(tag for pair in values for tag in pair))
    return Format(
        name,
        tuple(block for one in spelled for block in _blocks(one)),
        _layout(tags),
        prompt,
        dropped=(*(end for _, end in calls), *wrapped, *ends),
        reasoning=tuple(one.pair(word) for one in spelled for word in one.thoughts),
        bare=bare_json,
        holds=Holds(
            r"[\w.:/-]+",
            r"[^<\s]([^<]*[^<\s])?",
            (*never, *(one.pair("arg_key")[0] for one in spelled)),
            schema=True,
        ),
    )


def _told(tags: Tags) -> Prompt:
    """Tools and results as GLM 4.5 has them."""
    return Prompt(
        tool_lines("# Tools\n\nThese functions can be called:\n<tools>\n", f"\n</tools>{_how(tags)}"),
        enclosed("<tool_response>\n", "\n</tool_response>"),
        results_before="<|observation|>\n",
        role="observation",
    )


_GLM, _GLM47, _LONGCAT = Tags(), Tags(line="", between=""), Tags("longcat_")
_IFM = Tags("ifm|", wrapper="tool_calls", thoughts=("think", "think_fast", "think_faster"))
_HUNYUAN = Tags(tail=":opensource", separator="tool_sep", wrapper="tool_calls")
_RESPONSES, _RESPONSE = _HUNYUAN.pair("tool_responses"), _HUNYUAN.pair("tool_response")

GLM45 = _format("glm45", _GLM, _told(_GLM))
GLM47 = _format(
    "glm47",
    _GLM47,
    replace(
        _told(_GLM47),
        result=enclosed("<tool_response>", "</tool_response>"),
        results_before="<|observation|>",
        results_between="",
    ),
)
LONGCAT = _format("longcat", _LONGCAT, _told(_LONGCAT))
K2_HORIZON = _format(
    "k2_horizon",
    _IFM,
    Prompt(
        tool_list("# Tools\nThese tools can be called:\n\n<ifm|tools>\n", f"\n</ifm|tools>{_how(_IFM)}"),
        enclosed("", ""),
    ),
    ends=("<|ifm|im_end|>",),
)
HUNYUAN_V3 = _format(
    "hunyuan_v3",
    _HUNYUAN,
    Prompt(
        _told(_HUNYUAN).tools,
        enclosed(f"{_RESPONSE[0]}\n", f"\n{_RESPONSE[1]}"),
        results_before=f"{_RESPONSES[0]}\n",
        results_after=f"\n{_RESPONSES[1]}",
    ),
    read=(replace(_HUNYUAN, tail=""),),
    ends=("<｜hy_eos:opensource｜>",),
)
