from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.grammar_matcher import GrammarMatcher
from tests.engine.constraints.random_schemas import SCHEMAS, values
from toolbench.engine import formats
from toolbench.engine.constraints.allowed_answers import AllowedAnswers, build_allowed_answers, build_answer_schema
from toolbench.engine.constraints.format_grammar import find_format_grammar
from toolbench.engine.constraints.grammars import build_gbnf, build_llguidance
from toolbench.engine.constraints.schema_support import GBNF_SUPPORT, LLGUIDANCE_SUPPORT, SizeLimits
from toolbench.engine.errors import PlanError
from toolbench.engine.formats.types import TextCall

LIMITS = SizeLimits(max_string_length=40, max_items=4)
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"properties": {key: {"type": "integer"}}}}}
    for name, key in (("f", "x"), ("g", "y"))
]
JSON_FORMATS = (
    "hermes",
    "generic_xml",
    "llama3_json",
    "mistral_v13",
    "phi4",
    "kimi_k2",
    "fenced_json",
    "functionary_v31",
)


def build_answers(support: Any, *, final: bool = True, max_calls: int = 1) -> AllowedAnswers:
    return build_allowed_answers(TOOLS, allows_final=final, support=support, limits=LIMITS, max_calls=max_calls)


def build_matchers(format: str, *, final: bool = True, max_calls: int = 1) -> list[GrammarMatcher]:
    """Return matchers of the same answers in GBNF and in llguidance."""
    return [
        GrammarMatcher(build_gbnf(build_answers(GBNF_SUPPORT, final=final, max_calls=max_calls), LIMITS, format)),
        GrammarMatcher(
            build_llguidance(build_answers(LLGUIDANCE_SUPPORT, final=final, max_calls=max_calls), LIMITS, format)
        ),
    ]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), schema=SCHEMAS)
def test_llguidance_enforces_every_supported_keyword(data: st.DataObject, schema: Any) -> None:
    parameters = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    tool = {"function": {"name": "f", "parameters": parameters}}
    allowed_answers = build_allowed_answers([tool], allows_final=False, support=LLGUIDANCE_SUPPORT, limits=LIMITS)
    matcher, answer_schema = (
        GrammarMatcher(build_llguidance(allowed_answers, LIMITS)),
        build_answer_schema(allowed_answers),
    )
    for _ in range(4):
        value = data.draw(values(schema))
        if matcher.accepts_call("f", {"a": value}):
            assert jsonschema_rs.is_valid(answer_schema, {"name": "f", "arguments": {"a": value}})


def test_grammar_enforces_arguments_by_tool_name() -> None:
    for matcher in build_matchers(""):
        assert matcher.accepts('{"name":"f","arguments":{"x":1}}')
        assert not matcher.accepts('{"name":"f","arguments":{"y":1}}')
        assert not matcher.accepts('{"name":"h","arguments":{}}')


def test_grammar_accepts_final_text_only_if_allowed() -> None:
    assert [matcher.accepts('{"final":"Done."}') for matcher in build_matchers("")] == [True, True]
    assert [matcher.accepts('{"final":"Done."}') for matcher in build_matchers("", final=False)] == [False, False]


def test_grammar_limits_number_of_calls_in_a_list() -> None:
    call = '{"name":"f","arguments":{}}'
    for matcher in build_matchers("", max_calls=2):
        accepted = [matcher.accepts(f'{{"calls":[{",".join([call] * count)}]}}') for count in (0, 1, 2, 3)]
        assert accepted == [False, True, True, False]
        assert not matcher.accepts(call)


@pytest.mark.parametrize("format", JSON_FORMATS)
def test_format_grammar_accepts_rendered_calls_that_read_back_equal(format: str) -> None:
    call = TextCall("g", {"y": -7})
    call_text = formats.render([call], format=format)
    parsed_calls = formats.parse(call_text, format=format, tools=TOOLS).calls
    assert [(item.name, item.arguments) for item in parsed_calls] == [("g", {"y": -7})]
    for matcher in build_matchers(format, final=False):
        assert matcher.accepts(call_text.replace(": -7", ":-7").replace("{ ", "{"))
        assert not matcher.accepts(call_text.replace("-7", '"-7"').replace(": ", ":"))
        assert not matcher.accepts("Hello.")


@pytest.mark.parametrize("format", ["hermes", "generic_xml", "functionary_v31"])
def test_format_grammar_repeats_calls_and_accepts_other_text(format: str) -> None:
    call_text = formats.render([TextCall("f", {}), TextCall("g", {})], format=format)
    for matcher in build_matchers(format, max_calls=2):
        assert matcher.accepts(call_text)
        assert not matcher.accepts(call_text + call_text)
        assert matcher.accepts("It rains.")
        assert not matcher.accepts("<tool")


@pytest.mark.parametrize("format", ["hermes", "mistral_v2", "phi4", "deepseek_v31", "functionary_v32"])
def test_format_grammar_accepts_text_before_calls_that_parse_finds(format: str) -> None:
    call_text = formats.render([TextCall("g", {"y": -7})], format=format).replace(": -7", ":-7")
    for matcher in build_matchers(format):
        for prose in ("It `rains`: I look.\n", 'a {x}, "b\\n":\n'):
            assert matcher.accepts(prose + call_text)
            assert [call.arguments for call in formats.parse(prose + call_text, format=format, tools=TOOLS).calls] == [
                {"y": -7}
            ]
            assert not matcher.accepts(prose + call_text.replace("-7", '"-7"'))
            assert not matcher.accepts(prose + call_text[:-1])
        assert matcher.accepts("```py\nf()\n```")
        assert not matcher.accepts(f"```\n{call_text}")


@pytest.mark.parametrize("format", ["llama3_json", "xlam"])
def test_format_grammar_refuses_text_before_unmarked_calls(format: str) -> None:
    call_text = formats.render([TextCall("g", {"y": -7})], format=format).replace(": -7", ":-7")
    for matcher in build_matchers(format):
        assert [matcher.accepts(text) for text in (call_text, "It rains.", f"It rains. {call_text}")] == [
            True,
            True,
            False,
        ]


@pytest.mark.parametrize("format", ["pythonic", "qwen3_coder", "gemma4", "nonsense"])
def test_format_without_json_arguments_has_no_grammar(format: str) -> None:
    with pytest.raises(PlanError):
        find_format_grammar(format)


def test_format_grammar_refuses_answers_it_cannot_distinguish() -> None:
    with pytest.raises(PlanError, match="depends on its position"):
        build_gbnf(build_answers(GBNF_SUPPORT, final=False, max_calls=2), LIMITS, "kimi_k2")
    with pytest.raises(PlanError, match="free text"):
        build_llguidance(build_answers(LLGUIDANCE_SUPPORT), LIMITS, "react")
