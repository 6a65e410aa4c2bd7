"""What a format writes, it reads."""

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.engine.formats.golden_cases import list_markers, parse_in_chunks
from toolbench.engine.formats import TextCall, is_round_trip_safe, list_format_names, parse, render
from toolbench.engine.formats.registry import get_format

WRITTEN = [name for name in list_format_names() if name != "auto"]
MARKED = [name for name in WRITTEN if get_format(name).blocks or get_format(name).named(["f"])]

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


def _tools(calls: list[TextCall]) -> list[dict[str, Any]]:
    """A tool for each name that appears, whose parameters have the types of the first call's values."""
    tools: dict[str, dict[str, Any]] = {}
    for call in calls:
        properties = {key: {"type": _TYPES.get(type(value), "null")} for key, value in call.arguments.items()}
        tools.setdefault(call.name, {"name": call.name, "parameters": {"type": "object", "properties": properties}})
    return list(tools.values())


@st.composite
def _calls(draw: st.DrawFn) -> list[TextCall]:
    """One to three calls, each of a tool of its own."""
    tools = draw(st.lists(_NAMES, min_size=1, max_size=3, unique=True))
    return [TextCall(name, draw(_ARGUMENTS), draw(_IDS)) for name in tools]


def _held(calls: list[TextCall], form: str) -> list[TextCall]:
    """The calls without what the format cannot hold."""
    tools = _tools(calls)
    kept = [call for call in calls if is_round_trip_safe([TextCall(call.name, {})], format=form)]
    return [
        TextCall(
            call.name,
            {
                key: value
                for key, value in call.arguments.items()
                if is_round_trip_safe([TextCall(call.name, {key: value})], format=form, tools=tools)
            },
            call.id,
        )
        for call in kept
    ]


@pytest.mark.parametrize("form", WRITTEN)
@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(calls=_calls())
def test_rendered_calls_parse_to_equal_calls(form: str, calls: list[TextCall]) -> None:
    held, tools = _held(calls, form), _tools(calls)
    written = render(held, format=form)

    parsed = parse(written, format=form, tools=tools)

    assert [(call.name, call.arguments) for call in parsed.calls] == [(call.name, call.arguments) for call in held]
    assert parsed.text == ""
    assert parsed.findings == ()


@pytest.mark.parametrize("form", MARKED)
@settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(calls=_calls(), seed=st.integers(0, 1000))
def test_rendered_calls_after_text_and_reasoning_parse_in_chunks(form: str, calls: list[TextCall], seed: int) -> None:
    held, tools = _held(calls, form), _tools(calls)
    written = render(held, format=form, text="I will look.", reasoning="Let me think.")

    parsed = parse_in_chunks(written, form, random.Random(seed), tools)

    assert parsed == parse(written, format=form, tools=tools)
    assert [(call.name, call.arguments) for call in parsed.calls] == [(call.name, call.arguments) for call in held]
    assert parsed.text == "I will look."
    assert parsed.reasoning == "Let me think."


@pytest.mark.parametrize("form", MARKED)
@settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(calls=_calls())
def test_auto_parses_calls_of_every_format_with_markers(form: str, calls: list[TextCall]) -> None:
    held, tools = _held(calls, form), _tools(calls)

    parsed = parse(render(held, format=form, text="I will look."), tools=tools)

    assert [(call.name, call.arguments) for call in parsed.calls] == [(call.name, call.arguments) for call in held]


@pytest.mark.parametrize("form", [name for name in WRITTEN if get_format(name).holds.ids])
def test_ids_survive_round_trip_if_format_keeps_them(form: str) -> None:
    identity = "functions.ping:7" if form == "kimi_k2" else "abcXYZ019"

    parsed = parse(render([TextCall("ping", {}, identity)], format=form), format=form)

    assert [call.id for call in parsed.calls] == [identity]


@pytest.mark.parametrize("form", WRITTEN)
def test_truncated_call_gives_no_call_or_the_complete_call(form: str) -> None:
    """A call whose arguments are cut is never one that can be executed."""
    call = TextCall("get_weather", {"city": "Los Angeles", "days": 31})
    tools = [
        {"name": "get_weather", "parameters": {"properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}}
    ]
    written = render([call], format=form)

    for end in range(len(written)):
        for found in parse(written[:end], format=form, tools=tools).calls:
            assert (found.name, found.arguments) == (call.name, call.arguments)


def test_seed_oss_keeps_line_breaks_of_values_and_adds_none() -> None:
    call = TextCall("ping", {"text": "\ndef f():\n  pass\n"})
    assert is_round_trip_safe([call], format="seed_oss")
    assert parse(render([call], format="seed_oss"), format="seed_oss").calls[0].arguments == call.arguments
