"""Cohere's Command 4: tags in which markup is escaped, with an id for every call, as Cohere's own parser reads them."""

import re
from xml.sax.saxutils import escape

from toolbench.engine.formats.definition import Block, Format, Holds, Layout, Prompt
from toolbench.engine.formats.families.cohere import COHERE
from toolbench.engine.formats.families.generic_json import bare_json
from toolbench.engine.formats.tagged_calls import Tagged
from toolbench.engine.formats.values import TextCall
from toolbench.engine.formats.writing import spaced_json, spelled

TEXT = ("<|START_TEXT|>", "<|END_TEXT|>")
ALL, ALL_END = "<cofl:tool_calls>", "</cofl:tool_calls>"
CALL, CALL_END = "<cofl:tool_call ", "</cofl:tool_call>"
_VALUE, _VALUE_END = "<cofl:tool_param ", "</cofl:tool_param>"
_KINDS = {"true": "string", "false": "integer|number|boolean|null|array|object|string"}


def _call(call: TextCall, place: int) -> str:
    values = (
        f'  {_VALUE}name="{key}" string="{"true" if isinstance(value, str) else "false"}">'
        f"{escape(spelled(value))}{_VALUE_END}\n"
        for key, value in call.arguments.items()
    )
    return f'{CALL}id="{call.id or place}" name="{call.name}">\n{"".join(values)}{CALL_END}'


def _result(call: TextCall, content: str, place: int) -> str:
    """A call's one item: its content under that key, as JSON in which markup is escaped."""
    item = f'<cofl:tool_result_item index="0">{escape(spaced_json({"content": content}))}</cofl:tool_result_item>'
    return f'<cofl:tool_result id="{call.id}" is_error="false">{item}</cofl:tool_result>'


COMMAND4 = Format(
    "command4",
    (
        Block(
            CALL,
            Tagged(
                re.compile(r'\s*(?:id="(?P<id>[^"]*)"\s+)?name="(?P<name>[^"]+)"\s*>'),
                re.compile(rf'{_VALUE}name="(?P<key>[^"]{{1,256}})"(?: string="(?P<kind>true|false)")?\s*>'),
                _VALUE_END,
                kinds=_KINDS,
                escaped=True,
            ),
            (CALL_END,),
            (CALL, ALL_END),
            guard=(_VALUE, _VALUE_END),
        ),
    ),
    Layout(_call, f"{ALL}\n", "\n", f"\n{ALL_END}"),
    Prompt(COHERE.prompt.tools, _result, "<cofl:tool_results>", "", "</cofl:tool_results>"),
    dropped=(ALL, ALL_END, CALL_END, *TEXT, "<|END_OF_TURN_TOKEN|>"),
    reasoning=COHERE.reasoning,
    bare=bare_json,
    holds=Holds(r'[^\s<>&"]+', r'[^\s<>&"]+', ids=True),
)
