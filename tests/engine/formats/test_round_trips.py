"""Rendered calls are parsed to the same calls."""

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.engine.formats.golden_cases import list_markers, parse_in_chunks
from toolbench.engine.formats import TextCall, is_round_trip_safe, list_format_names, parse, render
from toolbench.engine.formats.registry import get_format

FORMAT_NAMES = [name for name in list_format_names() if name != "auto"]
MARKED_FORMAT_NAMES = [
    name for name in FORMAT_NAMES if get_format(name).blocks or get_format(name).build_named_blocks(["f"])
]

_MARKERS = st.lists(st.sampled_from(list_markers()), min_size=1, max_size=3).map(" ".join)
_TEXTS = (
    st.text(max_size=12)
    | _MARKERS
    | st.sampled_from(
        [
            "42",
            "true",
            "null",
            '["a"]',
            "it's",
            'say "x"',
            "a\n\nb",
            " x ",
            "\\n",
            "{",
            "</b>",
            "`",
            "```",
            "<think>",
            "}]",
        ]
    )
)
_SCALARS = st.none() | st.booleans() | st.integers(-(10**18), 10**18) | st.floats(allow_nan=False, allow_infinity=False)
_VALUES = st.recursive(
    _SCALARS | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc_é", min_size=1), inner, max_size=3),
    max_leaves=5,
)
_KEYS = st.sampled_from(["city", "from", "a_b", "x1"]) | st.text(min_size=1, max_size=5)
_ARGUMENTS = st.dictionaries(_KEYS, _VALUES, max_size=4)
_NAMES = st.sampled_from(["get_weather", "ping", "a.b", "web-search", "f"])
_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
_IDS = st.text("abcXYZ019", min_size=9, max_size=9)


def _build_tools(calls: list[TextCall]) -> list[dict[str, Any]]:
    """Return a tool for each name; its parameters have the types of the values in the first call of this name."""
    tools: dict[str, dict[str, Any]] = {}
    for call in calls:
        properties = {key: {"type": _TYPES.get(type(value), "null")} for key, value in call.arguments.items()}
        tools.setdefault(call.name, {"name": call.name, "parameters": {"type": "object", "properties": properties}})
    return list(tools.values())


@st.composite
def _calls(draw: st.DrawFn) -> list[TextCall]:
    """Draw one to three calls of different tools."""
    tools = draw(st.lists(_NAMES, min_size=1, max_size=3, unique=True))
    return [TextCall(name, draw(_ARGUMENTS), draw(_IDS)) for name in tools]


def _remove_unsafe_values(calls: list[TextCall], text_format: str) -> list[TextCall]:
    """Return the calls without the names and arguments that the format cannot write and read back."""
    tools = _build_tools(calls)
    kept = [call for call in calls if is_round_trip_safe([TextCall(call.name, {})], format=text_format)]
    return [
        TextCall(
            call.name,
            {
                key: value
                for key, value in call.arguments.items()
                if is_round_trip_safe([TextCall(call.name, {key: value})], format=text_format, tools=tools)
            },
            call.id,
        )
        for call in kept
    ]


@pytest.mark.parametrize("text_format", FORMAT_NAMES)
@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(calls=_calls())
def test_rendered_calls_parse_to_equal_calls(text_format: str, calls: list[TextCall]) -> None:
    safe_calls, tools = _remove_unsafe_values(calls, text_format), _build_tools(calls)
    text = render(safe_calls, format=text_format)

    parsed = parse(text, format=text_format, tools=tools)

    assert [(call.name, call.arguments) for call in parsed.calls] == [
        (call.name, call.arguments) for call in safe_calls
    ]
    assert parsed.text == ""
    assert parsed.findings == ()


@pytest.mark.parametrize("text_format", MARKED_FORMAT_NAMES)
@settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(calls=_calls(), seed=st.integers(0, 1000))
def test_rendered_calls_after_text_and_reasoning_parse_in_chunks(
    text_format: str, calls: list[TextCall], seed: int
) -> None:
    safe_calls, tools = _remove_unsafe_values(calls, text_format), _build_tools(calls)
    text = render(safe_calls, format=text_format, text="I will look.", reasoning="Let me think.")

    parsed = parse_in_chunks(text, text_format, random.Random(seed), tools)

    assert parsed == parse(text, format=text_format, tools=tools)
    assert [(call.name, call.arguments) for call in parsed.calls] == [
        (call.name, call.arguments) for call in safe_calls
    ]
    assert parsed.text == "I will look."
    assert parsed.reasoning == "Let me think."


@pytest.mark.parametrize("text_format", MARKED_FORMAT_NAMES)
@settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(calls=_calls())
def test_auto_parses_calls_of_every_format_with_markers(text_format: str, calls: list[TextCall]) -> None:
    safe_calls, tools = _remove_unsafe_values(calls, text_format), _build_tools(calls)

    parsed = parse(render(safe_calls, format=text_format, text="I will look."), tools=tools)

    assert [(call.name, call.arguments) for call in parsed.calls] == [
        (call.name, call.arguments) for call in safe_calls
    ]


@pytest.mark.parametrize("text_format", [name for name in FORMAT_NAMES if get_format(name).round_trip_limits.keeps_ids])
def test_ids_survive_round_trip_if_format_keeps_them(text_format: str) -> None:
    call_id = "functions.ping:7" if text_format == "kimi_k2" else "abcXYZ019"

    parsed = parse(render([TextCall("ping", {}, call_id)], format=text_format), format=text_format)

    assert [call.id for call in parsed.calls] == [call_id]


@pytest.mark.parametrize("text_format", FORMAT_NAMES)
def test_truncated_call_gives_no_call_or_the_complete_call(text_format: str) -> None:
    """A call whose arguments are truncated must not be executed."""
    call = TextCall("get_weather", {"city": "Los Angeles", "days": 31})
    tools = [
        {"name": "get_weather", "parameters": {"properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}}
    ]
    text = render([call], format=text_format)

    for end in range(len(text)):
        for parsed_call in parse(text[:end], format=text_format, tools=tools).calls:
            assert (parsed_call.name, parsed_call.arguments) == (call.name, call.arguments)


def test_seed_oss_keeps_line_breaks_of_values_and_adds_none() -> None:
    call = TextCall("ping", {"text": "\ndef f():\n  pass\n"})
    assert is_round_trip_safe([call], format="seed_oss")
    assert parse(render([call], format="seed_oss"), format="seed_oss").calls[0].arguments == call.arguments


@pytest.mark.parametrize("text_format", FORMAT_NAMES)
def test_name_without_letter_or_digit_is_not_round_trip_safe(text_format: str) -> None:
    assert not is_round_trip_safe([TextCall("__", {})], format=text_format)


def test_kimi_call_with_the_id_of_another_tool_keeps_its_name() -> None:
    call = TextCall("ping", {}, "functions.bash:0")
    (parsed_call,) = parse(render([call], format="kimi_k2"), format="kimi_k2").calls
    assert (parsed_call.name, parsed_call.id) == ("ping", "functions.ping:0")
