"""GLM 4.5 to 4.7 and LongCat: a name, then pairs of key and value tags."""

import re

from toolbench.engine.formats.definition import Block, Format, Holds, Layout, Prompt
from toolbench.engine.formats.families.generic_json import bare_json
from toolbench.engine.formats.families.hermes import JSON_BLOCK, name_alone
from toolbench.engine.formats.json_calls import NamedJson
from toolbench.engine.formats.tagged_calls import Attributes, FirstOf, Tagged
from toolbench.engine.formats.writing import enclosed, tagged_call, tool_lines


def _block(mark: str) -> Block:
    opener, closer, value, value_end = _tags(mark)
    pairs = Tagged(
        re.compile(r"\s*(?P<name>[\w.:/-]+)\s*(?=<|$)"),
        re.compile(rf"<{mark}arg_key>(?P<key>[^<]{{1,256}})</{mark}arg_key>\s{{0,64}}{value}"),
        value_end,
    )
    read = FirstOf((pairs, NamedJson(name_alone), Attributes()))
    return Block(opener, read, (closer,), (opener,), guard=(f"<{mark}arg_key>", value_end))


def _tags(mark: str) -> tuple[str, str, str, str]:
    return f"<{mark}tool_call>", f"</{mark}tool_call>", f"<{mark}arg_value>", f"</{mark}arg_value>"


def _format(name: str, mark: str, line: str) -> Format:
    opener, closer, value, value_end = _tags(mark)
    key = f"<{mark}arg_key>{{key}}</{mark}arg_key>{line}{value}"
    return Format(
        name,
        (JSON_BLOCK, _block(mark)) if not mark else (_block(mark),),
        Layout(tagged_call(f"{opener}{{name}}{line}", key, f"{value_end}{line}", closer)),
        Prompt(
            tool_lines(
                "# Tools\n\nThese functions can be called:\n<tools>\n",
                f"\n</tools>\n\nTo call one, write:\n{opener}name{line}<{mark}arg_key>key</{mark}arg_key>{line}"
                f"{value}value{value_end}{line}{closer}",
            ),
            enclosed("<tool_response>\n", "\n</tool_response>"),
            results_before="<|observation|>\n",
            role="observation",
        ),
        dropped=(closer, "<|observation|>", "<|user|>"),
        reasoning=((f"<{mark}think>", f"</{mark}think>"),),
        bare=bare_json,
        holds=Holds(
            r"[\w.:/-]+", r"[^<\s]([^<]*[^<\s])?", (closer, opener, value, value_end, "<arg_key>"), schema=True
        ),
    )


GLM45 = _format("glm45", "", "\n")
GLM47 = _format("glm47", "", "")
LONGCAT = _format("longcat", "longcat_", "\n")
