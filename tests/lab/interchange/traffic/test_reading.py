"""Reading of traffic: equal exchanges from every form, and a reason for each skipped record."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lab.interchange.traffic.records import ANSWER, ARGUMENTS, FORMS, MESSAGES, TOOL, build_logged, build_otlp
from toolbench.lab.interchange.traffic.exchanges import TOO_DEEP
from toolbench.lab.interchange.traffic.reading import NOT_JSON, iter_records


def read_one(document: Any) -> Any:
    (record,) = iter_records(json.dumps(document).encode())
    return record


@pytest.mark.parametrize("form", FORMS)
def test_iter_records_reads_the_same_exchange_of_every_form(form: str) -> None:
    exchange = read_one(FORMS[form]()).exchange
    assert list(exchange.messages) == MESSAGES
    assert exchange.tools == (TOOL,)
    assert exchange.calls == ({"name": "get_weather", "arguments": ARGUMENTS},)
    assert exchange.model == "m-1"


def test_iter_records_reads_an_array_and_an_indented_object() -> None:
    array = json.dumps([build_logged(), build_otlp()], indent=1).encode()
    assert [bool(record.exchange) for record in iter_records(array)] == [True, True]
    (record,) = iter_records(b"\xef\xbb\xbf" + json.dumps(build_otlp(), indent=1).encode())
    assert record.exchange


def build_changed(**changes: Any) -> Any:
    record = build_logged()
    record["request"] |= changes.pop("request", {})
    return record | changes


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (7, "not a JSON object"),
        ({}, "no answer"),
        ({"request": 3}, "is not an object"),
        ({"request": {"input": 5}, "response": {"output": []}}, "the request has no messages"),
        ({"request": {"input": "Hi"}, "response": {}}, "the record has no answer"),
        (build_changed(request={"tools": []}), "no tools"),
        (build_changed(request={"tools": [{"type": "web_search"}]}), "a tool is not a function"),
        (
            build_changed(request={"messages": [*MESSAGES, ANSWER, {"role": "tool", "content": "{}"}]}),
            "does not end with a user message",
        ),
        (build_changed(request={"messages": [{"role": "robot", "content": "Hi"}]}), "no known role"),
        (build_changed(request={"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}), "an image"),
        (build_changed(response={"choices": []}), "no answer"),
        (build_logged(answer={"tool_calls": [{"function": {"name": "f", "arguments": "{cut"}}]}), "not a JSON object"),
        (build_logged(answer={"tool_calls": [{}]}), "a call has no name"),
        ({"traceId": "t", "type": "SPAN"}, "not a generation"),
    ],
)
def test_iter_records_skips_a_record_without_a_case_with_a_reason(document: Any, reason: str) -> None:
    record = read_one(document)
    assert record.exchange is None
    assert reason in record.reason


KNOWN_KEYS = [
    *("request", "response", "messages", "tools", "choices", "message", "tool_calls", "function", "input", "output"),
    *("type", "content", "role", "resourceSpans", "scopeSpans", "spans", "attributes", "key", "value"),
]
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KNOWN_KEYS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(JSON_VALUES)
@settings(max_examples=300)
def test_iter_records_accepts_any_json(document: Any) -> None:
    for record in iter_records(json.dumps(document).encode()):
        assert record.exchange or record.reason


@pytest.mark.parametrize("levels", [200, 1000])
def test_iter_records_skips_a_span_with_deeply_nested_values(levels: int) -> None:
    """From Python 3.13 on, `json.loads` reads values that are nested too deeply for recursive functions."""
    value = '{"arrayValue": {"values": [' * levels + '{"stringValue": "x"}' + "]}}" * levels
    span = f'{{"attributes": [{{"key": "gen_ai.x", "value": {value}}}]}}'
    document = f'{{"resourceSpans": [{{"scopeSpans": [{{"spans": [{span}]}}]}}]}}'
    (record,) = iter_records(document.encode())
    assert record.exchange is None
    assert record.reason in (TOO_DEEP, NOT_JSON)


@given(st.binary(max_size=60))
def test_iter_records_accepts_any_bytes(data: bytes) -> None:
    assert all(record.reason or record.exchange for record in iter_records(data))
