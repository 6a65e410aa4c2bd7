import json
import re
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from benchmarks.grammar_matcher import GrammarMatcher
from tests.engine.constraints.random_schemas import SCHEMAS, values
from toolbench.engine.constraints.allowed_answers import build_allowed_answers, build_answer_schema
from toolbench.engine.constraints.grammars import build_gbnf
from toolbench.engine.constraints.schema_support import GBNF_SUPPORT, SizeLimits

LIMITS = SizeLimits(max_string_length=40, max_items=4)


def compile_schema(schema: Any, limits: SizeLimits = LIMITS) -> tuple[GrammarMatcher, Any]:
    """Return the grammar of a tool `f` with an argument `a` of this schema, and the schema of its answers."""
    parameters = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    answers = build_allowed_answers([tool], allows_final=False, support=GBNF_SUPPORT, limits=limits)
    return GrammarMatcher(build_gbnf(answers, limits)), build_answer_schema(answers)


def accepts_value(schema: Any, value: Any, limits: SizeLimits = LIMITS) -> bool:
    return compile_schema(schema, limits)[0].accepts_call("f", {"a": value})


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), schema=SCHEMAS)
def test_grammar_accepts_exactly_the_values_of_its_schema(data: st.DataObject, schema: Any) -> None:
    matcher, answer_schema = compile_schema(schema)
    for _ in range(4):
        value = data.draw(values(schema))
        allowed = jsonschema_rs.is_valid(answer_schema, {"name": "f", "arguments": {"a": value}})
        event(f"allowed: {allowed}")
        assert matcher.accepts_call("f", {"a": value}) is allowed


def test_grammar_of_very_long_string_is_small() -> None:
    tool = {"function": {"name": "f", "parameters": {"properties": {"a": {"type": "string", "maxLength": 2**31 - 1}}}}}
    answers = build_allowed_answers([tool], allows_final=False, support=GBNF_SUPPORT, limits=LIMITS)
    assert len(build_gbnf(answers, LIMITS)) < 100_000


@settings(max_examples=60, deadline=None)
@given(
    low=st.none() | st.integers(-2000, 2000), high=st.none() | st.integers(-2000, 2000), value=st.integers(-2100, 2100)
)
def test_grammar_enforces_integer_bounds(low: int | None, high: int | None, value: int) -> None:
    bounds = {"minimum": low, "maximum": high}
    schema = {"type": "integer", **{name: bound for name, bound in bounds.items() if bound is not None}}
    if low is None or high is None or low <= high:
        assert accepts_value(schema, value) is jsonschema_rs.is_valid(schema, value)


@pytest.mark.parametrize("length", [0, 1, 1023, 1024, 1025, 2047, 2048, 3000, 3001])
def test_bound_above_llama_cpp_limit_is_composed_of_smaller_ones(length: int) -> None:
    schema = {"type": "string", "minLength": 1, "maxLength": 3000}
    grammar = compile_schema(schema, SizeLimits())[0]
    assert grammar.accepts_call("f", {"a": "x" * length}) is (1 <= length <= 3000)


def test_repetitions_are_bounded_and_within_llama_cpp_limit() -> None:
    parameters = {"properties": {"s": {"type": "string"}, "p": {"pattern": "^a+b*$"}, "l": {"type": "array"}, "o": {}}}
    tool = {"function": {"name": "f", "parameters": parameters}}
    text = build_gbnf(
        build_allowed_answers([tool], allows_final=True, support=GBNF_SUPPORT, limits=SizeLimits()), SizeLimits()
    )
    counts = [int(part.split("}")[0].split(",")[-1]) for part in text.split("{") if part[0].isdigit()]
    assert counts
    assert max(counts) <= 1024
    unquoted = text.replace('"{"', "").replace('"-"', "").replace("[+\\x2D]", "")
    assert not any(f"{symbol}{repeat}" in unquoted for symbol in ")]" for repeat in "*+")


def test_character_classes_avoid_syntax_that_xgrammar_misreads() -> None:
    """XGrammar reads any number of digits after an escape, and supports only ASCII in a negated class."""
    schema = {"type": "string", "pattern": "^[^b]\\W[ a-]é$"}
    assert [accepts_value(schema, text) for text in ("é.aé", "b.aé", "c -é", "c.bé")] == [True, False, True, False]
    tool = {"function": {"name": "f", "parameters": {"properties": {"a": schema}}}}
    text = build_gbnf(
        build_allowed_answers([tool], allows_final=True, support=GBNF_SUPPORT, limits=SizeLimits()), SizeLimits()
    )
    assert not re.search(r"\\x[0-9A-F]{2}[0-9a-fA-F]", text)
    assert all(others.isascii() for others in re.findall(r"\[\^([^\]]*)\]", text))


def test_open_pattern_repetition_is_limited_by_max_length() -> None:
    schema = {"type": "string", "pattern": "^a+$", "maxLength": 3}
    assert [accepts_value(schema, "a" * count) for count in (0, 1, 3, 5)] == [False, True, True, False]


@pytest.mark.parametrize(
    ("format_name", "good", "bad"),
    [
        ("date", ["2024-02-28", "1999-12-31"], ["2024-02-30", "2024-13-01", "2024-1-1"]),
        ("time", ["23:59:59Z", "00:00:00.5+02:00"], ["24:00:00Z", "12:00:00"]),
        ("date-time", ["2024-02-28T12:00:00Z"], ["2024-02-28 12:00:00Z"]),
        ("uuid", ["123e4567-e89b-12d3-a456-426614174000"], ["123e4567e89b12d3a456426614174000"]),
        ("ipv4", ["0.0.0.0", "255.10.9.1"], ["256.0.0.1", "1.2.3", "01.2.3.4"]),
    ],
)
def test_grammar_enforces_string_formats(format_name: str, good: list[str], bad: list[str]) -> None:
    grammar, _ = compile_schema({"type": "string", "format": format_name})
    validator = jsonschema_rs.validator_for({"type": "string", "format": format_name}, validate_formats=True)
    for text in good:
        assert grammar.accepts_call("f", {"a": text})
        assert validator.is_valid(text)
    assert not any(grammar.accepts_call("f", {"a": text}) for text in bad)


@pytest.mark.parametrize("escape", ["\\n", '\\"', "\\\\", "\\/", "\\u00e9", "\\ud7ff"])
def test_grammar_accepts_json_escapes_in_strings(escape: str) -> None:
    grammar, _ = compile_schema({"type": "string"})
    assert grammar.accepts(f'{{"name": "f", "arguments": {{"a": "{escape}"}}}}')


@pytest.mark.parametrize("inside", ["\\x", "\\ud800", "\n", "\\u12", '"'])
def test_grammar_refuses_invalid_json_strings(inside: str) -> None:
    grammar, _ = compile_schema({"type": "string"})
    assert not grammar.accepts(f'{{"name":"f","arguments":{{"a":"{inside}"}}}}')


def test_grammar_of_tuple_without_items_accepts_only_the_empty_list() -> None:
    schema = {"type": "array", "prefixItems": [{"type": "null"}], "maxItems": 0}
    assert [accepts_value(schema, value) for value in ([], [None])] == [True, False]


def test_grammar_limits_white_space_between_tokens() -> None:
    call_text = json.dumps({"name": "f", "arguments": {"a": [1, 2]}}, indent=1)
    schema = {"type": "array", "items": {"type": "integer"}}
    assert not compile_schema(schema, SizeLimits(max_whitespace=1))[0].accepts(call_text)
    assert compile_schema(schema, SizeLimits(max_whitespace=4))[0].accepts(call_text)
    assert not compile_schema(schema, SizeLimits(max_whitespace=0))[0].accepts(
        json.dumps({"name": "f", "arguments": {"a": []}})
    )


def test_additional_key_differs_from_named_properties() -> None:
    schema = {"type": "object", "properties": {"ab": {"type": "null"}}, "additionalProperties": {"type": "integer"}}
    grammar, _ = compile_schema(schema)
    for name in ("a", "abc", "b", "", "ü"):
        assert grammar.accepts_call("f", {"a": {name: 1}})
        assert grammar.accepts_call("f", {"a": {"ab": None, name: 1}})
    assert not grammar.accepts_call("f", {"a": {"ab": 1}})
    assert not grammar.accepts('{"name":"f","arguments":{"a":{"a\\u0062":1}}}')
