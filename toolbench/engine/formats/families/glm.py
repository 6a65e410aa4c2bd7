"""GLM 4.5 to 4.7 and its kin: a name, then pairs of key and value tags. Poolside writes as GLM 4.5 does, Ling 3 as
GLM 4.7; LongCat, K2-Horizon and Hunyuan 3 have tags of their own (the last three as vLLM's parsers read them)."""

import re

from toolbench.engine.formats.definition import Block, Format, Holds, Layout, Prompt
from toolbench.engine.formats.families.generic_json import bare_json
from toolbench.engine.formats.families.hermes import JSON_BLOCK, name_alone
from toolbench.engine.formats.json_calls import JsonCalls, NamedJson
from toolbench.engine.formats.tagged_calls import Attributes, FirstOf, Tagged
from toolbench.engine.formats.writing import enclosed, tagged_call, tool_lines

SEPARATOR = "<tool_sep>"


def _block(mark: str) -> Block:
    opener, closer, value, value_end = _tags(mark)
    tag = re.escape(mark)
    kind = rf"(?:<{tag}arg_type>(?P<kind>\w{{1,32}})</{tag}arg_type>\s{{0,64}})?"
    pairs = Tagged(
        re.compile(rf"\s*(?P<name>[\w.:/-]+)\s*(?:{SEPARATOR}\s*)?(?=<|$)"),
        re.compile(rf"<{tag}arg_key>(?P<key>[^<]{{1,256}})</{tag}arg_key>\s{{0,64}}{kind}{re.escape(value)}"),
        value_end,
    )
    read = FirstOf((pairs, NamedJson(name_alone), Attributes()))
    return Block(opener, read, (closer,), (opener,), guard=(f"<{mark}arg_key>", value_end))


def _tags(mark: str) -> tuple[str, str, str, str]:
    return f"<{mark}tool_call>", f"</{mark}tool_call>", f"<{mark}arg_value>", f"</{mark}arg_value>"


def _format(
    name: str, mark: str, line: str, *, behind: str = "", wrapper: str = "", thoughts: tuple[str, ...] = ("think",)
) -> Format:
    """`behind` stands behind the name, `wrapper` is the tag around all calls."""
    opener, closer, value, value_end = _tags(mark)
    before, after = f"<{wrapper}>", f"</{wrapper}>"
    around = [Block(before, JsonCalls(), starts=(opener,), wrapper=True)] if wrapper else []
    key = f"<{mark}arg_key>{{key}}</{mark}arg_key>{line}{value}"
    return Format(
        name,
        (*([] if mark else [JSON_BLOCK]), *around, _block(mark)),
        Layout(
            tagged_call(f"{opener}{{name}}{behind}{line}", key, f"{value_end}{line}", closer),
            f"{before}\n" if wrapper else "",
            after=f"\n{after}" if wrapper else "",
        ),
        Prompt(
            tool_lines(
                "# Tools\n\nThese functions can be called:\n<tools>\n",
                f"\n</tools>\n\nTo call one, write:\n{opener}name{behind}{line}<{mark}arg_key>key</{mark}arg_key>{line}"
                f"{value}value{value_end}{line}{closer}",
            ),
            enclosed("<tool_response>\n", "\n</tool_response>"),
            results_before="<|observation|>\n",
            role="observation",
        ),
        dropped=(closer, *([after] if wrapper else []), "<|observation|>", "<|user|>"),
        reasoning=tuple((f"<{mark}{word}>", f"</{mark}{word}>") for word in thoughts),
        bare=bare_json,
        holds=Holds(
            r"[\w.:/-]+", r"[^<\s]([^<]*[^<\s])?", (closer, opener, value, value_end, f"<{mark}arg_key>"), schema=True
        ),
    )


GLM45 = _format("glm45", "", "\n")
GLM47 = _format("glm47", "", "")
LONGCAT = _format("longcat", "longcat_", "\n")
K2_HORIZON = _format(
    "k2_horizon", "ifm|", "\n", wrapper="ifm|tool_calls", thoughts=("think", "think_fast", "think_faster")
)
HUNYUAN_V3 = _format("hunyuan_v3", "", "\n", behind=SEPARATOR, wrapper="tool_calls")
